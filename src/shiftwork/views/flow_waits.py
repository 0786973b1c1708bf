"""Why a job of a flow or a durable function waits, in words."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from shiftwork.core.jobs.durable_functions import SLEEP
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.model.job_parts import SeenStep
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobRecord, JobStatus
from shiftwork.core.words import counted
from shiftwork.core.workers.admission import Obstacle

FOR_EVER: Final = 5 * 365 * SECONDS_A_DAY
"""A job that is due later than this waits without an end."""
BAD: Final = (JobStatus.DEAD, JobStatus.CANCELLED)
NEEDS: Final = ("needs", "stranded")
"""The codes of waits for other jobs: for some that may still complete, or also for one that cannot."""
_DOING: Final = {JobStatus.PROCESSING: "running", JobStatus.FAILED: "to be retried"}


def due_at(record: JobRecord) -> float | None:
    """When a job is due, or was; None if it waits for a signal without an end."""
    since = record.started_at or record.created_at
    return None if record.wait is not None and record.run_at > since + FOR_EVER else record.run_at


def is_suspended(record: JobRecord, last: SeenStep | None) -> bool:
    """Whether a scheduled job was handed back by its own function, which sleeps or waits for a signal.

    `last` is the last step of the function.
    """
    return record.wait is not None or (last is not None and last.name == SLEEP)


def suspension(record: JobRecord, last: SeenStep | None, now: float) -> Obstacle:
    """Return what a job waits for whose function sleeps or waits for a signal."""
    until = record.run_at if record.run_at < now + FOR_EVER else None
    since = None if last is None else last.ended_at
    if record.wait is None:
        return Obstacle("sleep", record.worker, "its function sleeps", until=until, since=since)
    name = record.wait.name
    why = f"its function waits for the signal {name!r}: send it with `shiftwork send {record.id} {name}`"
    return Obstacle("signal", name, why, until=until, since=since)


def need_wait(record: JobRecord, needed: Sequence[JobRecord], lost: Sequence[JobRecord]) -> Obstacle:
    """Return what a job waits for that needs other jobs, of which these are known.

    `lost` are the dead and cancelled jobs that strand it, directly or not, by their ends.
    """
    unmet = {need.id: need for need in record.unmet}
    of = len(unmet.keys() | set(run_options_of(record.options).needs))
    stranded = [job for job in needed if job.status is JobStatus.WAITING and unmet[job.id].broken]
    others = [job for job in needed if job.status not in BAD and job not in stranded]
    parts = [*_under_way(others), *_stranded(stranded), *_ended_badly(lost)]
    words = f"{len(unmet):,} of {counted(of, 'job')}" if of > 1 else "1 job"
    why = f"{words}: {', '.join(parts)}" if parts else words
    return Obstacle("stranded", lost[0].id, why) if lost else Obstacle("needs", record.flow or "", why)


def _under_way(needed: Sequence[JobRecord]) -> list[str]:
    """Return how many jobs of which worker are how far."""
    counts = Counter((job.worker, job.status) for job in needed)
    ordered = sorted(counts.items(), key=lambda one: (_ORDER.index(one[0][1]), one[0][0]))
    return [
        f"{number:,} of {worker} {'is' if number == 1 else 'are'} {_DOING.get(status, status)}"
        for (worker, status), number in ordered
    ]


def _stranded(jobs: Sequence[JobRecord]) -> list[str]:
    return [
        f"{number:,} of {worker} cannot run" for worker, number in sorted(Counter(job.worker for job in jobs).items())
    ]


def _ended_badly(jobs: Sequence[JobRecord]) -> list[str]:
    if not jobs:
        return []
    first = jobs[0]
    others = len(jobs) - 1
    more = f", and {counted(others, 'other')} ended badly" if others else ""
    it = "it" if not others else "them"
    return [f"job {first.id} of {first.worker} is {first.status}{more}: retry {it} or cancel the flow"]


_ORDER: Final = (
    JobStatus.PROCESSING,
    JobStatus.FAILED,
    JobStatus.QUEUED,
    JobStatus.SCHEDULED,
    JobStatus.WAITING,
    JobStatus.COMPLETED,
)
