"""Connections of one event loop for transactions of a job's own: as many at a time as the URL's `pool_size` allows."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from shiftwork.store.postgres.address import Address
from shiftwork.store.postgres.line import connect, hang_up, hung_up


class Spares:
    """Idle connections, and how many more there may be."""

    def __init__(self, address: Address, prepare: Callable[[AsyncConnection[Any]], Awaitable[None]]) -> None:
        self._address = address
        self._prepare = prepare
        self._places = asyncio.Semaphore(address.pool_size)
        self._idle: list[AsyncConnection[Any]] = []
        self._closed = False

    @asynccontextmanager
    async def one(self) -> AsyncIterator[AsyncConnection[Any]]:
        """A connection that nobody else uses meanwhile."""
        async with self._places:
            conn = await self._take()
            try:
                yield conn
            finally:
                if self._closed or conn.closed or conn.info.transaction_status != 0:
                    hang_up(conn)
                else:
                    self._idle.append(conn)

    async def _take(self) -> AsyncConnection[Any]:
        while self._idle:
            conn = self._idle.pop()
            if not conn.closed and not hung_up(conn):
                return conn
            hang_up(conn)
        return await connect(self._address, self._prepare)

    def close(self) -> None:
        """Close those that are idle; the others follow when they are given back. From any thread."""
        self._closed = True
        while self._idle:
            hang_up(self._idle.pop())
