"""Statistics: the counters of lanes, summed up for pools and workers."""

from typing import Final, NamedTuple

from msgspec import json

from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.store.postgres.server.statements import Statements

WAITED: Final = ""
"""The name under which the table `marks` has the seconds that runs had waited."""


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
        """Whether the worker has or had jobs here. Totals from another store are counted for no worker."""
        return bool(self.worker) and any(self[self._fields.index("scheduled") : self._fields.index("head_rank")])


async def stats(session: Statements) -> Stats:
    """Return the numbers of all pools and workers that have or had jobs."""
    answer = Stats()
    heads: dict[str, tuple[float, str, float]] = {}
    for lane in map(LaneStatsRow._make, await session.rows("stats", {"namespace": session.namespace})):
        numbers = answer.pools.setdefault(lane.pool, PoolStats())
        _count(numbers, lane)
        _count_totals(numbers, lane)
        if lane.marks is not None:
            marks = json.decode(lane.marks, type=dict[str, float])
            numbers.wait_seconds = marks.pop(WAITED, 0.0)
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
