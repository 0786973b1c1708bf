"""Which jobs a person means, and what is to become of them."""

from typing import Literal

from msgspec import Struct

from shiftwork.core.model.job import JobStatus

JobOrder = Literal["newest", "oldest"]
"""Which jobs of a list come first, by when they were created (then by id)."""


class JobFilter(Struct, frozen=True, kw_only=True):
    """Which jobs to find, and in which order. Every given field must match."""

    ids: tuple[str, ...] | None = None
    status: tuple[JobStatus, ...] | None = None
    worker: str | None = None
    pool: str | None = None
    key: str | None = None
    unique_key: str | None = None
    instance: str | None = None
    tag: str | None = None
    flow: str | None = None
    error: str | None = None
    """A part of the last error's text."""
    created_after: float | None = None
    created_before: float | None = None
    order: JobOrder = "newest"
    after: str | None = None
    """Return only jobs behind this id in the result's order: the next page."""
    limit: int = 100
    whole: bool = False
    """Whether payloads and results are read whole. Otherwise lists have their beginnings (`core.values.limits`)."""


class Cancel(Struct, frozen=True, tag="cancel"):
    """Cancel waiting jobs, and ask processing ones to stop. `core.jobs.amending` says what becomes of a job."""

    reason: str = "cancelled"


class Requeue(Struct, frozen=True, tag="requeue"):
    """Queue dead, cancelled, failed and scheduled jobs again, with their counts at zero."""

    run_at: float
    payload: bytes | None = None
    key: str | None = None
    """The concurrency key that the new payload makes; ignored without a payload."""


class Discard(Struct, frozen=True, tag="discard"):
    """Delete ended jobs."""


Change = Cancel | Requeue | Discard


class Amended(Struct, frozen=True):
    """What `amend` did with one id. `status` is the job's status before; None if there is no such job."""

    id: str
    ok: bool
    status: JobStatus | None
