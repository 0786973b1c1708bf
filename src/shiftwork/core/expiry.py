"""Expiry: a job that is not started in time is cancelled.

A claim clears `expires_at`, so only a job that has never been claimed can expire. The instance that claims a job which
has expired meanwhile does not start it, but cancels it.
"""

from typing import Final

from shiftwork.core.model import Claimed, JobRecord, JobStatus

EXPIRED: Final = "it expired: it was not started in time"
"""Why an expired job is cancelled."""


def expiry(job: JobRecord) -> float | None:
    """When this job will be cancelled if nothing starts it; None is never."""
    return job.expires_at if job.status.live and job.status is not JobStatus.PROCESSING else None


def is_expired(job: Claimed, now: float) -> bool:
    """Whether it is too late to start a job that was claimed."""
    return job.expires_at is not None and job.expires_at <= now
