"""Pools and workers in numbers. Values only; each store counts them."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct, field

from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.observing.run_histograms import split_by_worker, together

COUNTED_STATUSES: Final = {
    JobStatus.SCHEDULED: "scheduled",
    JobStatus.FAILED: "retrying",
    JobStatus.WAITING: "waiting",
    JobStatus.QUEUED: "queued",
    JobStatus.PROCESSING: "processing",
    JobStatus.DEAD: "dead",
}
"""The statuses that a store counts by pool and by worker, and the names of these counts."""


class PoolStats(Struct, kw_only=True):
    """One pool in numbers. The first group of fields is the present, the second only grows."""

    queued: int = 0
    waiting: int = 0
    scheduled: int = 0
    retrying: int = 0
    processing: int = 0
    dead: int = 0
    oldest_run_at: float | None = None
    """When the job at the head of the queue became due."""

    added: int = 0
    completed: int = 0
    failed: int = 0
    """How many attempts failed."""
    run_seconds: float = 0.0
    wait_seconds: float = 0.0
    marks: dict[str, int] = field(default_factory=dict)
    """How often each mark was counted; `core.observing.run_histograms` makes histograms of them."""


class WorkerStats(Struct, kw_only=True):
    """One worker in numbers. The first group of fields is the present: its live jobs by status, and its dead ones.

    The second only grows. It begins at zero when a store is moved into.
    """

    queued: int = 0
    waiting: int = 0
    scheduled: int = 0
    retrying: int = 0
    processing: int = 0
    dead: int = 0

    completed: int = 0
    failed: int = 0
    """How many attempts failed, those that made a job dead included."""
    died: int = 0
    """How many attempts made a job dead."""
    run_seconds: float = 0.0
    """How long all completed and failed attempts took."""
    marks: dict[str, int] = field(default_factory=dict)
    """How often each mark was counted that says how long a run took, as `core.observing.run_histograms` reads them."""


class Stats(Struct, kw_only=True):
    """All pools and workers that have jobs or had some, in numbers. No store scans ended jobs for them."""

    pools: dict[str, PoolStats] = field(default_factory=dict)
    workers: dict[str, WorkerStats] = field(default_factory=dict)

    def count_marks(self, pool: str, counts: Mapping[str, int]) -> None:
        """Take in how often each mark was counted for a pool, as outcomes have them: with the names of workers."""
        of_pool, of_workers = split_by_worker(counts)
        self.pools.setdefault(pool, PoolStats()).marks = of_pool
        for worker, marks in of_workers.items():
            known = self.workers.setdefault(worker, WorkerStats())
            known.marks = together(known.marks, marks)


LATELY_MINUTES: Final = 10
"""For how many minutes expired jobs are reported."""
MANY_EXPIRED: Final = 10
"""How many of them are a problem: a few may well have been meant to expire."""


class ExpiredLately(Struct, frozen=True):
    """The expired jobs of a pool."""

    minutes: dict[int, int] = {}
    """By minute, counted from the epoch."""

    def plus(self, n: int, now: float) -> "ExpiredLately":
        """Return this with `n` more jobs, and without what is too old to be reported."""
        minute = int(now // 60)
        recent = self._recent(now)
        return ExpiredLately(recent | {minute: recent.get(minute, 0) + n})

    def number(self, now: float) -> int:
        """Return how many have expired lately."""
        return sum(self._recent(now).values())

    def since(self, now: float) -> float | None:
        """Return when the first of those expired, to the minute; None if none has."""
        first = min(self._recent(now), default=None)
        return None if first is None else first * 60.0

    def _recent(self, now: float) -> dict[int, int]:
        return {at: n for at, n in self.minutes.items() if at > int(now // 60) - LATELY_MINUTES}
