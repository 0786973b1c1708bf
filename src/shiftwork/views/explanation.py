"""Why a job is where it is, in words and as data."""

from msgspec import Struct

from shiftwork.core.jobs.transitions import EXPIRED, expiry
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.words import counted, in_words
from shiftwork.core.workers.admission import Obstacle
from shiftwork.views.estimate import Estimate, starts_text
from shiftwork.views.flow_waits import NEEDS
from shiftwork.views.instants import clock_time


class Explanation(Struct, frozen=True):
    """Why a job is where it is."""

    job_id: str
    status: JobStatus
    text: str
    waits: list[Obstacle]
    expires_at: float | None = None
    """When it is cancelled if it has not started by then; None is never."""
    position: int | None = None
    """Its place in the queue of its pool: 1 is the first. None if it is not queued."""
    position_exact: bool = True
    """Whether the jobs ahead were counted; otherwise the position is about this number."""
    estimate: float | None = None
    """In how many seconds from now it will start, about; None if that is not known, or if it does not wait to start."""
    estimate_basis: str | None = None
    """How the estimate was worked out, or why there is none."""


def explanation_of(record: JobRecord, waits: list[Obstacle], estimate: Estimate, now: float) -> Explanation:
    """Return the explanation of a job that waits for these things, or for nothing."""
    return Explanation(
        record.id,
        record.status,
        _text(record, waits) + _expiry_text(record, now),
        waits,
        expiry(record),
        position=estimate.position,
        position_exact=estimate.position_exact,
        estimate=estimate.estimate,
        estimate_basis=estimate.basis,
    )


def unfinished_text(
    record: JobRecord, waits: list[Obstacle], estimate: Estimate, *, attempts: int | None, now: float
) -> str:
    """Return what a job that has not ended is doing. `attempts`: how many it has at most, if that is known."""
    attempt = f"attempt {record.attempt}" + (f" of {attempts}" if attempts is not None else "")
    if record.run_at > now:
        if record.status is JobStatus.FAILED:
            return f"{attempt} failed ({record.error}), next in {record.run_at - now:.0f} s"
        if record.status is JobStatus.SCHEDULED and all(wait.code == "later" for wait in waits):
            return f"it is due in {record.run_at - now:.0f} s"
    elif record.status is JobStatus.FAILED:
        return f"{attempt} failed ({record.error}), next " + "; ".join(_wait_text(wait) for wait in waits)
    elif record.status is JobStatus.SCHEDULED:
        return "it is " + "; ".join(_wait_text(wait) for wait in waits)
    if record.status is JobStatus.PROCESSING:
        seconds = max(0.0, now - (record.started_at or now))
        return f"{attempt} has been running for {seconds:.0f} s on {record.instance}"
    start = "it waits for " if waits and waits[0].code in NEEDS else ""
    doing = "; ".join(_wait_text(wait) for wait in waits) or f"it is {record.status}"
    starts = starts_text(estimate)
    return start + doing + (f"; {starts}" if starts else "") + _expiry_text(record, now)


def _text(record: JobRecord, waits: list[Obstacle]) -> str:
    if waits:
        start = "waits for " if waits[0].code in NEEDS else "waits: "
        return start + "; ".join(_wait_text(wait) for wait in waits)
    if record.status is JobStatus.PROCESSING:
        how = "is being cancelled" if record.cancelling else "runs"
        return f"{how}: attempt {record.attempt}, since {clock_time(record.started_at or 0.0)} on {record.instance}"
    at = clock_time(record.ended_at or 0.0)
    if record.status is JobStatus.DEAD:
        how_often = f"{counted(record.attempt, 'attempt')} and {counted(record.crashes, 'crash', 'crashes')}"
        return f"dead since {at} after {how_often}: {record.error}"
    if record.status is JobStatus.CANCELLED and record.error == EXPIRED:
        return f"cancelled at {at}: {EXPIRED}"
    return f"{record.status} at {at}"


def _expiry_text(record: JobRecord, now: float) -> str:
    at = expiry(record)
    if at is None:
        return ""
    return f"; it expires in {in_words(max(0.0, at - now))} if it has not started"


def _wait_text(wait: Obstacle) -> str:
    since = f", since {clock_time(wait.since)}" if wait.since else ""
    if wait.code == "rate_limit" and wait.until:  # when the gate opens for one job, which need not be this one
        return f"{wait.why}{since}, the next job starts at {clock_time(wait.until)}"
    until = f", until {clock_time(wait.until)}" if wait.until and wait.code != "later" else ""
    return f"{wait.why}{since}{until}"
