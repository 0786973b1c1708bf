"""What changes a job: the outcome of a run, and the orders of people about the jobs that they select.

`core.jobs.transitions` has the rules.
"""

from typing import Final, Literal

from msgspec import Struct

from shiftwork.core.model.job_parts import Wait
from shiftwork.core.model.jobs import Attempt, JobStatus

Verdict = Literal["success", "failure", "neutral"]
VERDICTS: Final[dict[Verdict, int]] = {"success": 1, "neutral": 0, "failure": -1}
"""The number by which a store may pass each verdict on."""


class Outcome(Struct, frozen=True, kw_only=True, gc=False):
    """What becomes of a claimed job. The store accepts it only while the job is processing under this fence."""

    id: str
    fence: int
    worker: str
    pool: str
    status: JobStatus
    """One of completed, failed (to be retried at `run_at`), queued (handed back), dead and cancelled."""
    ended_at: float
    run_at: float
    attempt: int
    """How many attempts count so far; the store keeps this number."""
    crashes: int
    verdict: Verdict = "neutral"
    """What it says about the worker: a success clears its consecutive failures, a failure adds one."""
    disable_after: int | None = None
    """The number of consecutive failures at which the store disables the worker, in the same step."""
    result: bytes | None = None
    error: str | None = None
    report: Attempt | None = None
    keep_until: float | None = None
    """When the job may be pruned; None is never."""
    cause: str = "enqueued"
    waited: float = 0.0
    """How many seconds the job had been due when it started."""
    marks: str = ""
    """What to count for its pool: names separated by spaces. `core.observing.run_histograms` gives them."""
    wait: Wait | None = None
    """The signal that a job waits for that is handed back. If it was sent already, the job is due at once."""
    keeps_rank: bool = True
    """Whether a job that runs again keeps its place in the queue. If not, it has the place of a job that is new at
    `run_at`."""


class Finished(Struct, frozen=True):
    """What `finish` returns for a batch of outcomes, in their order."""

    accepted: list[bool]
    disabled: list[str]
    """The workers that these outcomes disabled."""


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
    """Whether payloads and results are read whole. Otherwise lists have their beginnings (`core.values.job_limits`)."""


class Cancel(Struct, frozen=True, tag="cancel"):
    """Cancel waiting jobs, and ask processing ones to stop. `core.jobs.transitions` says what becomes of a job."""

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
