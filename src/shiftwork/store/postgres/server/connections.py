"""The connections of one store. Each event loop has a queue for calls about jobs in order (adding, finishing,
changing), queues for claims, one for what a node does beside that, one for searches, and a pool for transactions of
jobs. So no job waits to be added or to start until its node has done its duties, or has claimed for its other pools.

This module owns opening (every new connection brings the schema up to date and looks up the number of the namespace)
and closing, from any thread. The doorbell and the bells live as long as the store.

The number of a namespace is made of its name. So the processes that know it and those that look it up mean the same
one, even if the tables were emptied in between.
"""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final, TypeVar
from zlib import crc32

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.pq.abc import PGresult

from shiftwork.core.model.job_changes import Finished, Outcome
from shiftwork.core.model.jobs import Added
from shiftwork.errors import LifecycleError
from shiftwork.store.postgres import jobs, rows
from shiftwork.store.postgres.server import migrations, search_path
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.blocking_session import BlockingSession
from shiftwork.store.postgres.server.call_queue import (
    CALL_SECONDS,
    CANCEL_TIMEOUT,
    ITEM_SECONDS,
    CallQueue,
    LoneStatement,
)
from shiftwork.store.postgres.server.claim_queues import ClaimQueues
from shiftwork.store.postgres.server.direct_call import Prepared
from shiftwork.store.postgres.server.doorbell import Doorbell, channel
from shiftwork.store.postgres.server.queries import statements
from shiftwork.store.postgres.server.session import PostgresSession, QueuedStatements, Statements
from shiftwork.store.postgres.server.transaction_pool import TransactionPool

CLOSE_POLL_SECONDS: Final = 0.02
LARGEST_NUMBER: Final = 2**31 - 1
SEARCH_SECONDS: Final = 30.0
"""How long a search may take."""
T = TypeVar("T")
Operation = Callable[[PostgresSession], Awaitable[T]]


class LoopConnections(Struct, frozen=True):
    """The connections of one event loop."""

    calls: CallQueue
    claims: ClaimQueues
    duties: CallQueue
    searches: CallQueue
    transactions: TransactionPool

    @property
    def queues(self) -> tuple[CallQueue, ...]:
        return self.calls, *self.claims.queues, self.duties, self.searches

    async def close(self) -> None:
        """Finish all calls and close the connections; on their own event loop."""
        await asyncio.gather(*(queue.close() for queue in self.queues))
        self.transactions.close()

    def busy(self) -> "asyncio.Future[Any] | None":
        """Return a task that makes calls, or a call under way, if there is one."""
        return next((queue.task for queue in self.queues if queue.task is not None), None)

    def break_off(self) -> None:
        """Fail the calls under way, because the server does not answer; on their own event loop."""
        for queue in self.queues:
            queue.break_off()

    def suspect(self) -> None:
        """Open other connections before the next calls; from any thread."""
        for queue in self.queues:
            queue.suspect()
        self.transactions.suspect()

    def abandon(self) -> None:
        """Close the connections when no call is under way; from any thread."""
        for queue in self.queues:
            queue.abandon()
        self.transactions.close()


