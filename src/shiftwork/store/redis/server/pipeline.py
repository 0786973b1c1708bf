"""One connection, on one event loop: commands are sent in order, and replies arrive in the same order.

The next command is sent without waiting for a reply, and commands of one loop iteration go out in one write. No
command is sent twice. This module owns the bytes; it does not know what commands mean, nor how to reconnect.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from hiredis import ProtocolError, Reader, ReplyError, pack_command

Argument = str | bytes | int | float
_NOTHING: Final = object()


class ConnectionLostError(ConnectionError):
    """The connection ended before the reply arrived. The command may have been run."""


class Pipeline(asyncio.Protocol):
    """A connection, created by `loop.create_connection`."""

    def __init__(self, timeout: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._reader = Reader(notEnoughData=_NOTHING)
        self._transport: asyncio.Transport | None = None
        self._unreplied: deque[asyncio.Future[Any]] = deque()
        self._unsent: list[bytes] = []
        self._received_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection has ended."""
        self._on_push: Callable[[Any], None] | None = None

    def ask(self, *command: Argument) -> asyncio.Future[Any]:
        """Send a command and return a future of the reply. An error reply raises `hiredis.ReplyError`."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self.ask_for(future, command)
        return future

    def ask_for(self, future: asyncio.Future[Any], command: tuple[Argument, ...], *, at_once: bool = False) -> None:
        """Send a command whose reply goes to the given future: at the end of this loop iteration, or at once."""
        if self.lost.done():
            future.set_exception(ConnectionLostError("the connection has ended"))
            return
        if not self._unsent and not at_once:
            self._loop.call_soon(self.flush)
        if not self._unreplied:
            self._received_at = self._loop.time()
        self._unsent.append(pack_command(command))  # type: ignore[arg-type]
        self._unreplied.append(future)
        if at_once:
            self.flush()
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout, self._check_timeout)

    def flush(self) -> None:
        """Write pending commands."""
        unsent, self._unsent = self._unsent, []
        # A transport that is closing raises or logs what is written to it; its callers hear of it in `connection_lost`.
        if unsent and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(unsent) if len(unsent) > 1 else unsent[0])

    def subscribe(self, command: tuple[Argument, ...], on_push: Callable[[Any], None]) -> None:
        """Send a command that subscribes. From now on every message goes to `on_push`."""
        self._on_push = on_push
        if self._transport is not None:
            self._transport.write(pack_command(command))  # type: ignore[arg-type]

    def fileno(self) -> int:
        """Return the file descriptor of the connection, which is open."""
        number: int = cast("asyncio.Transport", self._transport).get_extra_info("socket").fileno()
        return number

    def close(self) -> None:
        """Close the connection."""
        if self._transport is None:
            self.connection_lost(None)
        else:
            self._transport.abort()

    # ── called by the event loop ─────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transport is not a subclass

    def data_received(self, data: bytes) -> None:
        self._received_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _NOTHING:
                self._receive(reply)
        except ProtocolError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if not self.lost.done():
            self.lost.set_result(None)
        reason = f": {exc}" if exc else ""
        while self._unreplied:
            future = self._unreplied.popleft()
            if not future.done():
                future.set_exception(ConnectionLostError(f"the connection was lost{reason}"))

    # ── internals ────────────────────────────────────────────────────────────────────────────────────────────────

    def _receive(self, reply: Any) -> None:
        if self._on_push is not None:
            self._on_push(reply)
            return
        if not self._unreplied:
            return
        future = self._unreplied.popleft()
        if future.done():  # its caller was cancelled
            return
        if isinstance(reply, ReplyError):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def _check_timeout(self) -> None:
        """Close the connection if a reply has been missing for too long."""
        self._watch = None
        if not self._unreplied:
            return
        silent = self._loop.time() - self._received_at
        if silent >= self._timeout:
            self.close()
        else:
            self._watch = self._loop.call_later(self._timeout - silent, self._check_timeout)
