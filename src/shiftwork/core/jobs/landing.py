"""Where an accepted outcome takes its job: the status, and everything else that it writes.

    the outcome says               a cancel was requested   otherwise
    completed, dead, cancelled     as it says               as it says
    failed, `run_at` later         cancelled                failed
    queued, `run_at` later         cancelled                scheduled
    failed or queued, due now      cancelled                queued
    queued, its signal was sent    cancelled                queued, due now

A job that runs again keeps its rank, however much later it is due, if its run was only interrupted: once it is due it
goes before everything that was added after it. After a failed attempt, and if the function itself asked for a later
time, the rank is that of a job which is new at `run_at`. An ended job keeps its rank, too; it has no use for it.

A job that is cancelled this way is kept for a day from now; any other ended job is kept as its outcome says, and a live
job is kept until it ends. A live job has no `ended_at`: the end of its last run is in the report of that run. Of many
failed attempts, `core.values.limits` says which are kept. An outcome is accepted only while its job is processing under
the outcome's fence.

The memory and SQLite stores call these functions. Redis (finish_full.lua) and PostgreSQL (the function `finish`) repeat
them; `tests.store.conformance.checks.core_rules` compares every store with them.
"""

from typing import Final

from msgspec.structs import replace

from shiftwork.core.jobs.durable import arrived
from shiftwork.core.jobs.statuses import ENDED
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobRecord, JobStatus
from shiftwork.core.values.limits import kept_attempts

COUNTED: Final = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD)
"""The outcomes whose run and wait count in the pool's totals."""


def accepts(job: JobRecord, outcome: Outcome) -> bool:
    """Whether the job still runs under the outcome's fence."""
    return job.status is JobStatus.PROCESSING and job.fence == outcome.fence


def landing(outcome: Outcome, now: float, *, cancelling: bool, signalled: bool = False) -> JobStatus:
    """The job's next status.

    `cancelling` says whether a cancel was requested while it ran, `signalled` whether the signal was sent that it is
    handed back to wait for.
    """
    if outcome.status in ENDED:
        return outcome.status
    if cancelling:
        return JobStatus.CANCELLED
    if outcome.status is JobStatus.FAILED and outcome.run_at > now:
        return JobStatus.FAILED
    return JobStatus.by_time(due(outcome, now, signalled=signalled), now)


def due(outcome: Outcome, now: float, *, signalled: bool) -> float:
    """When the job is due again: at once if the signal was sent that it waits for."""
    return min(outcome.run_at, now) if signalled else outcome.run_at


def keep_until(outcome: Outcome, status: JobStatus, now: float) -> float | None:
    """When the job may be pruned, given the status that it lands in; None is never."""
    if status not in ENDED:
        return None
    return outcome.keep_until if status is outcome.status else now + SECONDS_A_DAY


def rank(job: JobRecord, outcome: Outcome, status: JobStatus, run_at: float) -> float:
    """The job's place in the queue, given the status that it lands in and when it is due."""
    return job.rank if outcome.keeps_rank or status in ENDED else run_at - job.head_start


def landed(job: JobRecord, outcome: Outcome, now: float) -> JobRecord:
    """The job after an accepted outcome. Its `parked` is for `core.jobs.parking` to decide."""
    signalled = arrived(outcome.wait, job.signals)
    status = landing(outcome, now, cancelling=job.cancelling, signalled=signalled)
    run_at = due(outcome, now, signalled=signalled)
    return replace(
        job,
        status=status,
        run_at=run_at,
        rank=rank(job, outcome, status, run_at),
        wait=None if status in ENDED else outcome.wait,
        attempt=outcome.attempt,
        crashes=outcome.crashes,
        result=outcome.result,
        error=outcome.error,
        ended_at=outcome.ended_at if status in ENDED else None,
        attempts=kept_attempts(job.attempts, outcome.report) if outcome.report else job.attempts,
        cancelling=False,
        keep_until=keep_until(outcome, status, now),
    )


def run_seconds(outcome: Outcome, started_at: float | None) -> float:
    """How long the run took; 0 if its start is unknown or lies after its end."""
    return max(0.0, outcome.ended_at - (started_at or outcome.ended_at))
