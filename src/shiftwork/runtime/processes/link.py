"""Messages over a socket, gathered into frames: one write for all messages of one iteration of the event loop."""

import asyncio
import logging
import select
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from msgspec import MsgspecError, msgpack

from shiftwork.core.values.job_limits import MAX_PAYLOAD_BYTES
from shiftwork.sentences import plain

logger: Final = logging.getLogger("shiftwork")

T = TypeVar("T")

_NO_ENCODING: Final = (TypeError, ValueError, OverflowError, RecursionError)
_LENGTH: Final = 4
_CHUNK: Final = 262_144
_ROOM: Final = 1_048_576
"""What a message may need besides a payload or a result: a traceback, log lines, the definition of a large app."""


LONGEST_DEFINITION: Final = 1 << 28
"""How many bytes a frame may have where no jobs run, and an app with many thousands of workers is described."""


def longest_frame(max_payload_bytes: int) -> int:
    """Return how many bytes a frame may have where payloads and results may have this many."""
    return 4 * max_payload_bytes + _ROOM


def log_refusal(message: Any, why: str) -> None:
    """Log that a message cannot be sent."""
    logger.error("cannot send a %s message: %s", type(message).__name__, why)


class Link(Generic[T]):
    """One end of a connection: `on_frames` gets what arrives, and `on_closed` is called when the other end is gone.

    No frame is longer than `longest`, in either direction: `on_refused` gets each message that does not fit into one,
    or has no encoding, with the reason. Bytes that announce a longer frame are garbage.
    """

    def __init__(
        self,
        sock: socket.socket,
        frame: type[T],
        *,
        on_frames: Callable[[list[T]], None],
        on_closed: Callable[[], None],
        wrap: Callable[[list[Any]], Any],
        on_refused: Callable[[Any, str], None] = log_refusal,
        longest: int = longest_frame(MAX_PAYLOAD_BYTES),
        most_at_once: int | None = None,
        before_send: Callable[[], None] | None = None,
    ) -> None:
        self.longest = longest
        self.before_send = before_send
        """Called before messages are sent."""
        self._most_at_once = most_at_once
        """How many bytes are read before the event loop does something else; None is all that have arrived."""
        self._on_refused = on_refused
        self.garbage: str | None = None
        """What the other end sent instead of a frame, if it did. The connection is closed then."""
        sock.setblocking(False)  # noqa: FBT003
        self._sock = sock
        self._on_frames = on_frames
        self._on_closed = on_closed
        self._wrap = wrap
        self._decoder = msgpack.Decoder(frame)
        self._encoder = msgpack.Encoder(enc_hook=plain)
        self._loop = asyncio.get_running_loop()
        self._waiting: list[Any] = []
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._writes = False
        self._lock = threading.RLock()
        """Guards what is to be sent: a thread may send too."""
        self._flushing = False
        self.closed: bool = False
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
        """Send a message, with everything else of this iteration of the event loop."""
        with self._lock:
            if self.closed:
                return
            if not self._waiting and not self._flushing:
                self._loop.call_soon(self.flush)
            self._waiting.append(message)

    def deliver(self, message: Any) -> None:
        """Send a message, and everything before it, and return when the socket has taken all of it. For any thread."""
        with self._lock:
            if self.closed:
                return
            try:
                if self.unsent or not self._deliver_alone(message):
                    self._waiting.append(message)
                    self._encode()
                    self._write_all()
            except OSError:
                self._loop.call_soon_threadsafe(self._end)

    def _deliver_alone(self, message: Any) -> bool:
        """Send a message at once; False, without effect, if it has to be refused, or the socket takes none of it."""
        try:
            body = self._encoder.encode(self._wrap([message]))
            if len(body) > self.longest:
                return False
            frame = len(body).to_bytes(_LENGTH, "little") + body
            sent = self._sock.send(frame)
        except (*_NO_ENCODING, BlockingIOError, InterruptedError):
            return False
        if sent < len(frame):
            self._outgoing += frame[sent:]
            self._write_all()
        return True

    def flush(self) -> None:
        """Send every message now, as far as the socket takes them."""
        with self._lock:
            self._encode()
            self._write()

    def _encode(self) -> None:
        self._flushing = True
        if self.before_send is not None and not self.closed:
            self.before_send()
        while self._waiting and not self.closed:  # a refusal may lead to another message
            messages, self._waiting = self._waiting, []
            if not self._put(messages):
                for message in messages:
                    self._put_alone(message)
        self._flushing = False

    def _put(self, messages: list[Any]) -> bool:
        """Write a frame, unless it is too long or has no encoding."""
        try:
            body = self._encoder.encode(self._wrap(messages))
        except _NO_ENCODING:
            return False
        if len(body) > self.longest:
            return False
        self._outgoing += len(body).to_bytes(_LENGTH, "little")
        self._outgoing += body
        return True

    def _put_alone(self, message: Any) -> None:
        if not self._put([message]):
            try:
                size = f"it has {len(self._encoder.encode(message)):,} bytes; {self.longest:,} are allowed"
            except _NO_ENCODING as error:
                size = f"it cannot be encoded: {error}"
            self._on_refused(message, size)

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

    def _write_all(self) -> None:
        while self._outgoing:
            try:
                sent = self._sock.send(memoryview(self._outgoing)[:_CHUNK])
            except (BlockingIOError, InterruptedError):
                room = select.poll()
                room.register(self._sock, select.POLLOUT)
                room.poll()
            else:
                del self._outgoing[:sent]

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
        frames: list[T] = []
        try:
            over = self._read(frames)
        except (MsgspecError, UnicodeDecodeError, ValueError, RecursionError) as error:
            logger.error("closing a connection whose other end sends garbage: %s", error)  # noqa: TRY400
            self.garbage = str(error)
            frames, over = [], True
        try:
            if frames:
                self._on_frames(frames)
        finally:
            if over:
                self._end()

    def _read(self, frames: list[T]) -> bool:
        """Add the frames that have arrived; returns whether the other end is gone."""
        read = 0
        while self._most_at_once is None or read < self._most_at_once:
            try:
                chunk = self._sock.recv(_CHUNK)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                return True
            if not chunk:
                return True
            read += len(chunk)
            self._incoming += chunk
            self._take_frames(frames)
            if len(chunk) < _CHUNK:  # that was all
                return False
        return False

    def _take_frames(self, frames: list[T]) -> None:
        at, data = 0, self._incoming
        while len(data) - at >= _LENGTH:
            length = int.from_bytes(data[at : at + _LENGTH], "little")
            if length > self.longest:
                message = f"a frame of {length:,} bytes; {self.longest:,} are allowed"
                raise ValueError(message)
            end = at + _LENGTH + length
            if len(data) < end:
                break
            frames.append(self._decoder.decode(memoryview(data)[at + _LENGTH : end]))
            at = end
        del data[:at]

    def _end(self) -> None:
        if not self.closed:
            self.close()
            self._on_closed()
