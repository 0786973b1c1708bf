"""From status to status: what a claim's outcome, a person's change and the time make of a job.

Which statuses there are, by number, and which changes they allow:

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
waits for its time (`<= FAILED`), is live (`<= PROCESSING`) or has ended (`>= COMPLETED`).

Where an accepted outcome takes its job:

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
failed attempts, `core.values.job_limits` says which are kept. An outcome is accepted only while its job is processing
under the outcome's fence.

What a person's change makes of a job:

    cancel   a processing job is asked to stop; any other live job is cancelled, with the reason as its error, and kept
             for a day
    requeue  the job is queued, or scheduled if `run_at` is later, or waiting if a need is unmet, with its attempts and
             crashes at zero, and with the rank of a job that is new at `run_at`; its end, its result, its progress and
             its expiry are cleared, its last error, its steps and the reports of its attempts stay. With a payload it
             gets that payload and the key that the payload makes
    discard  the job is deleted

A job that is not started in time is cancelled: it expires. A claim clears `expires_at`, so only a job that has never
been claimed can expire. If it has expired when it is claimed, the instance cancels it instead of starting it.

The memory store calls these functions, and SQLite those about outcomes. For the rest, SQLite, Redis (finish_full.lua,
amend.lua, cancelling.lua) and PostgreSQL (the functions `finish`, `cancel`, `requeue` and `discard`) repeat the rules;
`tests.store.conformance.checks.core_rules` compares every store with them.
"""

from typing import Final

from msgspec.structs import replace

from shiftwork.core.jobs.durable_functions import arrived
from shiftwork.core.model.job_changes import Cancel, Change, Discard, Outcome, Requeue
from shiftwork.core.model.jobs import SECONDS_A_DAY, Claimed, JobRecord, JobStatus
from shiftwork.core.values.job_limits import kept_attempts
from shiftwork.sentences import plain, sentence

# ── statuses ─────────────────────────────────────────────────────────────────────────────────────────────────────────

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


# ── outcomes of runs ─────────────────────────────────────────────────────────────────────────────────────────────────

COUNTED: Final = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD)
"""The outcomes whose run and wait count in the pool's totals."""


def accepts(job: JobRecord, outcome: Outcome) -> bool:
    """Return whether the job still runs under the outcome's fence."""
    return job.status is JobStatus.PROCESSING and job.fence == outcome.fence


def landed(job: JobRecord, outcome: Outcome, now: float) -> JobRecord:
    """Return the job after an accepted outcome. `core.jobs.parked_jobs` decides whether it is parked."""
    signalled = outcome.wait is not None and arrived(outcome.wait, job.signals)
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


def landing(outcome: Outcome, now: float, *, cancelling: bool, signalled: bool = False) -> JobStatus:
    """Return the job's next status.

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
    """Return when the job is due again: at once if the signal that it waits for was sent."""
    return min(outcome.run_at, now) if signalled else outcome.run_at


def keep_until(outcome: Outcome, status: JobStatus, now: float) -> float | None:
    """Return when the job may be pruned, given the status that it lands in; None is never."""
    if status not in ENDED:
        return None
    return outcome.keep_until if status is outcome.status else now + SECONDS_A_DAY


def rank(job: JobRecord, outcome: Outcome, status: JobStatus, run_at: float) -> float:
    """Return the job's place in the queue, given the status that it lands in and when it is due."""
    return job.rank if outcome.keeps_rank or status in ENDED else run_at - job.head_start


def run_seconds(outcome: Outcome, started_at: float | None) -> float:
    """Return how long the run took; 0 if its start is unknown or lies after its end."""
    return max(0.0, outcome.ended_at - (started_at or outcome.ended_at))


# ── changes by people ────────────────────────────────────────────────────────────────────────────────────────────────

ALLOWED: Final[dict[type[Change], tuple[JobStatus, ...]]] = {
    Cancel: STATUSES[:COMPLETED],
    Requeue: (JobStatus.SCHEDULED, JobStatus.FAILED, JobStatus.DEAD, JobStatus.CANCELLED),
    Discard: ENDED,
}
"""By kind of change: the statuses that allow it. A requeue also needs the job's unique key to be free, and a discard
that no other job waits for this one."""


_STATUS_WORDS: Final[dict[str, str]] = {
    JobStatus.SCHEDULED: sentence("scheduled"),
    JobStatus.FAILED: sentence("failed, to be retried"),
    JobStatus.WAITING: sentence("waiting"),
    JobStatus.QUEUED: sentence("queued"),
    JobStatus.PROCESSING: sentence("processing"),
    JobStatus.COMPLETED: sentence("completed"),
    JobStatus.DEAD: sentence("dead"),
    JobStatus.CANCELLED: sentence("cancelled"),
}


def status_word(status: str) -> str:
    """Return a status, or the name of a flow's state, as a word in a sentence."""
    return _STATUS_WORDS.get(status, status)


def allows(status: JobStatus, change: Change) -> bool:
    """Return whether a job with this status may be changed in this way."""
    return status in ALLOWED[type(change)]


def amended(job: JobRecord, change: Change, now: float) -> JobRecord | None:
    """Return the job after a change that its status allows; None if the change deletes it.

    Its `parked` is for `core.jobs.parked_jobs` to decide.
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


# ── expiry ───────────────────────────────────────────────────────────────────────────────────────────────────────────

EXPIRED_WORDS: Final = sentence("it expired: it was not started in time")
EXPIRED: Final = plain(EXPIRED_WORDS)
"""Why an expired job is cancelled."""


def is_expired(job: Claimed, now: float) -> bool:
    return job.expires_at is not None and job.expires_at <= now
