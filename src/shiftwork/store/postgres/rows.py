"""Jobs into columns, and rows into jobs."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final

from msgspec import MsgspecError, json, msgpack

from shiftwork.core.docs import read_attempt
from shiftwork.core.model import (
    Claimed,
    JobPriority,
    JobRecord,
    JobStatus,
    NewJob,
    Outcome,
    Progress,
)
from shiftwork.errors import StoreError
from shiftwork.store.columns import COLUMNS
from shiftwork.store.postgres import arrays

STATUSES: Final = (
    JobStatus.SCHEDULED,
    JobStatus.FAILED,
    JobStatus.QUEUED,
    JobStatus.PROCESSING,
    JobStatus.COMPLETED,
    JobStatus.DEAD,
    JobStatus.CANCELLED,
)
"""By their number in the column `status`."""
NUMBERS: Final = {status: number for number, status in enumerate(STATUSES)}
RAN: Final = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD)
WAITED: Final = ""
"""The name under which the table of marks keeps how long runs had waited."""
VERDICTS: Final = {"success": 1, "neutral": 0, "failure": -1}

Row = Sequence[Any]


def new_columns(jobs: Sequence[NewJob], times: Sequence[float]) -> tuple[Any, ...]:
    """New jobs as the function `add` takes them."""
    for job in jobs:
        _refuse_nul(job)
    keys = arrays.texts([job.key for job in jobs])
    workers = [job.worker for job in jobs]
    return (
        arrays.texts([job.id for job in jobs]),
        arrays.texts(arrays.alike(workers) if keys is None else workers),
        arrays.texts(arrays.alike([job.pool for job in jobs])),
        arrays.blobs([job.payload for job in jobs]),
        arrays.numbers(arrays.alike([job.run_at for job in jobs])),
        arrays.numbers(arrays.alike([int(job.priority) for job in jobs])),
        arrays.numbers(arrays.alike([job.head_start for job in jobs])),
        arrays.texts([job.unique_key for job in jobs]),
        keys,
        arrays.numbers(arrays.alike([job.key_limit for job in jobs])),
        arrays.texts(arrays.alike([job.cause for job in jobs])),
        arrays.texts([job.trace for job in jobs]),
        arrays.numbers(arrays.alike(times)),
    )


def new_row(job: NewJob, now: float) -> tuple[Any, ...]:
    """One new job without keys, as the function `add_one` takes it."""
    _refuse_nul(job)
    return (
        job.id,
        job.worker,
        job.pool,
        job.payload,
        job.run_at,
        int(job.priority),
        job.head_start,
        job.key_limit,
        job.cause,
        job.trace,
        now,
    )


def _refuse_nul(job: NewJob) -> None:
    if "\x00" in f"{job.id}{job.worker}{job.pool}{job.unique_key}{job.key}{job.cause}{job.trace}":
        raise StoreError(f"job {job.id!r} of {job.worker!r}: PostgreSQL keeps no text with a NUL character in it")


def outcome_columns(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """Outcomes as the function `finish` takes them."""
    return (
        arrays.texts([one.id for one in outcomes]),
        arrays.numbers([one.fence for one in outcomes]),
        arrays.numbers([NUMBERS[one.status] for one in outcomes]),
        arrays.numbers([one.ended_at for one in outcomes]),
        arrays.numbers([one.run_at for one in outcomes]),
        arrays.numbers([one.attempt for one in outcomes]),
        arrays.numbers([one.crashes for one in outcomes]),
        arrays.numbers([VERDICTS[one.verdict] for one in outcomes]),
        arrays.optional_numbers([one.disable_after for one in outcomes]),
        arrays.blobs([one.result for one in outcomes]),
        arrays.texts([storable(one.error) for one in outcomes]),
        arrays.blobs([msgpack.encode(one.report) if one.report else None for one in outcomes]),
        arrays.optional_numbers([one.keep_until for one in outcomes]),
        *_outcome_marks(outcomes),
    )


def _outcome_marks(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """What outcomes add to the counters of their pools: by pool and name, in order; and each alone."""
    singly = [(one.pool, one.marks, one.waited if one.status in RAN else 0.0) for one in outcomes]
    told: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (pool, marks), n in Counter([one[:2] for one in singly]).items():
        for mark in marks.split():
            told[pool, mark] += n
    for pool, _, waited in singly:
        told[pool, WAITED] += waited
    keys = sorted(told)
    return (
        arrays.texts([pool for pool, _ in keys]),
        arrays.texts([name for _, name in keys]),
        arrays.numbers([told[key] for key in keys]),
        json.encode(singly).decode(),
    )


def record_columns(jobs: Sequence[JobRecord]) -> tuple[Any, ...]:
    """Whole jobs as the function `restore` takes them; behind them, of every attempt the place of its job and it."""
    for job in jobs:
        if "\x00" in f"{job.id}{job.worker}{job.pool}{job.unique_key}{job.key}{job.cause}{job.trace}{job.instance}":
            raise StoreError(f"job {job.id!r} of {job.worker!r}: PostgreSQL keeps no text with a NUL character in it")
    attempts = [(place, one) for place, job in enumerate(jobs, 1) for one in job.attempts]
    return (
        arrays.texts([job.id for job in jobs]),
        arrays.texts([job.worker for job in jobs]),
        arrays.texts([job.pool for job in jobs]),
        arrays.numbers([NUMBERS[job.status] for job in jobs]),
        arrays.blobs([job.payload for job in jobs]),
        arrays.numbers([int(job.priority) for job in jobs]),
        arrays.numbers([job.head_start for job in jobs]),
        arrays.numbers([job.run_at for job in jobs]),
        arrays.numbers([job.created_at for job in jobs]),
        arrays.texts([job.cause for job in jobs]),
        arrays.numbers([job.attempt for job in jobs]),
        arrays.numbers([job.crashes for job in jobs]),
        arrays.numbers([job.fence for job in jobs]),
        arrays.texts([job.instance for job in jobs]),
        arrays.optional_numbers([job.started_at for job in jobs]),
        arrays.optional_numbers([job.ended_at for job in jobs]),
        arrays.texts([job.unique_key for job in jobs]),
        arrays.texts([job.key for job in jobs]),
        arrays.numbers([job.key_limit for job in jobs]),
        arrays.blobs([job.result for job in jobs]),
        arrays.texts([storable(job.error) for job in jobs]),
        arrays.blobs([msgpack.encode(job.progress) if job.progress else None for job in jobs]),
        arrays.texts([job.trace for job in jobs]),
        arrays.optional_numbers([job.keep_until for job in jobs]),
        arrays.numbers([place for place, _ in attempts]),
        arrays.blobs([msgpack.encode(one) for _, one in attempts]) if attempts else None,
    )


def storable(text: str | None) -> str | None:
    """Text as PostgreSQL keeps it: an error may hold a NUL, and must not fail for it."""
    return text.replace("\x00", "\\x00") if text is not None and "\x00" in text else text


def claimed(row: Row, pool: str) -> Claimed:
    """A row of the function `claim`, behind its rank."""
    _, id, worker, payload, fence, attempt, crashes, run_at, cause, trace = row
    return Claimed(id, worker, pool, payload, fence, attempt, crashes, run_at, cause, trace)


def record(row: Row, attempts: Sequence[bytes] | None = None) -> JobRecord:
    """A row of `COLUMNS`."""
    fields: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
    fields["status"] = STATUSES[fields["status"]]
    fields["priority"] = JobPriority(fields["priority"])
    if fields["progress"] is not None:
        fields["progress"] = _progress(fields["progress"])
    if attempts:
        fields["attempts"] = tuple(read_attempt(body) for body in attempts)
    return JobRecord(**fields)


def _progress(body: bytes) -> Progress | None:
    try:
        return msgpack.decode(body, type=Progress)
    except (MsgspecError, UnicodeDecodeError):
        return None  # the next one overwrites it
