"""Commands and scripts, from any event loop: each loop has a connection, opened when first needed and after a loss.

Commands of one loop are sent in order, even while the connection is being opened. A command is sent twice only if the
server reports that it did not run it.
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
from shiftwork.store.redis.lua import ELSEWHERE, NO_SCRIPT, Script, script
from shiftwork.store.redis.server import faults
from shiftwork.store.redis.server.address import RedisAddress
from shiftwork.store.redis.server.connecting import connect
from shiftwork.store.redis.server.pipeline import Argument, ConnectionLostError, Pipeline

SEND_ATTEMPTS: Final = 3
Command = tuple[Argument, ...]


class RedisConnection:
    """The connection of one event loop, which reconnects when it is lost."""

    def __init__(self, address: RedisAddress, prefix: bytes, on_loss: Callable[[], None]) -> None:
        self.before_send: Callable[[], object] | None = None
        """Called before each command. It sends the gathered batch, so that no later command overtakes it."""
        self._address = address
        self._prefix = prefix
        self._on_loss = on_loss
        self._pipeline: Pipeline | None = None
        self._task: asyncio.Task[None] | None = None
        self._waiting: list[tuple[asyncio.Future[Any], Command]] = []

    def ask(
        self, command: Command, future: asyncio.Future[Any] | None = None, *, at_once: bool = False
    ) -> asyncio.Future[Any]:
        """Send a command at the end of this loop iteration, or at once; or as soon as there is a connection.

        The reply goes to the given future, if any.
        """
        if self.before_send is not None:
            self.before_send()
        if future is None:
            future = asyncio.get_running_loop().create_future()
        if self._pipeline is not None and not self._pipeline.lost.done():
            self._pipeline.ask_for(future, command, at_once=at_once)
            return future
        self._waiting.append((future, command))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep(), name="shiftwork: connection")
        return future

    def disconnect(self) -> None:
        """Close the connection; the next command opens a new one."""
        if self._pipeline is not None:
            self._pipeline.close()
            self._pipeline = None

    def abandon(self) -> None:
        """Close the connection for good."""
        if self._task is not None:
            self._task.cancel()

    async def close(self) -> None:
        """Close the connection for good, and wait until it is closed."""
        self.abandon()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        """Connect, send what has been waiting, and run until the connection or the event loop ends."""
        pipeline = None
        try:
            while self._waiting:
                pipeline = self._pipeline = await connect(self._address, self._prefix)
                waiting, self._waiting = self._waiting, []
                for future, command in waiting:
                    if not future.done():
                        pipeline.ask_for(future, command)
                await pipeline.lost
                self._pipeline = None
                self._on_loss()
        except StoreError as error:
            self._fail(error)
        finally:
            self._fail(ConnectionLostError("the connection was closed"))
            if pipeline is not None:
                pipeline.close()
            self._pipeline = None

    def _fail(self, error: Exception) -> None:
        waiting, self._waiting = self._waiting, []
        for future, _ in waiting:
            if not future.done():
                future.set_exception(error)


class SentCommand(Struct):
    """A command that was sent, and what is needed to send it again."""

    connection: RedisConnection
    reply: asyncio.Future[Any]
    command: Command
    script: Script | None


class RedisClient:
    """Runs scripts and commands for one namespace."""

    def __init__(
        self, address: RedisAddress, prefix: bytes, *, on_loss: Callable[[], None], on_move: Callable[[], None]
    ) -> None:
        self._address = address
        self._prefix = prefix
        self._on_loss = on_loss
        self._on_move = on_move
        self._lock = Lock()
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, RedisConnection] = WeakKeyDictionary()
        self._closed = False

    def reopen(self) -> None:
        """Allow calls again."""
        self._closed = False

    def run(self, name: str, *arguments: bytes) -> Awaitable[Any]:
        """Run a script. It is sent when this returns; await the result for its reply."""
        return self.reply(self.send(name, *arguments))

    def ask(self, *command: Argument) -> Awaitable[Any]:
        """Run a command. It is sent when this returns; await the result for its reply."""
        connection = self.connection()
        return self.reply(SentCommand(connection, connection.ask(command), command, None))

    def send(
        self,
        name: str,
        *arguments: bytes,
        future: asyncio.Future[Any] | None = None,
        at_once: bool = False,
        connection: RedisConnection | None = None,
    ) -> SentCommand:
        """Send a script, and return what is needed to await its reply. `connection` is this loop's, if it is known."""
        wanted, connection = script(name), connection or self.connection()
        command: Command = ("EVALSHA", wanted.digest, 1, self._prefix, *arguments)
        return SentCommand(connection, connection.ask(command, future, at_once=at_once), command, wanted)

    async def reply(self, sent: SentCommand) -> Any:
        """Wait for the reply. A command that the server reports as not run is sent again."""
        connection, reply, command = sent.connection, sent.reply, sent.command
        attempt = 1
        while True:
            try:
                return await reply
            except ConnectionLostError as error:
                raise faults.lost(error, self._address.place) from error
            except ReplyError as error:
                said = str(error)
                if sent.script is not None and said.startswith(NO_SCRIPT):
                    command = ("EVAL", sent.script.text, *command[2:])
                elif said.startswith(ELSEWHERE) and attempt < SEND_ATTEMPTS:
                    connection.disconnect()
                    self._on_move()
                else:
                    raise faults.translate(said, self._address.place) from error
            attempt += 1
            connection = self.connection()
            reply = connection.ask(command)

    def connection(self) -> RedisConnection:
        """Return the connection of this event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._closed:
                raise LifecycleError(f"the store {self._address.url} is closed")
            connection = self._connections.get(loop)
            if connection is None:
                connection = self._connections[loop] = RedisConnection(self._address, self._prefix, self._on_loss)
            return connection

    async def close(self) -> None:
        """Close every connection, of all event loops."""
        with self._lock:
            self._closed = True
            connections = dict(self._connections)
            self._connections.clear()
        here = connections.pop(asyncio.get_running_loop(), None)
        for loop, connection in connections.items():
            with suppress(RuntimeError):  # that loop has ended, and its connection with it
                loop.call_soon_threadsafe(connection.abandon)
        if here is not None:
            await here.close()


def seconds(time: list[bytes]) -> float:
    whole, micros = time
    return int(whole) + int(micros) / 1e6
