"""Small records: docs, worker states, events, and statistics for people.

A write of gates also stores which workers the gates tie together, so that the database can lock and wake all of them
without decoding docs.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import json, msgpack

from shiftwork.core.doc_kinds import GATES, READ_BY_CLAIMS, read_event
from shiftwork.core.health import position
from shiftwork.core.health.position import Ahead, CountedLane, QueuePlace, aheads
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.model.event import Event
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.joining import Edition
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.facts import survey
from shiftwork.store.postgres.server.session import PostgresSession, Statements

END: Final = 2**63 - 1
"""A number above that of every event."""


class LaneStatsRow(NamedTuple):
    """One row of the statement `stats`: the counters of one worker in one pool."""

    pool: str
    worker: str
    scheduled: int
    retrying: int
    waiting: int
    queued: int
    processing: int
    completed: int
    dead: int
    cancelled: int
    added: int
    succeeded: int
    failed: int
    died: int
    run_seconds: float
    head_rank: float | None
    head_id: str | None
    head_run_at: float | None
    marks: str | None
    """The marks of the pool as JSON, in the row of its first worker."""

    @property
    def has_worked(self) -> bool:
        """Whether there is or was any job of this worker; totals that moved in belong to none."""
        return bool(self.worker) and any(self[self._fields.index("scheduled") : self._fields.index("head_rank")])


async def docs(session: Statements, kinds: Collection[str]) -> list[Doc]:
    """Return all docs of these kinds, or of every kind, by kind and name."""
    if not kinds:
        return [Doc(*row) for row in await session.rows("all_docs", (session.namespace,))]
    return [Doc(*row) for row in await session.rows("docs", (session.namespace, arrays.texts(list(kinds))))]


async def put(session: Statements, docs: Sequence[Doc]) -> list[bool]:
    """Write each doc, none of them gates, if the stored version is the one it was made from."""
    return _written(session, docs, await session.row("put", _put_args(session, docs))) if docs else []


async def put_gates(session: PostgresSession, docs: Sequence[Doc]) -> list[bool]:
    """Write each doc, some of them gates, if the stored version is the one it was made from."""
    async with session.quick_transaction():
        sent = await session.send("put", _put_args(session, docs))
        await _tie(session)
    [row] = await sent.fetchall()
    return _written(session, docs, row)


async def erase(session: PostgresSession, docs: Sequence[Doc]) -> list[bool]:
    """Delete each doc if the stored version is its own."""
    if not docs:
        return []
    args = (
        session.namespace,
        arrays.texts([doc.kind for doc in docs]),
        arrays.texts([doc.name for doc in docs]),
        arrays.numbers([doc.version for doc in docs]),
        any(doc.kind in READ_BY_CLAIMS for doc in docs),
    )
    async with session.quick_transaction():
        sent = await session.send("erase", args)
        await _tie(session)
    [row] = await sent.fetchall()
    return _written(session, docs, row)


def _written(session: Statements, docs: Sequence[Doc], row: tuple[Any, ...]) -> list[bool]:
    kinds, names, topics = row
    session.ring(topics)
    written = {*zip(kinds or (), names or (), strict=True)}
    return [(doc.kind, doc.name) in written for doc in docs]


def _put_args(session: Statements, docs: Sequence[Doc]) -> tuple[Any, ...]:
    read = [READ_BY_CLAIMS[doc.kind].effective(doc.body) if doc.kind in READ_BY_CLAIMS else None for doc in docs]
    return (
        session.namespace,
        arrays.texts([doc.kind for doc in docs]),
        arrays.texts([doc.name for doc in docs]),
        arrays.numbers([doc.version for doc in docs]),
        arrays.blobs([doc.body for doc in docs]),
        [isinstance(one, PoolDoc) and one.paused for one in read],
        [bool(one.after) if isinstance(one, Gates) else isinstance(one, BreakerState) and one.open for one in read],
        arrays.texts([_guard(one) for one in read]),
        any(doc.kind in READ_BY_CLAIMS for doc in docs),
    )


def _guard(read: object) -> str | None:
    return read.breaker if isinstance(read, Gates) else read.token if isinstance(read, Edition) else None


async def _tie(session: PostgresSession) -> None:
    """Store again which workers are tied together. The lock keeps out claims and other writers of gates."""
    found = await session.rows("tied", (session.namespace,))
    tied = ties({name: read for name, body, _ in found if (read := GATES.decode(body))})
    for name, _, had in found:
        names = tied.get(name)
        if names != had:
            await session.send("tie", (None if names is None else arrays.texts(names), session.namespace, name))


def ties(gates: Mapping[str, Gates]) -> dict[str, list[str]]:
    """Return, for each worker whose gates are not open, all workers that gates tie to it, in either direction."""
    bound = {name: {name, *gate.conflicts, *gate.after, *gate.before} for name, gate in gates.items() if not gate.open}
    guarded: dict[str, set[str]] = {}
    for name in bound:
        if gates[name].breaker:
            guarded.setdefault(gates[name].breaker or "", set()).add(name)
    groups: list[set[str]] = []
    for names in (*bound.values(), *guarded.values()):
        near = [group for group in groups if group & names]
        groups = [group for group in groups if not group & names]
        groups.append(names.union(*near))
    return {name: sorted(group) for group in groups for name in group if name in bound}


async def switch(
    session: PostgresSession, worker: str, *, enabled: bool, reason: str | None, now: float
) -> WorkerState:
    """Enable a worker and reset its failures, or disable it with a reason."""
    async with session.conn.transaction():
        args = (session.namespace, worker, enabled, rows.storable(reason), now)
        session.ring(await session.value("switch", args))
        known = await survey(session, [worker], now)
    return known.lanes[worker].state


async def record(session: Statements, events: Sequence[Event]) -> None:
    """Store these events, with ascending numbers."""
    persons = [event.by_person for event in events]
    bodies = arrays.blobs([msgpack.encode(event) for event in events])
    await session.value("record", (session.namespace, persons, bodies))


async def events(session: Statements, after: int, before: int | None, limit: int) -> list[Event]:
    """Return the newest events between two numbers, the oldest of them first."""
    end = END if before is None else before
    found = await session.rows("events", (session.namespace, after, end, limit))
    return [read_event(seq, body) for seq, body in reversed(found)]


async def ahead(session: Statements, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
    """Return how many jobs are ahead of places in the queue of a pool, by worker."""
    own = sorted({place.worker for place in places})
    order = sorted(range(len(places)), key=places.__getitem__)
    ranks, ids = [places[at].rank for at in order], [places[at].id for at in order]
    most = position.LANES + max(1, len(own))
    args = (session.namespace, pool, own, ranks, ids, most, position.COUNTED_OWN, position.COUNTED)
    place_of = {at: n for n, at in enumerate(order)}
    return aheads(
        places,
        [
            CountedLane(name, queued, (first or 0.0, last or 0.0), [counts[place_of[at]] for at in range(len(places))])
            for name, queued, counts, first, last in await session.rows("ahead", args)
        ],
    )


async def stats(session: Statements) -> Stats:
    """Return the numbers of all pools and workers that have jobs."""
    answer = Stats()
    heads: dict[str, tuple[float, str, float]] = {}
    for lane in map(LaneStatsRow._make, await session.rows("stats", {"namespace": session.namespace})):
        numbers = answer.pools.setdefault(lane.pool, PoolStats())
        _count(numbers, lane)
        _count_totals(numbers, lane)
        if lane.marks is not None:
            marks = json.decode(lane.marks, type=dict[str, float])
            numbers.wait_seconds = marks.pop(rows.WAITED, 0.0)
            answer.count_marks(lane.pool, {name: int(n) for name, n in marks.items()})
        if lane.has_worked:
            _count_worker(answer.workers.setdefault(lane.worker, WorkerStats()), lane)
        if lane.head_rank is not None and lane.head_id is not None and lane.head_run_at is not None:
            head = (lane.head_rank, lane.head_id, lane.head_run_at)
            heads[lane.pool] = min(heads.get(lane.pool, head), head)
    for pool, (_, _, run_at) in heads.items():
        answer.pools[pool].oldest_run_at = run_at
    return answer


def _count(numbers: PoolStats | WorkerStats, lane: LaneStatsRow) -> None:
    numbers.scheduled += lane.scheduled
    numbers.retrying += lane.retrying
    numbers.waiting += lane.waiting
    numbers.queued += lane.queued
    numbers.processing += lane.processing
    numbers.dead += lane.dead


def _count_worker(numbers: WorkerStats, lane: LaneStatsRow) -> None:
    _count(numbers, lane)
    numbers.completed += lane.succeeded
    numbers.failed += lane.failed
    numbers.died += lane.died
    numbers.run_seconds += lane.run_seconds


def _count_totals(numbers: PoolStats, lane: LaneStatsRow) -> None:
    numbers.added += lane.added
    numbers.completed += lane.succeeded
    numbers.failed += lane.failed
    numbers.run_seconds += lane.run_seconds
