"""Messages over a socket, gathered into frames: one write for all messages of one turn of the event loop.

A reader takes in everything that has arrived before it acts on any of it, so that a message can still be revoked.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from msgspec import MsgspecError, msgpack

logger: Final = logging.getLogger("shiftwork")

T = TypeVar("T")

_LENGTH: Final = 4
_CHUNK: Final = 262_144
LONGEST_FRAME: Final = 1 << 30
"""Real frames are much shorter. A length beyond this means that the bytes are not a frame."""


class Link(Generic[T]):
    """One end of a connection. `receive` gets the frames that arrive; `closed` is called when the other end is gone."""

    def __init__(
        self,
        sock: socket.socket,
        frame: type[T],
        *,
        receive: Callable[[list[T]], None],
        closed: Callable[[], None],
        wrap: Callable[[list[Any]], Any],
    ) -> None:
        sock.setblocking(False)  # noqa: FBT003
        self._sock = sock
        self._receive = receive
        self._other_end_closed = closed
        self._wrap = wrap
        self._decoder = msgpack.Decoder(frame)
        self._encoder = msgpack.Encoder()
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Any] = []
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._writes = False
        self.closed = False
        self._loop.add_reader(sock, self._readable)

    @property
    def unsent(self) -> bool:
        """Whether a message has not left this process yet."""
        return bool(self._waiting or self._outgoing)

    @property
    def backlog(self) -> int:
        """How many bytes the other end has not read yet, beyond what the socket holds."""
        return len(self._outgoing)

    def send(self, message: Any) -> None:
        """Send a message, with everything else of this turn of the event loop."""
        if self.closed:
            return
        if not self._waiting:
            self._loop.call_soon(self.flush)
        self._waiting.append(message)

    def flush(self) -> None:
        """Send every message now, as far as the socket takes them."""
        if self._waiting and not self.closed:
            messages, self._waiting = self._waiting, []
            body = self._encoder.encode(self._wrap(messages))
            self._outgoing += len(body).to_bytes(_LENGTH, "little")
            self._outgoing += body
        self._write()

    def catch_up(self) -> None:
        """Receive what has arrived, without waiting for the event loop to notice. Allowed while receiving."""
        if not self.closed:
            self._readable()

    def close(self) -> None:
        """Close our end."""
        if not self.closed:
            self.closed = True
            with suppress(OSError, ValueError):
                self._loop.remove_reader(self._sock)
                self._loop.remove_writer(self._sock)
            with suppress(OSError):  # a job may have closed it
                self._sock.close()

    def _write(self) -> None:
        while self._outgoing and not self.closed:
            try:
                sent = self._sock.send(memoryview(self._outgoing)[:_CHUNK])
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                self._end()
                return
            del self._outgoing[:sent]
        if self.closed or bool(self._outgoing) == self._writes:
            return
        self._writes = not self._writes
        if self._writes:
            self._loop.add_writer(self._sock, self._write)
        else:
            self._loop.remove_writer(self._sock)

    def _readable(self) -> None:
        over = False
        while True:
            try:
                chunk = self._sock.recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                chunk = b""
            if not chunk:
                over = True
                break
            self._incoming += chunk
        try:
            frames = self._frames()
        except (MsgspecError, UnicodeDecodeError, ValueError) as error:
            logger.error("closing a connection whose other end sends garbage: %s", error)  # noqa: TRY400
            frames, over = [], True
        try:
            if frames:
                self._receive(frames)
        finally:
            if over:
                self._end()

    def _frames(self) -> list[T]:
        frames: list[T] = []
        at, data = 0, self._incoming
        while len(data) - at >= _LENGTH:
            end = at + _LENGTH + int.from_bytes(data[at : at + _LENGTH], "little")
            if end - at > LONGEST_FRAME:
                message = f"a frame of {end - at:,} bytes"
                raise ValueError(message)
            if len(data) < end:
                break
            frames.append(self._decoder.decode(memoryview(data)[at + _LENGTH : end]))
            at = end
        del data[:at]
        return frames

    def _end(self) -> None:
        if not self.closed:
            self.close()
            self._other_end_closed()
