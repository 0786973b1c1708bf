"""Asking the server, from whatever event loop: a connection for each, made when first needed and again when it is lost.

Commands of one loop are sent in the order they were given, also while the connection is being made. Nothing is sent
twice, unless the server says that it did not run it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from threading import Lock
from typing import Any, Final
from weakref import WeakKeyDictionary

from hiredis import ReplyError
from msgspec import Struct

from shiftwork.errors import LifecycleError, StoreError
from shiftwork.store.redis import faults
from shiftwork.store.redis.address import RedisAddress
from shiftwork.store.redis.dial import dial
from shiftwork.store.redis.scripts import Script, script
from shiftwork.store.redis.wire import Argument, LostError, Wire

ATTEMPTS: Final = 3
ELSEWHERE: Final = ("MOVED", "READONLY", "CLUSTERDOWN", "MASTERDOWN")
"""It did not run here; another node may have the keys now."""

Command = tuple[Argument, ...]


class LoopConnection:
    """The connection of one event loop."""

    def __init__(self, address: RedisAddress, prefix: bytes, on_loss: Callable[[], None]) -> None:
        self.before: Callable[[], object] | None = None
        """Sends what somebody has gathered to send it together: nothing that is asked later overtakes it."""
        self._address = address
        self._prefix = prefix
        self._on_loss = on_loss
        self._wire: Wire | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._waiting: list[tuple[asyncio.Future[Any], Command]] = []

    def ask(self, command: Command) -> asyncio.Future[Any]:
        """Send it now, or as soon as there is a connection."""
        if self.before is not None:
            self.before()
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        if self._wire is not None and not self._wire.lost.done():
            self._wire.ask_for(future, command)
            return future
        self._waiting.append((future, command))
        if self._keeper is None or self._keeper.done():
            self._keeper = asyncio.create_task(self._keep(), name="shiftwork: connection")
        return future

    def flush(self) -> None:
        """Send what was asked for now, and not at the end of this turn of the loop."""
        if self._wire is not None:
            self._wire.flush()

    def hang_up(self) -> None:
        """End this connection; the next command makes a new one."""
        if self._wire is not None:
            self._wire.close()
            self._wire = None

    def abandon(self) -> None:
        """End the connection for good."""
        if self._keeper is not None:
            self._keeper.cancel()

    async def close(self) -> None:
        """End the connection for good, and wait for that."""
        self.abandon()
        if self._keeper is not None:
            await asyncio.gather(self._keeper, return_exceptions=True)

    async def _keep(self) -> None:
        """Connect, send what has been waiting, and stay until the connection ends or the event loop does."""
        wire = None
        try:
            while self._waiting:
                wire = self._wire = await dial(self._address, self._prefix)
                waiting, self._waiting = self._waiting, []
                for future, command in waiting:
                    if not future.done():
                        wire.ask_for(future, command)
                await wire.lost
                self._wire = None
                self._on_loss()
        except StoreError as error:
            self._fail(error)
        finally:
            self._fail(LostError("the connection was closed"))
            if wire is not None:
                wire.close()
            self._wire = None

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        for future, _ in waiting:
            if not future.done():
                future.set_exception(error)


class Sent(Struct):
    """A command that is on its way, and what it takes to send it again."""

    line: LoopConnection
    answer: asyncio.Future[Any]
    command: Command
    wanted: Script | None


class Client:
    """Runs scripts and commands for one namespace."""

    def __init__(
        self, address: RedisAddress, prefix: bytes, *, on_loss: Callable[[], None], on_move: Callable[[], None]
    ) -> None:
        self._address = address
        self._prefix = prefix
        self._on_loss = on_loss
        self._on_move = on_move
        self._lock = Lock()
        self._lines: WeakKeyDictionary[asyncio.AbstractEventLoop, LoopConnection] = WeakKeyDictionary()
        self._closed = False

    def reopen(self) -> None:
        """Allow calls again."""
        self._closed = False

    def run(self, name: str, *arguments: bytes) -> Awaitable[Any]:
        """Run a script. It is on its way when this returns; what it answers is to be awaited."""
        return self.answer(self.send(name, *arguments))

    def ask(self, *command: Argument) -> Awaitable[Any]:
        """Run a command, likewise."""
        line = self.line()
        return self.answer(Sent(line, line.ask(command), command, None))

    def send(self, name: str, *arguments: bytes) -> Sent:
        """Send a script on its way."""
        wanted, line = script(name), self.line()
        command: Command = ("EVALSHA", wanted.digest, 1, self._prefix, *arguments)
        return Sent(line, line.ask(command), command, wanted)

    async def answer(self, sent: Sent) -> Any:
        """What the server answers. What it says that it did not run is sent again."""
        line, answer, command, wanted = sent.line, sent.answer, sent.command, sent.wanted
        attempt = 1
        while True:
            try:
                return await answer
            except LostError as error:
                raise faults.lost(error, self._address.place) from error
            except ReplyError as error:
                said = str(error)
                if wanted is not None and said.startswith("NOSCRIPT"):
                    command = ("EVAL", wanted.text, *command[2:])
                elif said.startswith(ELSEWHERE) and attempt < ATTEMPTS:
                    line.hang_up()
                    self._on_move()
                else:
                    raise faults.translate(said, self._address.place) from error
            attempt += 1
            line = self.line()
            answer = line.ask(command)

    def line(self) -> LoopConnection:
        """The connection of this event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise LifecycleError(f"the store {self._address.url} is closed")
            line = self._lines.get(loop)
            if line is None:
                line = self._lines[loop] = LoopConnection(self._address, self._prefix, self._on_loss)
            return line

    async def close(self) -> None:
        """End every connection, on whatever event loop."""
        with self._lock:
            self._closed = True
            lines = dict(self._lines)
            self._lines.clear()
        here = lines.pop(asyncio.get_running_loop(), None)
        for loop, line in lines.items():
            with suppress(RuntimeError):  # that loop has ended, and its connection with it
                loop.call_soon_threadsafe(line.abandon)
        if here is not None:
            await here.close()
