"""Expiry: a job that is not started in time is cancelled.

A claim clears `expires_at`, so only a job that has never been claimed can expire. The instance that claims a job which
has expired meanwhile does not start it, but cancels it.
"""

from typing import Final

from msgspec import Struct

from shiftwork.core.model.jobs import Claimed, JobRecord, JobStatus

LATELY_MINUTES: Final = 10
"""For how many minutes expired jobs are reported."""
MANY_EXPIRED: Final = 10
"""How many of them are a problem: a few may well have been meant to expire."""


class ExpiredLately(Struct, frozen=True):
    """The expired jobs of a pool."""

    minutes: dict[int, int] = {}
    """By minute, counted from the epoch."""

    def plus(self, n: int, now: float) -> "ExpiredLately":
        """The same with `n` more jobs, and without what is no longer reported."""
        minute = int(now // 60)
        recent = self._recent(now)
        return ExpiredLately(recent | {minute: recent.get(minute, 0) + n})

    def number(self, now: float) -> int:
        """How many have expired lately."""
        return sum(self._recent(now).values())

    def since(self, now: float) -> float | None:
        """When the first of those expired, to the minute; None if none has."""
        first = min(self._recent(now), default=None)
        return None if first is None else first * 60.0

    def _recent(self, now: float) -> dict[int, int]:
        return {at: n for at, n in self.minutes.items() if at > int(now // 60) - LATELY_MINUTES}


EXPIRED: Final = "it expired: it was not started in time"
"""Why an expired job is cancelled."""


def expiry(job: JobRecord) -> float | None:
    """When this job will be cancelled if nothing starts it; None is never."""
    return job.expires_at if job.status.live and job.status is not JobStatus.PROCESSING else None


def is_expired(job: Claimed, now: float) -> bool:
    """Whether it is too late to start a job that was claimed."""
    return job.expires_at is not None and job.expires_at <= now
