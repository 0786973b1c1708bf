"""What became of a claimed job, and what the store says to that."""

from typing import Final, Literal

from msgspec import Struct

from shiftwork.core.model.job import Attempt, JobStatus
from shiftwork.core.model.parts import Wait

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


class Lost(Struct, frozen=True):
    """A node that vanished without leaving."""

    at: float
    """When its last beat arrived."""
    host: str
