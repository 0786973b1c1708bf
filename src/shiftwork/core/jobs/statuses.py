"""The statuses of a job by number, in groups, and which of them allow a change.

    number  status      live  ended  cancel        requeue  discard
    0       scheduled   yes          cancelled     yes
    1       failed      yes          cancelled     yes
    2       waiting     yes          cancelled
    3       queued      yes          cancelled
    4       processing  yes          asked to stop
    5       completed         yes                           yes
    6       dead              yes                  yes      yes
    7       cancelled         yes                  yes      yes

Stores that keep a status as a number use these numbers. Their order matters: a plain comparison says whether a job
waits for its time (`<= FAILED`), is live (`<= PROCESSING`) or has ended (`>= COMPLETED`). The Lua and SQL repeat the
numbers and the table; `tests.store.conformance.checks.core_rules` compares every store with it.
"""

from typing import Final

from shiftwork.core.model.job_changes import Cancel, Change, Discard, Requeue
from shiftwork.core.model.jobs import JobStatus

STATUSES: Final = (
    JobStatus.SCHEDULED,
    JobStatus.FAILED,
    JobStatus.WAITING,
    JobStatus.QUEUED,
    JobStatus.PROCESSING,
    JobStatus.COMPLETED,
    JobStatus.DEAD,
    JobStatus.CANCELLED,
)
"""Every status, at the place of its number."""
SCHEDULED, FAILED, WAITING, QUEUED, PROCESSING, COMPLETED, DEAD, CANCELLED = range(len(STATUSES))
NUMBERS: Final = {status: number for number, status in enumerate(STATUSES)}

ENDED: Final = STATUSES[COMPLETED:]
"""The statuses of a job that has ended for good."""
ALLOWED: Final[dict[type[Change], tuple[JobStatus, ...]]] = {
    Cancel: STATUSES[:COMPLETED],
    Requeue: (JobStatus.SCHEDULED, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED),
    Discard: ENDED,
}
"""By kind of change: the statuses that allow it. A requeue also needs the job's unique key to be free, and a discard
that no other job waits for this one."""


def allows(status: JobStatus, change: Change) -> bool:
    """Whether a job with this status may be changed like this."""
    return status in ALLOWED[type(change)]
