"""The lines of one store: for each event loop one for calls that keep their order, and one for long searches.

It owns opening (the schema and the number of the namespace, looked up by every new connection) and closing, from
whatever thread it is asked. Doorbell and bells live as long as the store.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg import errors as pg

from windlass.store.postgres import migrations
from windlass.store.postgres.address import Address
from windlass.store.postgres.doorbell import Doorbell, channel
from windlass.store.postgres.line import Line
from windlass.store.postgres.session import Session
from windlass.store.postgres.sql import statements

T = TypeVar("T")
Todo = Callable[[Session], Awaitable[T]]


class Lines:
    """All connections of one store in this process, but for the doorbell's."""

    def __init__(self, address: Address, namespace: str) -> None:
        self.doorbell = Doorbell(address)
        self._address = address
        self._name = namespace
        self._sql = statements(address.schema)
        self._namespace = 0
        self._lock = threading.Lock()
        self._lines: dict[asyncio.AbstractEventLoop, tuple[Line, Line]] = {}

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, todo: Todo[T]) -> T:
        """Do this in the order of the calls of this event loop; ring when it is done."""
        return await self._here()[0].call(lambda conn: self._ringing(conn, todo))

    async def gather(
        self, things: list[Any], together: Callable[[Session, list[Any]], Awaitable[list[Any]]]
    ) -> list[Any]:
        """The same, for things that can go together with those of other callers."""
        return await self._here()[0].gather(
            things, lambda conn, all_: self._ringing(conn, lambda session: together(session, all_))
        )

    async def read(self, todo: Todo[T]) -> T:
        """Do this beside the others, once what was called before is done."""
        calls, searches = self._here()
        pending = calls.pending()
        if pending is not None:
            await asyncio.wait([pending])
        return await searches.call(lambda conn: todo(self._session(conn)))

    async def _ringing(self, conn: AsyncConnection[Any], todo: Todo[T]) -> T:
        session = self._session(conn)
        answer = await todo(session)
        self.doorbell.ring(session.topics)
        return answer

    def _session(self, conn: AsyncConnection[Any]) -> Session:
        return Session(conn, self._namespace, self._sql)

    def _here(self) -> tuple[Line, Line]:
        loop = asyncio.get_running_loop()
        lines = self._lines.get(loop)
        if lines is None:
            self._forget_ended_loops()
            lines = Line(self._address, self.prepare), Line(self._address, self.prepare)
            with self._lock:
                self._lines[loop] = lines
        return lines

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def prepare(self, conn: AsyncConnection[Any]) -> None:
        """Look up what a new connection must know; make it where it does not exist."""
        try:
            number = await self._number(conn)
        except (pg.UndefinedTable, pg.InvalidSchemaName):
            number = None
        if number is None or not self._namespace:
            await migrations.upgrade(conn, self._address.schema, after=False)
            await conn.execute(self._sql["add_namespace"].encode(), (self._name,))
            number = await self._number(conn)
        assert number is not None  # noqa: S101 - it was added just now
        self._namespace = number
        self.doorbell.start(channel(self._address.schema, number))

    async def _number(self, conn: AsyncConnection[Any]) -> int | None:
        row = await (await conn.execute(self._sql["find_namespace"].encode(), (self._name,))).fetchone()
        return None if row is None else int(row[0])

    def reopen(self) -> None:
        """Look at the schema again with the next connection."""
        if not self._lines:
            self._namespace = 0

    async def close(self) -> None:
        """Finish what was called, on every event loop, and release everything."""
        with self._lock:
            lines, self._lines = self._lines, {}
        for loop, pair in lines.items():
            for line in pair:
                await _close(loop, line)
        await asyncio.to_thread(self.doorbell.stop)
        self.doorbell.close_bells()

    def _forget_ended_loops(self) -> None:
        with self._lock:
            ended = {loop: self._lines.pop(loop) for loop in list(self._lines) if loop.is_closed()}
        for pair in ended.values():
            for line in pair:
                line.abandon()


async def _close(loop: asyncio.AbstractEventLoop, line: Line) -> None:
    if loop is asyncio.get_running_loop():
        await line.close()
    elif loop.is_running():
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(line.close(), loop))
    else:
        line.abandon()
