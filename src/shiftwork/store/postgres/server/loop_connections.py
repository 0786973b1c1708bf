"""The connections of one event loop: queues for calls, claims, duties and searches, and a pool for transactions.

They are apart so that no job waits to be added or to start until its node has done its duties, or has claimed for its
other pools. What is common to all event loops of a store is in `store_connections`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import Struct
from psycopg import AsyncConnection

from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.call_queue import CallQueue
from shiftwork.store.postgres.server.connecting import Prepare, connect, disconnect, is_usable

MOST_CLAIM_QUEUES: Final = 4
BUSY_SECONDS: Final = 0.2
"""A claim does not wait for a queue that has been busy for longer than this, if another connection may be opened."""


class ClaimQueues:
    """The connections on which the event loop claims: one, and more while the server is slow.

    Claims for several pools are independent of each other, and a claim with gates takes two round trips. If a round
    trip takes a second, pools would wait for each other; if it takes a millisecond, more connections are a waste.
    """

    def __init__(self, new: Callable[[], CallQueue]) -> None:
        self.queues: list[CallQueue] = [new()]
        self._new = new
        self._loop = asyncio.get_running_loop()
        self._chosen_at: dict[CallQueue, float] = {}

    def next(self) -> CallQueue:
        """Return an idle queue, or the one that was chosen the longest ago; a new one if that was too long ago."""
        now = self._loop.time()
        queue = next((queue for queue in self.queues if not queue.busy), None)
        if queue is None:
            queue = min(self.queues, key=lambda queue: self._chosen_at[queue])
            if now - self._chosen_at[queue] > BUSY_SECONDS and len(self.queues) < MOST_CLAIM_QUEUES:
                queue = self._new()
                self.queues.append(queue)
        self._chosen_at[queue] = now
        return queue


class TransactionPool:
    """Connections for transactions of jobs: idle ones, and a limit for how many are in use (`pool_size` of the URL)."""

    def __init__(self, address: PostgresAddress, prepare: Prepare) -> None:
        self._address = address.lent()
        self._prepare = prepare
        self._places = asyncio.Semaphore(address.pool_size)
        self._idle: list[AsyncConnection[Any]] = []
        self._closed = False
        self._suspected = False
        """Whether another connection has fallen silent: then no idle connection is used again."""

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
        """Replace all idle connections, because the server does not answer; from any thread."""
        self._suspected = True

    def close(self) -> None:
        """Close idle connections now, and the others when they are given back; from any thread."""
        self._closed = True
        while self._idle:
            disconnect(self._idle.pop())


class LoopConnections(Struct, frozen=True):
    """The connections of one event loop."""

    calls: CallQueue
    """For calls about jobs, in order: adding, finishing, changing."""
    claims: ClaimQueues
    duties: CallQueue
    """For what a node does beside its jobs: leases, docs, the leader's calls."""
    searches: CallQueue
    """For long reads."""
    transactions: TransactionPool

    @property
    def queues(self) -> tuple[CallQueue, ...]:
        return self.calls, *self.claims.queues, self.duties, self.searches

    async def close(self) -> None:
        """Finish all calls and close the connections; on their own event loop."""
        await asyncio.gather(*(queue.close() for queue in self.queues))
        self.transactions.close()

    def busy(self) -> "asyncio.Future[Any] | None":
        """Return the task that makes calls, or the end of a direct call, if a queue is busy."""
        return next((queue.task for queue in self.queues if queue.task is not None), None)

    def break_off(self) -> None:
        """Fail the calls under way, because the server does not answer; on their own event loop."""
        for queue in self.queues:
            queue.break_off()

    def suspect(self) -> None:
        """Replace all connections before the next calls; from any thread."""
        for queue in self.queues:
            queue.suspect()
        self.transactions.suspect()

    def abandon(self) -> None:
        """Close the connections when no call is under way; from any thread."""
        for queue in self.queues:
            queue.abandon()
        self.transactions.close()
