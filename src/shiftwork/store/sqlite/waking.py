"""What a change lets start: parked jobs of its key, jobs in other pools, and the leader when something is due sooner.

`shiftwork.core.jobs.parked_jobs` decides which jobs of a key are parked, and `repark` writes that to the column
`parked`; its cost grows with the limits only. Bells ring once the transaction is committed.
"""

from collections.abc import Collection, Iterable, Sequence
from heapq import merge
from math import inf

from shiftwork.core.jobs.parked_jobs import free
from shiftwork.core.jobs.transitions import FAILED
from shiftwork.core.workers.admission import neighbours
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession


def repark(session: SqliteSession, groups: Iterable[tuple[int, str]]) -> None:
    """Park and free the queued jobs of each (worker, key), after something about them has changed."""
    for worker, key in groups:
        _repark(session, worker, key)


def _repark(session: SqliteSession, worker: int, key: str) -> None:
    processing = session.value("count_key_running", (worker, key))
    free_rows = session.run("key_free", (worker, key)).fetchall()
    parked_rows = session.run("key_parked", (worker, key))
    in_order = (((seq, pool), limit) for _, _, seq, limit, pool in merge(free_rows, parked_rows))
    fitting = dict(free(in_order, processing=processing))
    parked_rows.close()
    were_free = {seq for _, _, seq, _, _ in free_rows}
    session.run_many("set_parked", [(1, seq) for seq in were_free.difference(fitting)])
    for seq, pool in fitting.items():
        if seq not in were_free:
            session.run("set_parked", (0, seq))
            session.ring_pool(pool)


# ── the pools ─────────────────────────────────────────────────────────────────────────────────────────────────────────


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
    """Return when the leader wakes, before jobs of these statuses are written; None if none waits for a time."""
    if not expiring and not any(status <= FAILED for status in statuses):
        return None
    next_at = next_due(session)
    return inf if next_at is None else next_at


def next_due(session: SqliteSession) -> float | None:
    """Return when the next job is due or expires. A damaged row may hold anything instead."""
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
