"""What a person's change makes of a job. Which statuses allow which change is `core.jobs.statuses.ALLOWED`.

    cancel   a processing job is asked to stop; any other live job is cancelled, with the reason as its error, and kept
             for a day
    requeue  the job is queued, or scheduled if `run_at` is later, or waiting if a need is unmet, with its attempts and
             crashes at zero, and with the rank of a job that is new at `run_at`; its end, its result, its progress and
             its expiry are cleared, its last error, its steps and the reports of its attempts stay. With a payload it
             gets that payload and the key that the payload makes
    discard  the job is deleted

The memory store calls `amended`. SQLite, Redis (amend.lua) and PostgreSQL (the functions `cancel`, `requeue` and
`discard`) write only the columns that change; `tests.store.conformance.checks.core_rules` compares every store with
`amended`.
"""

from msgspec.structs import replace

from shiftwork.core.model.job_changes import Cancel, Change, Requeue
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobRecord, JobStatus


def amended(job: JobRecord, change: Change, now: float) -> JobRecord | None:
    """The job after a change that its status allows; None if the change deletes it.

    Its `parked` is for `core.jobs.parking` to decide.
    """
    match change:
        case Cancel():
            return _cancelled(job, change, now)
        case Requeue():
            return _requeued(job, change, now)
        case _:
            return None


def _cancelled(job: JobRecord, change: Cancel, now: float) -> JobRecord:
    if job.status is JobStatus.PROCESSING:
        return replace(job, cancelling=True)
    return replace(
        job,
        status=JobStatus.CANCELLED,
        ended_at=now,
        error=change.reason,
        keep_until=now + SECONDS_A_DAY,
        parked=False,
        wait=None,
    )


def _requeued(job: JobRecord, change: Requeue, now: float) -> JobRecord:
    payload, key = (job.payload, job.key) if change.payload is None else (change.payload, change.key)
    return replace(
        job,
        status=JobStatus.WAITING if job.unmet else JobStatus.by_time(change.run_at, now),
        run_at=change.run_at,
        rank=change.run_at - job.head_start,
        payload=payload,
        key=key,
        attempt=0,
        crashes=0,
        ended_at=None,
        keep_until=None,
        result=None,
        progress=None,
        expires_at=None,
        wait=None,
    )
