"""Flows: when a job that waits for others is released.

    the needed job is   completed   dead or cancelled              live
    the need is         met         met, if any end will do        not met

A job with an unmet need is waiting. When the last need is met, it is queued, or scheduled if its time has not come, and
counts as due from then on: what came before it is not its queue's delay. A need that is met stays met, whatever becomes
of the needed job later. A need of a job that does not exist is met: that job ended, and was deleted.

A job that another one waits for cannot be discarded. A job of a flow is not pruned while a job of the same flow is live
or dead, because that one may need its result; it is looked at again after `POSTPONED` seconds.

The memory and SQLite stores call these functions. Redis (flows.lua) and PostgreSQL (flows.sql) repeat them; the suite
compares every store with the memory store.
"""

from typing import Final

from msgspec.structs import replace

from shiftwork.core.job_parts import Need
from shiftwork.core.model import JobRecord, JobStatus
from shiftwork.core.statuses import ENDED

POSTPONED: Final = 60.0
"""How many seconds later an ended job is looked at again that its flow still needs."""
SETTLED: Final = (JobStatus.COMPLETED, JobStatus.CANCELLED)
"""The statuses of jobs that need no result of another job any longer."""


def meets(status: JobStatus | None, need: Need) -> bool:
    """Whether a job with this status, or None if there is none, meets the need."""
    return status is None or status is JobStatus.COMPLETED or (need.whatever and status in ENDED)


def released(job: JobRecord, now: float) -> JobRecord:
    """A waiting job whose last need was met just now."""
    run_at = due_when_released(job.run_at, now)
    return replace(job, status=JobStatus.by_time(run_at, now), run_at=run_at)


def due_when_released(run_at: float, now: float) -> float:
    """When a waiting job is due whose last need was met just now."""
    return max(run_at, now)
