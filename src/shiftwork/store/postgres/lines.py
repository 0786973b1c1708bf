"""The connections of one store: for each event loop a line for calls that keep their order, one for long searches, and
spare ones for transactions of jobs.

It owns opening (the schema and the number of the namespace, looked up by every new connection) and closing, from
whatever thread it is asked. Doorbell and bells live as long as the store.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import Struct
from psycopg import AsyncConnection

from shiftwork.store.postgres import migrations
from shiftwork.store.postgres.address import Address
from shiftwork.store.postgres.doorbell import Doorbell, channel
from shiftwork.store.postgres.line import Line
from shiftwork.store.postgres.queries import statements
from shiftwork.store.postgres.session import Session
from shiftwork.store.postgres.spares import Spares

LOOK_AGAIN_SECONDS: Final = 0.02
T = TypeVar("T")
Todo = Callable[[Session], Awaitable[T]]


class Here(Struct, frozen=True):
    """What one event loop has."""

    calls: Line
    searches: Line
    spares: Spares

    async def close(self) -> None:
        """Finish what was called. On its own event loop."""
        await self.calls.close()
        await self.searches.close()
        self.spares.close()

    def busy(self) -> "asyncio.Task[None] | None":
        """What goes on there, if anything does."""
        return self.calls.task or self.searches.task

    def abandon(self) -> None:
        """Close the connections, where nothing goes on any more."""
        self.calls.abandon()
        self.searches.abandon()
        self.spares.close()


class Lines:
    """All connections of one store in this process, but for the doorbell's."""

    def __init__(self, address: Address, namespace: str) -> None:
        self.doorbell = Doorbell(address)
        self._address = address
        self._name = namespace
        self._sql = statements(address.schema)
        self._namespace = 0
        self._lock = threading.Lock()
        self._here: dict[asyncio.AbstractEventLoop, Here] = {}

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, todo: Todo[T]) -> T:
        """Do this in the order of the calls of this event loop; ring when it is done."""
        return await self.here().calls.call(lambda conn: self._ringing(conn, todo))

    async def gather(
        self, things: list[Any], together: Callable[[Session, list[Any]], Awaitable[list[Any]]]
    ) -> list[Any]:
        """The same, for things that can go together with those of other callers."""
        return await self.here().calls.gather(
            things, lambda conn, all_: self._ringing(conn, lambda session: together(session, all_))
        )

    async def read(self, todo: Todo[T]) -> T:
        """Do this beside the others, once what was called before is done."""
        here = self.here()
        pending = here.calls.pending()
        if pending is not None:
            await asyncio.wait([pending])
        return await here.searches.call(lambda conn: todo(self.session(conn)))

    async def _ringing(self, conn: AsyncConnection[Any], todo: Todo[T]) -> T:
        session = self.session(conn)
        answer = await todo(session)
        self.doorbell.ring(session.topics)
        return answer

    def session(self, conn: AsyncConnection[Any]) -> Session:
        """What an operation on this connection works with."""
        return Session(conn, self._namespace, self._sql)

    def here(self) -> Here:
        """What this event loop has; made when it is first wanted."""
        loop = asyncio.get_running_loop()
        here = self._here.get(loop)
        if here is None:
            self._forget_ended_loops()
            to = (self._address, self.prepare)
            here = Here(Line(*to), Line(*to), Spares(*to))
            with self._lock:
                self._here[loop] = here
        return here

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def prepare(self, conn: AsyncConnection[Any]) -> None:
        """Look up what a new connection must know; make it where it does not exist."""
        await migrations.upgrade(conn, self._address.schema, after=False)
        number = await self._number(conn)
        if number is None:
            await conn.execute(self._sql["add_namespace"].encode(), (self._name,))
            number = await self._number(conn)
        assert number is not None  # noqa: S101 - it was added just now
        self._namespace = number
        self.doorbell.start(channel(self._address.schema, number))

    async def _number(self, conn: AsyncConnection[Any]) -> int | None:
        row = await (await conn.execute(self._sql["find_namespace"].encode(), (self._name,))).fetchone()
        return None if row is None else int(row[0])

    @property
    def open(self) -> bool:
        """Whether the schema is there, as far as anybody knows, and the doorbell is up."""
        return self._namespace > 0 and self.doorbell.started

    @property
    def place(self) -> tuple[str, str]:
        """The name of the namespace, and the channel of its rings."""
        return self._name, channel(self._address.schema, self._namespace)

    async def close(self) -> None:
        """Finish what was called, on every event loop, and release everything."""
        with self._lock:
            everything, self._here = self._here, {}
            self._namespace = 0
        for loop, here in everything.items():
            await _close(loop, here)
        await asyncio.to_thread(self.doorbell.stop)

    def _forget_ended_loops(self) -> None:
        with self._lock:
            ended = [self._here.pop(loop) for loop in list(self._here) if loop.is_closed()]
        for here in ended:
            here.abandon()


async def _close(loop: asyncio.AbstractEventLoop, here: Here) -> None:
    if loop is asyncio.get_running_loop():
        await here.close()
        return
    done: Future[None] = Future()

    def begin() -> None:  # no coroutine: a loop that is about to end would never run it
        busy = here.busy()
        if busy is not None:
            busy.add_done_callback(lambda _: begin())
            return
        here.abandon()
        done.set_result(None)

    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(begin)
    waiting = asyncio.wrap_future(done)
    while loop.is_running() and not waiting.done():  # it may be about to end, and never begin
        await asyncio.wait([waiting], timeout=LOOK_AGAIN_SECONDS)
    if not done.done():
        here.abandon()
