"""Whom to wake: the pools whose jobs may have waited for a change, and the leader when something is due sooner."""

from collections.abc import Collection, Iterable, Sequence
from math import inf

from shiftwork.core.jobs.statuses import FAILED
from shiftwork.core.workers.admission import neighbours
from shiftwork.store.sqlite.file.session import SqliteSession


def wake_tied(session: SqliteSession, worker: str) -> None:
    """Ring for the workers that may wait for something that changed about this one."""
    gates = session.docs().gates.get(worker)
    if gates is not None and not gates.open:
        wake_workers(session, neighbours([worker], session.docs().gates))


def wake_workers(session: SqliteSession, workers: Collection[str]) -> None:
    """Ring the pools where these workers have queued jobs: what they wait for may have changed."""
    session.flush()
    for name in workers:
        worker = session.workers.find(name)
        if worker is None:
            continue
        for lane in session.lanes_of(worker):
            if lane.queued:
                session.ring_pool(lane.pool)


def wake_all(session: SqliteSession) -> None:
    """Ring every pool that has queued jobs: what any of them waits for may have changed."""
    session.flush()
    session.ring(*(f"pool:{pool}" for pool in session.values("pools_with_queued", (session.namespace,))))


# ── the leader ────────────────────────────────────────────────────────────────────────────────────────────────────────


def due_before(session: SqliteSession, statuses: Iterable[int], *, expiring: bool = False) -> float | None:
    """When the leader wakes, before jobs of these statuses are written; None if none of them waits for a time."""
    if not expiring and not any(status <= FAILED for status in statuses):
        return None
    next_at = next_due(session)
    return inf if next_at is None else next_at


def next_due(session: SqliteSession) -> float | None:
    """When the next job is due or expires. A damaged row may hold anything instead."""
    times = [session.value(statement, (session.namespace,)) for statement in ("next_due", "next_expiry")]
    return min((time for time in times if isinstance(time, float)), default=None)


def ring_if_next(session: SqliteSession, times: Sequence[float]) -> None:
    """Wake the leader if one of the jobs that were written with these times is the next one."""
    if times and min(times) <= (next_due(session) or inf):
        session.ring("leader")


def ring_if_sooner(session: SqliteSession, times: Iterable[float], due: float | None) -> None:
    """Wake the leader if something is due sooner than before."""
    if due is not None and min(times, default=due) < due:
        session.ring("leader")
