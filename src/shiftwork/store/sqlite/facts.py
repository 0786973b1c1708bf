"""The facts that `shiftwork.core.workers.admission` needs, read from the counters and indices. It only reads."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace as copy

from shiftwork.core.model.workers import WorkerState
from shiftwork.core.scaling.backlog import READY_COUNTED
from shiftwork.core.workers.admission import Facts, Head, Lane, Running, neighbours
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession


def facts(session: SqliteSession, workers: Iterable[str], now: float, *, count_ready: bool = False) -> Facts:
    """Return everything that an admission of jobs of these workers looks at."""
    docs = session.docs()
    near = neighbours(workers, docs.gates)
    served = session.values("served_pools", (session.namespace, now))
    return Facts(
        lanes={worker: _lane(session, worker, count_ready=count_ready) for worker in near},
        gates={worker: docs.gates[worker] for worker in near if worker in docs.gates},
        breakers=dict(docs.breakers),
        pools=dict(docs.pools),
        served=set(served),
    )


def survey(session: SqliteSession, workers: Iterable[str] | None, now: float) -> Facts:
    """Return the facts about these workers and their neighbours, or about all."""
    if workers is None:
        workers = {*session.values("known_workers", (session.namespace,)), *session.docs().gates}
    return facts(session, workers, now, count_ready=True)


def _lane(session: SqliteSession, name: str, *, count_ready: bool) -> Lane:
    worker = session.workers.find(name)
    if worker is None:
        return Lane(state=WorkerState(worker=name))
    session.flush()
    lanes = session.lanes_of(worker)
    heads = [
        head
        for lane in lanes
        if lane.queued
        for head in session.run("heads_of_lane", (lane.pool, worker, 1)).fetchall()
    ]
    running = sum(lane.processing for lane in lanes)
    return Lane(
        state=copy(session.state(worker)),
        running=running,
        eldest=_eldest(session, worker) if running else None,
        newest_started_at=session.value("newest_running", (worker,)) if running else None,
        head=_head(min(heads)) if heads else None,
        retrying=any(lane.retrying for lane in lanes),
        live=any(lane.live for lane in lanes),
        ready=_ready(session, worker, {lane.pool: lane.queued for lane in lanes}) if count_ready else None,
    )


def _ready(session: SqliteSession, worker: int, queued: Mapping[int, int]) -> int | None:
    """Return how many jobs of a worker are not parked, given the queued ones by pool; None if none is parked."""
    if not session.value("has_keys", (worker,)):
        return None
    ready: int = sum(session.value("ready_in_lane", (pool, worker, READY_COUNTED)) for pool in queued)
    return ready if ready < sum(queued.values()) else None


def _head(row: Sequence[Any]) -> Head:
    rank, id, since, _ = row
    return Head(rank, id, since)


def _eldest(session: SqliteSession, worker: int) -> Running | None:
    row = session.run("eldest_running", (worker,)).fetchone()
    if row is None:
        return None
    id, holder, started_at = row
    return Running(id, session.instances.name(holder), started_at)
