"""The pool of connections for transactions of jobs: up to `pool_size` of the URL at a time, for each event loop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.connecting import Prepare, connect, disconnect, is_usable


class TransactionPool:
    """Idle connections, and a limit for how many are in use."""

    def __init__(self, address: PostgresAddress, prepare: Prepare) -> None:
        self._address = address.lent()
        self._prepare = prepare
        self._places = asyncio.Semaphore(address.pool_size)
        self._idle: list[AsyncConnection[Any]] = []
        self._closed = False
        self._suspected = False
        """Whether another connection has fallen silent: then none that is idle is used again."""

    @asynccontextmanager
    async def borrow(self) -> AsyncIterator[AsyncConnection[Any]]:
        """Lend a connection for exclusive use."""
        async with self._places:
            conn = await self._take()
            try:
                yield conn
            finally:
                if self._closed or conn.closed or conn.info.transaction_status != 0:
                    disconnect(conn)
                else:
                    self._idle.append(conn)

    async def _take(self) -> AsyncConnection[Any]:
        suspected, self._suspected = self._suspected, False
        while self._idle:
            conn = self._idle.pop()
            if is_usable(conn) and not suspected:
                return conn
            disconnect(conn)
        return await connect(self._address, self._prepare)

    def suspect(self) -> None:
        """Lend none of the idle connections, because the server does not answer; from any thread."""
        self._suspected = True

    def close(self) -> None:
        """Close idle connections now, and the others when they are given back; from any thread."""
        self._closed = True
        while self._idle:
            disconnect(self._idle.pop())
