"""One connection, on one event loop: commands go out in the order they are given, answers come back in that order.

Nothing waits for an answer before it sends the next command, and what is sent within one turn of the loop goes out in
one write. Nothing is ever sent twice. It owns the bytes; it knows nothing of what is asked, nor how to connect again.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from hiredis import ProtocolError, Reader, ReplyError, pack_command

Argument = str | bytes | int | float
_NOTHING: Final = object()


class LostError(ConnectionError):
    """The connection ended before the answer came. What was asked may have happened."""


class Wire(asyncio.Protocol):
    """A connection that is made by `loop.create_connection`."""

    def __init__(self, patience: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._patience = patience
        self._reader = Reader(notEnoughData=_NOTHING)
        self._transport: asyncio.Transport | None = None
        self._unanswered: deque[asyncio.Future[Any]] = deque()
        self._unsent: list[bytes] = []
        self._heard_at = 0.0
        self._watch: asyncio.TimerHandle | None = None
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """Done when the connection has ended."""
        self._on_push: Callable[[Any], None] | None = None

    def ask(self, *command: Argument) -> asyncio.Future[Any]:
        """Send a command; the answer is a future. An error answer is raised as `hiredis.ReplyError`."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self.ask_for(future, command)
        return future

    def ask_for(self, future: asyncio.Future[Any], command: tuple[Argument, ...]) -> None:
        """Send a command whose answer goes to a future that is there already."""
        if self.lost.done():
            future.set_exception(LostError("the connection has ended"))
            return
        if not self._unsent:
            self._loop.call_soon(self.flush)
        if not self._unanswered:
            self._heard_at = self._loop.time()
        self._unsent.append(pack_command(command))  # type: ignore[arg-type]
        self._unanswered.append(future)
        if self._watch is None:
            self._watch = self._loop.call_later(self._patience, self._look)

    def flush(self) -> None:
        """Send what was asked for now, and not at the end of this turn of the loop."""
        unsent, self._unsent = self._unsent, []
        if unsent and self._transport is not None:
            self._transport.write(b"".join(unsent) if len(unsent) > 1 else unsent[0])

    def subscribe(self, command: tuple[Argument, ...], on_push: Callable[[Any], None]) -> None:
        """Send a command whose answers have no end. From now on, whatever comes goes to `on_push`."""
        self._on_push = on_push
        if self._transport is not None:
            self._transport.write(pack_command(command))  # type: ignore[arg-type]

    def close(self) -> None:
        """End the connection."""
        if self._transport is None:
            self.connection_lost(None)
        else:
            self._transport.abort()

    # ── what the event loop calls ────────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is none by class

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not _NOTHING:
                self._answer(answer)
        except ProtocolError:
            self.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if not self.lost.done():
            self.lost.set_result(None)
        reason = f": {exc}" if exc else ""
        while self._unanswered:
            future = self._unanswered.popleft()
            if not future.done():
                future.set_exception(LostError(f"the connection was lost{reason}"))

    # ── how ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _answer(self, answer: Any) -> None:
        if self._on_push is not None:
            self._on_push(answer)
            return
        if not self._unanswered:
            return
        future = self._unanswered.popleft()
        if future.done():  # whoever asked has given up
            return
        if isinstance(answer, ReplyError):
            future.set_exception(answer)
        else:
            future.set_result(answer)

    def _look(self) -> None:
        """Give the connection up if an answer has been missing for too long."""
        self._watch = None
        if not self._unanswered:
            return
        silent = self._loop.time() - self._heard_at
        if silent >= self._patience:
            self.close()
        else:
            self._watch = self._loop.call_later(self._patience - silent, self._look)
