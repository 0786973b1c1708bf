"""The numbers of pools and workers, read from counters: no job is counted for them."""

from collections.abc import Sequence

from shiftwork.core.jobs.transitions import DEAD, FAILED, PROCESSING, QUEUED, SCHEDULED, WAITING
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.store.sqlite.file.sqlite_session import (
    ADDED,
    DIED,
    FAILURES,
    RUN_SECONDS,
    SUCCEEDED,
    WAIT_SECONDS,
    SqliteSession,
)


def stats(session: SqliteSession) -> Stats:
    """Return all pools and workers that have jobs, in numbers."""
    answer = Stats()
    pools: dict[str, int] = {}
    for pool, name, worker, *counts in session.run("read_lanes", (session.namespace,)).fetchall():
        pools[name] = pool
        numbers = answer.pools.setdefault(name, PoolStats())
        _add(numbers, counts)
        numbers.added += counts[ADDED]
        numbers.completed += counts[SUCCEEDED]
        numbers.failed += counts[FAILURES]
        numbers.run_seconds += counts[RUN_SECONDS]
        numbers.wait_seconds += counts[WAIT_SECONDS]
        if worker and any(counts):
            _add_worker(answer.workers.setdefault(worker, WorkerStats()), counts)
    for name, pool in pools.items():
        answer.pools[name].oldest_run_at = session.value("oldest_ready", (pool,))
        answer.count_marks(name, marks_of(session, pool))
    return answer


def marks_of(session: SqliteSession, pool: int) -> dict[str, int]:
    """Return how often each mark was given to a run of this pool."""
    return dict(session.run("read_marks", (pool,)).fetchall())


def _add(numbers: PoolStats | WorkerStats, counts: Sequence[int]) -> None:
    numbers.scheduled += counts[SCHEDULED]
    numbers.retrying += counts[FAILED]
    numbers.waiting += counts[WAITING]
    numbers.queued += counts[QUEUED]
    numbers.processing += counts[PROCESSING]
    numbers.dead += counts[DEAD]


def _add_worker(numbers: WorkerStats, counts: Sequence[int]) -> None:
    _add(numbers, counts)
    numbers.completed += counts[SUCCEEDED]
    numbers.failed += counts[FAILURES]
    numbers.died += counts[DIED]
    numbers.run_seconds += counts[RUN_SECONDS]
