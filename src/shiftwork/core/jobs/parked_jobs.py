"""Which of the queued jobs that share a concurrency key are free, and which are parked behind them.

Jobs of one worker with the same key form a group. In the order of rank and then id, a queued job of the group is free
if fewer jobs than its own `key_limit` run or are free ahead of it; the first job that does not fit is parked, and so is
every job behind it. So a job that arrives later and ranks ahead takes the place of one that has not started, a running
job keeps its place, and nothing passes a job with a lower limit. Jobs in other statuses take no place.

The memory and SQLite stores call `free`. Redis (`repark` in jobs.lua) and PostgreSQL (the function `repark`) repeat it;
`tests.store.conformance.checks.core_rules` compares every store with it.
"""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from shiftwork.core.model.jobs import JobRecord, JobStatus

T = TypeVar("T")


def free(queued: Iterable[tuple[T, int]], *, processing: int) -> Iterator[T]:
    """Yield the free ones among a group's queued jobs, which come in order, each with its limit.

    It reads one job more than it returns, so that a store can hand it a cursor.
    """
    taken = processing
    for job, limit in queued:
        if taken >= limit:
            return
        taken += 1
        yield job


def parked(jobs: Iterable[JobRecord]) -> set[str]:
    """Return the ids of the jobs to park. The jobs given include every job of their groups."""
    groups: dict[tuple[str, str], list[JobRecord]] = {}
    for job in jobs:
        if job.key is not None:
            groups.setdefault((job.worker, job.key), []).append(job)
    return {id for group in groups.values() for id in _parked(group)}


def _parked(group: list[JobRecord]) -> set[str]:
    processing = sum(job.status is JobStatus.PROCESSING for job in group)
    queued = sorted((job.rank, job.id, job.key_limit) for job in group if job.status is JobStatus.QUEUED)
    return {id for _, id, _ in queued}.difference(free(((id, limit) for _, id, limit in queued), processing=processing))
