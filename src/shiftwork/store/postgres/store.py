"""The store in a PostgreSQL database: it implements `shiftwork.store.protocol` for processes on many machines.

This is the entry point: each method passes an operation to a connection of its event loop (`server.store_connections`).
The operations are in the modules beside this one, and mostly in functions/*.sql; nothing here knows a table.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import repeat
from typing import Any, Concatenate, ParamSpec, TypeVar

import psycopg
from psycopg import AsyncConnection, Rollback

from shiftwork.core.doc_kinds import GATES
from shiftwork.core.health.health_values import Finding
from shiftwork.core.health.position import Ahead, QueuePlace
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import Amended, Change, Finished, JobFilter, Outcome
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import Added, DeadJob, JobRecord, JobStatus, NewJob, ProgressNote, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import Beat, InstanceRecord, Orders
from shiftwork.core.observing.pool_stats import PoolStats, Stats
from shiftwork.core.values.job_limits import SHOWN_STEPS, SIGNALS
from shiftwork.core.workers.admission import Facts
from shiftwork.errors import JobStateError
from shiftwork.store.abilities import SchemaStep
from shiftwork.store.postgres import doctor, durable, user_transaction
from shiftwork.store.postgres.add import Adder, extend
from shiftwork.store.postgres.amend import amend, rewrite, switch
from shiftwork.store.postgres.claim import Claimer
from shiftwork.store.postgres.docs import erase, put, put_gates, stored_docs
from shiftwork.store.postgres.events import events, record
from shiftwork.store.postgres.facts import survey
from shiftwork.store.postgres.find import ahead, dead, find, get
from shiftwork.store.postgres.finish import finish, note
from shiftwork.store.postgres.flows import flows, members, results
from shiftwork.store.postgres.lead import promote, prune, reap
from shiftwork.store.postgres.lease import beat, drop, hold, instances, leave
from shiftwork.store.postgres.queries import statements
from shiftwork.store.postgres.restore import BYTES_OF_AN_ITEM, restore, size_of, take_over
from shiftwork.store.postgres.server import migrations
from shiftwork.store.postgres.server.address import parse
from shiftwork.store.postgres.server.call_queue import CALL_SECONDS
from shiftwork.store.postgres.server.connecting import answered, connect, disconnect
from shiftwork.store.postgres.server.faults import lost, translate
from shiftwork.store.postgres.server.statements import PostgresSession, Statements
from shiftwork.store.postgres.server.store_connections import StoreConnections
from shiftwork.store.postgres.stats import stats
from shiftwork.store.protocol import Bell, Claims, Promoted

P = ParamSpec("P")
T = TypeVar("T")


class PostgresTransaction:
    """An open transaction. It commits when its block ends, and rolls back when the block raises."""

    def __init__(self, session: PostgresSession, place: str) -> None:
        self.connection: AsyncConnection[Any] = session.conn
        self._session = session
        self._place = place

    async def finish(self, outcome: Outcome, now: float) -> bool:
        """Write the outcome of a job. Returns False if its run is stale: then the transaction must not commit."""
        async with self._call():
            return (await finish(self._session, [outcome], now)).accepted[0]

    async def keep_step(self, id: str, fence: int, step: Step) -> bool:
        """Keep a step of a job. Returns False if its run is stale: then the transaction must not commit."""
        async with self._call():
            return durable.is_kept(id, await durable.keep_step(self._session, id, fence, step))

    @asynccontextmanager
    async def _call(self) -> AsyncIterator[None]:
        try:
            async with answered(self.connection, self._place, within=CALL_SECONDS):
                yield
        except psycopg.Error as error:
            raise translate(error, self._place) from error


class PostgresStore:
    """A store in one schema of a database. Any number of processes, machines and namespaces can share it."""

    def __init__(self, url: str, *, namespace: str = "default") -> None:
        self._address = parse(url)
        self.url: str = self._address.url
        self._sql = statements(self._address.schema)
        lone = Adder.lone_statement(self._sql)
        self._connections = StoreConnections(self._address, namespace, self._sql, lone)
        self._adder = Adder(self._connections, self._address, lone)
        self._claimer = Claimer()

    async def _call(
        self, operation: Callable[Concatenate[PostgresSession, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._connections.call(lambda session: operation(session, *args, **kwargs))

    async def _call_beside(
        self, operation: Callable[Concatenate[PostgresSession, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._connections.call_beside(lambda session: operation(session, *args, **kwargs))

    async def _ask(
        self, operation: Callable[Concatenate[Statements, P], Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._connections.ask(lambda session: operation(session, *args, **kwargs))

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def open(self) -> None:
        if not self._connections.open:
            await self._connections.connect()

    async def close(self) -> None:
        await self._connections.close()

    async def server_time(self) -> float:
        return await self._connections.ask(_server_time)

    # ── hot path ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def add(self, jobs: Sequence[NewJob], now: float) -> list[Added]:
        if not jobs:
            return []
        return await self._adder.add(list(zip(jobs, repeat(now), strict=False)))

    def add_blocking(self, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
        return self._adder.add_blocking([(job, now) for job in jobs])

    async def claim(
        self, instance: str, pool: str, n: int, now: float, workers: Collection[str], *, edition: str | None = None
    ) -> Claims:
        claims = await self._connections.claim(
            lambda session: self._claimer.claim(session, instance, pool, n=n, now=now, workers=workers, edition=edition)
        )
        if claims.stale:  # if the tables were emptied, the row of the namespace is gone as well
            await self._call(self._enter)
        return claims

    async def _enter(self, session: PostgresSession) -> None:
        await self._connections.enter(session.conn)

    async def finish(self, outcomes: Sequence[Outcome], now: float) -> Finished:
        if not outcomes:
            return Finished([], [])
        return await self._connections.call_passable(
            lambda session: finish(session, outcomes, now), items=len(outcomes)
        )

    async def beat(self, beats: Sequence[Beat], ttl: float, now: float) -> Orders:
        if not beats:
            return Orders([], [], await self.server_time())
        return await self._ask(beat, beats, ttl, now)

    async def note(self, notes: Sequence[ProgressNote]) -> None:
        if notes:
            await self._call(note, notes)

    # ── flows and durable functions ──────────────────────────────────────────────────────────────────────────────

    async def results(self, ids: Sequence[str]) -> list[bytes | None]:
        return await self._ask(results, ids) if ids else []

    async def keep_step(self, id: str, fence: int, step: Step, *, taking: str | None = None) -> bool:
        [kept] = await self._connections.call_in_batch([(id, fence, step, taking)], self._keep_steps)
        return durable.is_kept(id, kept)

    async def _keep_steps(self, conn: AsyncConnection[Any], steps: list[Any]) -> list[Any]:
        return await self._connections.run(conn, lambda session: durable.keep_steps(session, steps))

    async def steps(self, id: str, fence: int, after: int) -> StepPage | None:
        return await self._ask(durable.steps, id, fence, after)

    async def signal(self, id: str, name: str) -> Signal | None:
        return await self._ask(durable.first_signal, id, name)

    async def parts(self, id: str, *, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
        return await self._connections.read(lambda session: durable.parts(session, id, steps, signals))

    async def extend(self, parent: str, fence: int, new: Sequence[NewJob], now: float) -> list[Added] | None:
        return await self._call(extend, parent, fence, [(job, now) for job in new])

    async def send(self, id: str, signal: Signal, now: float) -> JobStatus | None:
        return await self._call(durable.send, id, signal, now)

    async def flows(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[FlowRecord]:
        return await self._connections.read(lambda session: flows(session, behind, limit))

    async def members(
        self, flow: str, behind: tuple[float, str] | None = None, limit: int = 10_000
    ) -> list[FlowMember]:
        return await self._connections.read(lambda session: members(session, flow, behind, limit))

    # ── leader ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def promote(self, n: int, now: float) -> Promoted:
        return await self._call_beside(promote, n, now)

    async def reap(self, holder: str, n: int, now: float) -> list[JobRecord]:
        return await self._call_beside(reap, holder, n, now)

    async def prune(self, n: int, now: float) -> int:
        return await self._call_beside(prune, n, now)

    async def leave(self, instances: Sequence[str], now: float) -> None:
        if instances:
            await self._call_beside(leave, instances, now)

    # ── coordination ─────────────────────────────────────────────────────────────────────────────────────────────

    async def hold(self, name: str, holder: str, limit: int, ttl: float, now: float) -> bool:
        return await self._ask(hold, name, holder, limit=limit, ttl=ttl, now=now)

    async def drop(self, name: str, holder: str) -> None:
        await self._ask(drop, name, holder)

    # ── docs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def docs(self, *kinds: str) -> list[Doc]:
        return await self._ask(stored_docs, kinds)

    async def put(self, docs: Sequence[Doc]) -> list[bool]:
        if any(doc.kind == GATES.name for doc in docs):
            return await self._call_beside(put_gates, docs)
        return await self._ask(put, docs)

    async def erase(self, docs: Sequence[Doc]) -> list[bool]:
        return await self._call_beside(erase, docs)

    async def switch(self, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
        return await self._call_beside(switch, worker, enabled=enabled, reason=reason, now=now)

    # ── moving in from another store ─────────────────────────────────────────────────────────────────────────────

    async def restore(self, jobs: Sequence[JobRecord], now: float) -> None:  # noqa: ARG002 - other stores need the time
        if jobs:
            items = len(jobs) + sum(map(size_of, jobs)) // BYTES_OF_AN_ITEM
            await self._connections.call(lambda session: restore(session, jobs), items=items)

    async def take_over(self, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
        return await self._call(take_over, states, totals, fence)

    # ── people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def survey(self, workers: Iterable[str] | None, now: float) -> Facts:
        return await self._ask(survey, workers, now)

    async def ahead(self, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
        return await self._ask(ahead, pool, places)

    async def get(self, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
        if not ids:
            return []
        return await self._ask(get, ids, whole=whole)

    async def find(self, wanted: JobFilter) -> list[JobRecord]:
        return await self._connections.read(lambda session: find(session, wanted))

    async def dead(self, behind: tuple[float, str] | None = None, limit: int = 100) -> list[DeadJob]:
        return await self._connections.read(lambda session: dead(session, behind, limit))

    async def amend(self, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
        if not ids:
            return []
        return await self._connections.call(lambda session: amend(session, ids, change, now), items=len(ids))

    async def rewrite(self, rewrites: Sequence[Rewrite]) -> list[bool]:
        return await self._call(rewrite, rewrites)

    async def stats(self, now: float) -> Stats:  # noqa: ARG002 - the counters do not depend on it
        return await self._ask(stats)

    async def instances(self) -> list[InstanceRecord]:
        return await self._ask(instances)

    async def record(self, events: Sequence[Event]) -> None:
        if events:
            await self._ask(record, events)

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        return await self._ask(events, after, before, limit)

    def listen(self, topics: Collection[str]) -> Bell:
        return self._connections.doorbell.listen(topics)

    async def try_room(self) -> None:
        await self._connections.read(doctor.try_room)

    async def check(self) -> dict[str, Finding]:
        await self._connections.connect()
        await asyncio.to_thread(self._connections.doorbell.wait_ready)
        listens = self._connections.doorbell.listens
        return await self._connections.read(partial(doctor.check, address=self._address, listens=listens))

    # ── the schema, by hand ──────────────────────────────────────────────────────────────────────────────────────

    async def schema_steps(self) -> list[SchemaStep]:
        return await self._by_hand(lambda conn: migrations.status(conn, self._address.schema))

    async def upgrade_schema(self, *, after: bool) -> list[SchemaStep]:
        return await self._by_hand(lambda conn: migrations.upgrade(conn, self._address.schema, after=after))

    async def schema_sql(self, *, pending: bool, after: bool, grant_to: str | None) -> str:
        schema = self._address.schema
        installed = await self._by_hand(lambda conn: migrations.installed_in(conn, schema)) if pending else None
        return migrations.sql(schema, installed=installed, after=after, grant_to=grant_to)

    async def _by_hand(self, work: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        """Do this work on a connection of its own, without opening the store: it may have no schema yet."""
        conn = await connect(self._address, _unprepared)
        try:
            return await work(conn)
        except psycopg.Error as error:
            raise translate(error, self._address.place) from error
        finally:
            disconnect(conn)

    # ── transactions of the user ───────────────────────────────────────────────────────────────────────────────────

    async def add_with(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """Add these jobs within the transaction of the user's asynchronous connection: they exist once it commits."""
        await self.open()
        return await user_transaction.add(connection, self._sql, jobs, now=now, place=self._place)

    def add_with_blocking(self, connection: Any, jobs: Sequence[NewJob], now: float) -> list[Added]:
        """Add these jobs within the transaction of the user's blocking connection. The store must be open."""
        return user_transaction.add_blocking(connection, self._sql, jobs, now=now, place=self._place)

    @property
    def _place(self) -> user_transaction.Place:
        return self._connections.number, self._connections.channel

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[PostgresTransaction]:
        """Begin a transaction on a connection of the store, in which a job can be finished."""
        async with self._connections.of_this_loop().transactions.borrow() as conn:
            session = self._connections.session(conn)
            async with _whole_transaction(conn, self._address.place):
                yield PostgresTransaction(session, self._address.place)
            self._connections.doorbell.ring(session.topics)


@asynccontextmanager
async def _whole_transaction(conn: AsyncConnection[Any], place: str) -> AsyncIterator[None]:
    """Commit when the block ends. Raises `StoreError` if the server fails, or is lost within the block.

    Any other error of the block is the user's own and is raised as it is, such as a broken constraint.
    """
    theirs: BaseException | None = None
    try:
        async with conn.transaction():
            try:
                yield
            except Rollback as error:  # psycopg would swallow it, as if everything had been written
                message = "psycopg.Rollback has undone everything; raise an exception of your own instead"
                raise JobStateError(message) from error
            except BaseException as error:
                theirs = error
                raise
    except psycopg.Error as error:
        if error is theirs and not (conn.closed and lost(error)):
            raise
        raise translate(error, place) from error


async def _unprepared(conn: AsyncConnection[Any]) -> None:
    """Prepare nothing: the connection only changes the schema."""


async def _server_time(session: Statements) -> float:
    return float(await session.value("server_time"))
