"""All connections of one store in a process, on all its event loops; what is on one loop is in `loop_connections`.

This module owns opening and closing, from any thread. Every new connection brings the schema up to date and looks up
the number of the namespace. The doorbell lives as long as the store.

The number of a namespace is made from its name. So after the tables were emptied, processes that remember the number
and processes that look it up still agree.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import Any, Final, TypeVar
from zlib import crc32

from psycopg import AsyncConnection

from shiftwork.errors import LifecycleError
from shiftwork.store.postgres.server import migrations, search_path
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.call_queue import CALL_SECONDS, CANCEL_TIMEOUT, ITEM_SECONDS, CallQueue
from shiftwork.store.postgres.server.direct_call import BlockingSession, Prepared
from shiftwork.store.postgres.server.doorbell import Doorbell, channel
from shiftwork.store.postgres.server.loop_connections import ClaimQueues, LoopConnections, TransactionPool
from shiftwork.store.postgres.server.pending_call import BatchWork
from shiftwork.store.postgres.server.statements import PostgresSession, QueuedStatements, Statements

CLOSE_POLL_SECONDS: Final = 0.02
LARGEST_NUMBER: Final = 2**31 - 1
SEARCH_SECONDS: Final = 30.0
"""How long a search may take."""
T = TypeVar("T")
Operation = Callable[[PostgresSession], Awaitable[T]]


class StoreConnections:
    """The connections of one store: those of each event loop, the doorbell's, and one for threads without a loop."""

    def __init__(self, address: PostgresAddress, namespace: str, sql: dict[str, str], lone: Prepared) -> None:
        self.doorbell: Doorbell = Doorbell(address)
        self.blocking: BlockingSession = BlockingSession(address, lone, patience=CALL_SECONDS)
        """Runs the statement `lone` for threads without an event loop."""
        self.namespace = namespace
        self._address = address
        self._sql = sql
        self.number: int = 0
        """The number of the namespace, once a connection has looked it up. Closing keeps it for waiting calls."""
        self._is_open = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, LoopConnections] = {}

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, operation: Operation[T], *, items: int = 1) -> T:
        """Run an operation on so many items after the earlier calls and claims of this event loop."""
        here = self.of_this_loop()
        patience = CALL_SECONDS + ITEM_SECONDS * items
        claims = [pending for queue in here.claims.queues for pending in queue.pending()]
        return await here.calls.call(lambda conn: self.run(conn, operation), patience, after=claims)

    async def claim(self, operation: Operation[T]) -> T:
        """Run a claim beside other claims, once the earlier calls are done; it may overtake passable ones."""
        here = self.of_this_loop()
        return await here.claims.next().call(
            lambda conn: self.run(conn, operation), after=here.calls.pending_for_claims()
        )

    async def call_passable(self, operation: Operation[T], *, items: int = 1) -> T:
        """Run an operation about running jobs after the earlier calls of this event loop; claims may overtake it."""
        return await self.of_this_loop().calls.call(
            lambda conn: self.run(conn, operation), CALL_SECONDS + ITEM_SECONDS * items, passable=True
        )

    async def call_beside(self, operation: Operation[T], *, items: int = 1) -> T:
        """Run an operation on the connection for duties, once the earlier calls are done."""
        here = self.of_this_loop()
        await _done(here.calls)
        return await here.duties.call(lambda conn: self.run(conn, operation), CALL_SECONDS + ITEM_SECONDS * items)

    async def ask(self, operation: Callable[[Statements], Awaitable[T]]) -> T:
        """Run an operation of one statement on the connection for duties, together with other such operations.

        They share a transaction, so the statement must not lock what calls about jobs lock.
        """
        here = self.of_this_loop()
        await _done(here.calls)
        if not self.number:
            await here.duties.call(_nothing)
        session = QueuedStatements(here.duties, self.number, self._together)
        answer = await operation(session)
        self.doorbell.ring(session.topics)
        return answer

    async def _together(self, conn: AsyncConnection[Any], statements: list[Any]) -> list[Any]:
        return await self.session(conn).together(statements)

    async def call_in_batch(self, items: list[Any], batch_work: BatchWork) -> list[Any]:
        """Do this work after the earlier calls of this event loop, in one batch with others; claims may overtake it."""
        return await self.of_this_loop().calls.call_in_batch(items, batch_work, passable=True)

    async def read(self, operation: Operation[T]) -> T:
        """Run a long read on the connection for searches, once the earlier calls are done."""
        here = self.of_this_loop()
        await _done(here.calls)
        await _done(here.duties)
        return await here.searches.call(lambda conn: operation(self.session(conn)), SEARCH_SECONDS)

    async def run(self, conn: AsyncConnection[Any], operation: Operation[T]) -> T:
        """Run an operation on this connection, and ring its topics when it is done."""
        session = self.session(conn)
        answer = await operation(session)
        self.doorbell.ring(session.topics)
        return answer

    def session(self, conn: AsyncConnection[Any]) -> PostgresSession:
        """Return a session for one operation on this connection."""
        return PostgresSession(conn, self.number, self._sql, pooled=self._address.transaction_pooling)

    def of_this_loop(self) -> LoopConnections:
        """Return the connections of the running event loop."""
        loop = asyncio.get_running_loop()
        here = self._by_loop.get(loop)
        if here is None:
            if self._is_closed:
                raise LifecycleError(f"{self._address.place}: the store is closed")
            self._forget_ended_loops()
            to = (self._address, self.prepare)
            silent = self._fell_silent
            here = LoopConnections(
                calls=CallQueue(*to, silent),
                claims=ClaimQueues(lambda: CallQueue(*to, silent)),
                duties=CallQueue(*to, silent, gathers=True),
                searches=CallQueue(*to, silent),
                transactions=TransactionPool(*to),
            )
            with self._lock:
                self._by_loop[loop] = here
        return here

    def _fell_silent(self) -> None:
        """Replace all connections before their next calls, because one has fallen silent; from any event loop."""
        self.doorbell.reconnect()
        with self._lock:
            everything = list(self._by_loop.values())
        for connections in everything:
            connections.suspect()

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def connect(self) -> None:
        """Open the connections that every process needs, at the same time. A closed store opens again."""
        self._is_closed = False
        here = self.of_this_loop()
        await asyncio.gather(here.calls.call(_nothing), here.duties.call(_nothing))

    async def prepare(self, conn: AsyncConnection[Any]) -> None:
        """Make a new connection ready: bring the schema up to date, and look up or create the namespace."""
        known = await migrations.known_namespace(conn, self._address.schema, self.namespace)
        if known is None:
            await migrations.upgrade(conn, self._address.schema, after=False)
            known = await self.enter(conn)
        self.number = known
        with self._lock:
            if not self._is_closed:  # a transaction that begins while the store closes connects after that
                self._is_open = True
                self.doorbell.start(channel(self._address.schema, known))

    async def enter(self, conn: AsyncConnection[Any]) -> int:
        """Return the number of the namespace; choose one if it has none."""
        for number in count(crc32(self.namespace.encode()) % LARGEST_NUMBER):
            known = await self._find_number(conn)
            if known is not None:
                return known
            # Where another namespace has this number, nothing is added, and the next one is tried.
            added = (number % LARGEST_NUMBER + 1, self.namespace)
            await search_path.execute(conn, self._sql["add_namespace"], added)
        raise AssertionError("there are fewer namespaces than numbers")

    async def _find_number(self, conn: AsyncConnection[Any]) -> int | None:
        row = await (await search_path.execute(conn, self._sql["find_namespace"], (self.namespace,))).fetchone()
        return None if row is None else int(row[0])

    @property
    def open(self) -> bool:
        """Return whether the schema is known to exist, and the doorbell has begun to connect."""
        return self._is_open and self.doorbell.started

    @property
    def channel(self) -> str:
        """The channel of the namespace's notifications."""
        return channel(self._address.schema, self.number)

    async def close(self) -> None:
        """Finish all calls, on every event loop, and release everything."""
        with self._lock:
            everything, self._by_loop = self._by_loop, {}
            self._is_open, self._is_closed = False, True
        await asyncio.gather(*(_close(loop, connections) for loop, connections in everything.items()))
        await asyncio.gather(asyncio.to_thread(self.blocking.close), asyncio.to_thread(self.doorbell.stop))

    def _forget_ended_loops(self) -> None:
        with self._lock:
            ended = [self._by_loop.pop(loop) for loop in list(self._by_loop) if loop.is_closed()]
        for connections in ended:
            connections.abandon()


async def _nothing(_conn: AsyncConnection[Any]) -> None:
    """Do nothing: the call only connects."""


async def _done(queue: CallQueue) -> None:
    """Wait until the calls made so far are done."""
    pending = queue.pending()
    if pending:
        await asyncio.wait(pending)


async def _close(loop: asyncio.AbstractEventLoop, connections: LoopConnections) -> None:
    if loop is asyncio.get_running_loop():
        await connections.close()
        return
    done: Future[None] = Future()

    def begin() -> None:  # not a coroutine: a loop that is about to end would never run it
        busy = connections.busy()
        if busy is not None:
            busy.add_done_callback(lambda _: begin())
            return
        connections.abandon()
        done.set_result(None)

    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(begin)
    waiting = asyncio.wrap_future(done)
    began = time.monotonic()
    while loop.is_running() and not waiting.done():  # the loop may end before it runs `begin`
        await asyncio.wait([waiting], timeout=CLOSE_POLL_SECONDS)
        if time.monotonic() - began > CANCEL_TIMEOUT:  # the server is silent
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(connections.break_off)
            began = time.monotonic()
    if not done.done():
        connections.abandon()