class Connections:
    """All connections of one store in this process, except the doorbell's."""

    def __init__(self, address: PostgresAddress, namespace: str) -> None:
        self.doorbell: Doorbell = Doorbell(address)
        self.namespace = namespace
        self._address = address
        self._sql = statements(address.schema)
        self._add_one = Prepared.of("shiftwork_add_one", self._sql["add_one"], binary=(rows.LONE_PAYLOAD,))
        self._line = BlockingSession(address, self._add_one, patience=CALL_SECONDS)
        self._number = 0
        """The number of the namespace, once a connection has looked it up. Closing keeps it for the calls that wait."""
        self._is_open = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._by_loop: dict[asyncio.AbstractEventLoop, LoopConnections] = {}

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, operation: Operation[T], *, items: int = 1) -> T:
        """Run an operation on so many items after the calls of this event loop, and ring its topics when it is done."""
        here = self.of_this_loop()
        patience = CALL_SECONDS + ITEM_SECONDS * items
        claims = [pending for queue in here.claims.queues for pending in queue.pending()]
        return await here.calls.call(lambda conn: self._run_and_ring(conn, operation), patience, after=claims)

    async def claim(self, operation: Operation[T]) -> T:
        """Run an operation beside other claims and outcomes, once the other calls made before it are done."""
        here = self.of_this_loop()
        return await here.claims.next().call(
            lambda conn: self._run_and_ring(conn, operation), after=here.calls.pending_for_claims()
        )

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        """Write outcomes after the calls of this event loop, but not after its claims."""
        return await self.call_beside_claims(lambda session: jobs.finish(session, outcomes, now), items=len(outcomes))

    async def call_beside_claims(self, operation: Operation[T], *, items: int = 1) -> T:
        """Run an operation about running jobs after the calls of this event loop, but not after its claims."""
        return await self.of_this_loop().calls.call(
            lambda conn: self._run_and_ring(conn, operation), CALL_SECONDS + ITEM_SECONDS * items, passable=True
        )

    async def call_beside(self, operation: Operation[T], *, items: int = 1) -> T:
        """Run an operation beside the calls, once those made before it are done, and ring its topics."""
        here = self.of_this_loop()
        await _done(here.calls)
        return await here.duties.call(
            lambda conn: self._run_and_ring(conn, operation), CALL_SECONDS + ITEM_SECONDS * items
        )

    async def ask(self, operation: Callable[[Statements], Awaitable[T]]) -> T:
        """Run an operation of one statement beside the calls, together with other such operations, and ring its topics.

        Several statements are one transaction, so it must not lock what calls about jobs lock.
        """
        here = self.of_this_loop()
        await _done(here.calls)
        if not self._number:
            await here.duties.call(_nothing)
        session = QueuedStatements(here.duties, self._number, self._together)
        answer = await operation(session)
        self.doorbell.ring(session.topics)
        return answer

    async def _together(self, conn: AsyncConnection[Any], statements: list[Any]) -> list[Any]:
        return await self.session(conn).together(statements)

    async def add(self, timed: list[jobs.Timed]) -> list[Added]:
        """Add jobs after the calls of this event loop, together with those of other callers."""
        calls = self.of_this_loop().calls
        lone = None if calls.busy else self._lone(timed)
        if lone is None:
            return await calls.call_in_batch(timed, self._add)
        return await calls.call_alone(timed, self._add, lone)

    def add_blocking(self, timed: list[jobs.Timed]) -> list[Added] | None:
        """Add jobs on this thread, which runs no event loop. None if that has to go another way."""
        lone = self._lone(timed) if self.open else None
        result = None if lone is None else self._line.run(lone.arguments)
        return None if result is None else self._read_added(timed[0], result)

    def _lone(self, timed: list[jobs.Timed]) -> LoneStatement | None:
        """Return the statement that adds a job which comes alone; None if it cannot."""
        if len(timed) > 1 or self._address.transaction_pooling or not rows.is_lone(timed[0][0]):
            return None
        try:
            arguments = rows.lone_row(self._number, *timed[0])
        except UnicodeEncodeError:  # the ordinary way reports it
            return None
        return LoneStatement(self._add_one, arguments, partial(self._read_added, timed[0]))

    def _read_added(self, timed: jobs.Timed, result: PGresult) -> list[Added]:
        """Read the result of the function `add_one`."""
        (job, now), twins, topics = timed, result.get_value(0, 0), result.get_value(0, 1)
        if topics != b"{}":
            self.doorbell.ring((f"pool:{job.pool}",) if job.run_at <= now else ("leader",))
        return [Added(job.id, created=twins is None)]

    async def _add(self, conn: AsyncConnection[Any], timed: list[Any]) -> list[Any]:
        return await self._run_and_ring(conn, lambda session: jobs.add(session, timed))

    async def keep_step(self, step: jobs.NewStep) -> int:
        """Keep a step after the calls of this event loop, but not after its claims, together with other jobs' steps."""
        [kept] = await self.of_this_loop().calls.call_in_batch([step], self._keep_steps, passable=True)
        return int(kept)

    async def _keep_steps(self, conn: AsyncConnection[Any], steps: list[Any]) -> list[Any]:
        return await self._run_and_ring(conn, lambda session: jobs.keep_steps(session, steps))

    async def read(self, operation: Operation[T]) -> T:
        """Run a long read beside the other calls, once the calls made before it are done."""
        here = self.of_this_loop()
        await _done(here.calls)
        await _done(here.duties)
        return await here.searches.call(lambda conn: operation(self.session(conn)), SEARCH_SECONDS)

    async def _run_and_ring(self, conn: AsyncConnection[Any], operation: Operation[T]) -> T:
        session = self.session(conn)
        answer = await operation(session)
        self.doorbell.ring(session.topics)
        return answer

    def session(self, conn: AsyncConnection[Any]) -> PostgresSession:
        """Return a session for one operation on this connection."""
        return PostgresSession(conn, self._number, self._sql, pooled=self._address.transaction_pooling)

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
        """A connection has fallen silent: use none of those that are open now; from any event loop."""
        self.doorbell.reconnect()
        with self._lock:
            everything = list(self._by_loop.values())
        for connections in everything:
            connections.suspect()

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def connect(self) -> None:
        """Open the connections that every process needs, at the same time, also after a close."""
        self._is_closed = False
        here = self.of_this_loop()
        await asyncio.gather(here.calls.call(_nothing), here.duties.call(_nothing))

    async def prepare(self, conn: AsyncConnection[Any]) -> None:
        """Make a new connection ready: bring the schema up to date, and look up or create the namespace."""
        known = await migrations.known_namespace(conn, self._address.schema, self.namespace)
        if known is None:
            await migrations.upgrade(conn, self._address.schema, after=False)
            known = await self.enter(conn)
        self._number = known
        with self._lock:
            if not self._is_closed:  # a transaction that begins while the store closes connects after that
                self._is_open = True
                self.doorbell.start(channel(self._address.schema, known))

    async def enter(self, conn: AsyncConnection[Any]) -> int:
        """Return the number of the namespace, which gets one if it has none."""
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
        """Whether the schema is known to exist, and the doorbell has begun to connect."""
        return self._is_open and self.doorbell.started

    @property
    def number(self) -> int:
        """The number of the namespace, once the store is open."""
        return self._number

    @property
    def channel(self) -> str:
        """The channel of the namespace's notifications."""
        return channel(self._address.schema, self._number)

    async def close(self) -> None:
        """Finish all calls, on every event loop, and release everything."""
        with self._lock:
            everything, self._by_loop = self._by_loop, {}
            self._is_open, self._is_closed = False, True
        await asyncio.gather(*(_close(loop, connections) for loop, connections in everything.items()))
        await asyncio.gather(asyncio.to_thread(self._line.close), asyncio.to_thread(self.doorbell.stop))

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
