"""The numbers of a memory store: totals that only grow are counted here, the present is counted by the job table."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from msgspec.structs import replace

from shiftwork.core.jobs.transitions import COUNTED, run_seconds
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.store.memory.rows import JobTable


class Totals:
    """The totals by pool and by worker, since the store was made."""

    def __init__(self) -> None:
        self._pools: defaultdict[str, PoolStats] = defaultdict(PoolStats)
        self._workers: defaultdict[str, WorkerStats] = defaultdict(WorkerStats)
        self._marks: defaultdict[str, dict[str, int]] = defaultdict(dict)
        """How often each mark was given, by pool."""

    def know(self, pool: str) -> None:
        """List a pool that has jobs, even before anything is counted."""
        self._pools.setdefault(pool, PoolStats())

    def keep(self, totals: Mapping[str, PoolStats]) -> None:
        for pool, given in totals.items():
            self._pools[pool] = PoolStats(
                added=given.added,
                completed=given.completed,
                failed=given.failed,
                run_seconds=given.run_seconds,
                wait_seconds=given.wait_seconds,
            )
            self._marks[pool] = dict(given.marks)

    def added(self, pool: str) -> None:
        self._pools[pool].added += 1

    def finished(self, job: JobRecord, outcome: Outcome) -> None:
        """Count an ended attempt: its marks, and how long it waited and ran if it completed or failed."""
        pool, worker, marks = self._pools[job.pool], self._workers[job.worker], self._marks[job.pool]
        for mark in outcome.marks.split():
            marks[mark] = marks.get(mark, 0) + 1
        if outcome.status not in COUNTED:
            return
        for totals in (pool, worker):
            if outcome.status is JobStatus.COMPLETED:
                totals.completed += 1
            else:
                totals.failed += 1
            totals.run_seconds += run_seconds(outcome, job.started_at)
        worker.died += outcome.status is JobStatus.DEAD
        pool.wait_seconds += outcome.waited

    def stats(self, jobs: JobTable) -> Stats:
        found = Stats(
            pools={name: self._pool(name, jobs) for name in sorted(self._pools)},
            workers={name: self._worker(name, jobs) for name in sorted({*jobs.by_worker, *self._workers})},
        )
        for pool, marks in self._marks.items():
            found.count_marks(pool, marks)
        return found

    def _worker(self, name: str, jobs: JobTable) -> WorkerStats:
        counts = _counts(jobs.by_worker.get(name) or Counter())
        return replace(self._workers.get(name) or WorkerStats(), **counts)

    def _pool(self, name: str, jobs: JobTable) -> PoolStats:
        first = jobs.first(name)
        counts = _counts(jobs.by_pool.get(name) or Counter())
        return replace(self._pools[name], **counts, oldest_run_at=first.run_at if first else None)


def _counts(counter: Counter[JobStatus]) -> dict[str, int]:
    """Return the counts under the names that `PoolStats` and `WorkerStats` give them."""
    return {
        "queued": counter[JobStatus.QUEUED],
        "waiting": counter[JobStatus.WAITING],
        "scheduled": counter[JobStatus.SCHEDULED],
        "retrying": counter[JobStatus.FAILED],
        "processing": counter[JobStatus.PROCESSING],
        "dead": counter[JobStatus.DEAD],
    }
