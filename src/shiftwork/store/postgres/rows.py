"""Jobs as columns of arguments, and rows as jobs."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from msgspec import MsgspecError, json, msgpack

from shiftwork.core.docs import read_attempt
from shiftwork.core.landing import COUNTED
from shiftwork.core.model import (
    Claimed,
    JobPriority,
    JobRecord,
    NewJob,
    Outcome,
    Progress,
)
from shiftwork.core.statuses import NUMBERS, STATUSES
from shiftwork.errors import StoreError
from shiftwork.store.columns import COLUMNS
from shiftwork.store.postgres import arrays

WAITED: Final = ""
"""The name under which the table `marks` has the seconds that runs had waited."""
FAILURE: Final = -1
VERDICTS: Final = {"success": 1, "neutral": 0, "failure": FAILURE}

Row = Sequence[Any]


class StartedRow(NamedTuple):
    """One row of the functions `claim` and `start`. `claim` returns one without an id where a gate has a say."""

    rank: float
    id: str | None
    worker: str
    payload: bytes
    fence: int
    attempt: int
    crashes: int
    run_at: float
    cause: str
    trace: str | None


def new_columns(jobs: Sequence[NewJob], times: Sequence[float]) -> tuple[Any, ...]:
    """Return new jobs as arguments of the function `add`."""
    for job in jobs:
        _refuse_nul(job)
    keys = arrays.texts([job.key for job in jobs])
    workers = [job.worker for job in jobs]
    return (
        arrays.texts([job.id for job in jobs]),
        arrays.texts(arrays.collapsed(workers) if keys is None else workers),
        arrays.texts(arrays.collapsed([job.pool for job in jobs])),
        arrays.blobs([job.payload for job in jobs]),
        arrays.numbers(arrays.collapsed([job.run_at for job in jobs])),
        arrays.numbers(arrays.collapsed([int(job.priority) for job in jobs])),
        arrays.numbers(arrays.collapsed([job.head_start for job in jobs])),
        arrays.texts([job.unique_key for job in jobs]),
        keys,
        arrays.numbers(arrays.collapsed([job.key_limit for job in jobs])),
        arrays.texts(arrays.collapsed([job.cause for job in jobs])),
        arrays.texts([job.trace for job in jobs]),
        arrays.numbers(arrays.collapsed(times)),
    )


def new_row(job: NewJob, now: float) -> tuple[Any, ...]:
    """Return one new job without keys as arguments of the function `add_one`."""
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
        raise _nul_error(job)


def _nul_error(job: NewJob | JobRecord) -> StoreError:
    return StoreError(f"job {job.id!r} of {job.worker!r}: PostgreSQL cannot store text with a NUL character")


def outcome_columns(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """Return outcomes as arguments of the function `finish`."""
    verdicts = [VERDICTS[one.verdict] for one in outcomes]
    return (
        arrays.texts([one.id for one in outcomes]),
        arrays.numbers([one.fence for one in outcomes]),
        arrays.numbers(arrays.collapsed([NUMBERS[one.status] for one in outcomes])),
        arrays.numbers([one.ended_at for one in outcomes]),
        arrays.numbers(arrays.collapsed([one.run_at for one in outcomes])),
        arrays.numbers(arrays.collapsed([one.attempt for one in outcomes])),
        arrays.numbers(arrays.collapsed([one.crashes for one in outcomes])),
        arrays.numbers(arrays.collapsed(verdicts)),
        arrays.optional_numbers([one.disable_after for one in outcomes]) if FAILURE in verdicts else None,
        arrays.blobs([one.result for one in outcomes]),
        arrays.texts([storable(one.error) for one in outcomes]),
        arrays.blobs([msgpack.encode(one.report) if one.report else None for one in outcomes]),
        arrays.optional_numbers([one.keep_until for one in outcomes]),
        *_outcome_marks(outcomes),
    )


def _outcome_marks(outcomes: Sequence[Outcome]) -> tuple[Any, ...]:
    """Return what the outcomes add to the marks of their pools: summed up by pool and name, and one by one."""
    one_by_one = [(one.pool, one.marks, one.waited if one.status in COUNTED else 0.0) for one in outcomes]
    sums: defaultdict[tuple[str, str], float] = defaultdict(float)
    for (pool, marks), n in Counter([(pool, marks) for pool, marks, _ in one_by_one]).items():
        for mark in marks.split():
            sums[pool, mark] += n
    for pool, _, waited in one_by_one:
        sums[pool, WAITED] += waited
    keys = sorted(sums)
    return (
        arrays.texts([pool for pool, _ in keys]),
        arrays.texts([name for _, name in keys]),
        arrays.numbers([sums[key] for key in keys]),
        json.encode(one_by_one).decode(),
    )


def record_columns(jobs: Sequence[JobRecord]) -> tuple[Any, ...]:
    """Return whole jobs as arguments of the function `restore`; the last two are positions of jobs and attempts."""
    for job in jobs:
        if "\x00" in f"{job.id}{job.worker}{job.pool}{job.unique_key}{job.key}{job.cause}{job.trace}{job.instance}":
            raise _nul_error(job)
    attempts = [(position, one) for position, job in enumerate(jobs, 1) for one in job.attempts]
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
        arrays.numbers([position for position, _ in attempts]),
        arrays.blobs([msgpack.encode(one) for _, one in attempts]) if attempts else None,
    )


def carried(job: JobRecord) -> dict[str, Any]:
    """Return what a job carries, as arguments of the statement `rewrite`."""
    return {
        "payload": job.payload,
        "result": job.result,
        "error": storable(job.error),
        "progress": None if job.progress is None else msgpack.encode(job.progress),
        "attempts": [msgpack.encode(attempt) for attempt in job.attempts],
    }


def storable(text: str | None) -> str | None:
    """Return text that PostgreSQL can store: an error message may contain a NUL character, and must not fail."""
    return text.replace("\x00", "\\x00") if text is not None and "\x00" in text else text


def claimed(row: StartedRow, pool: str) -> Claimed:
    """Return a claimed job from its row."""
    _, id, worker, payload, fence, attempt, crashes, run_at, cause, trace = row
    return Claimed(id or "", worker, pool, payload, fence, attempt, crashes, run_at, cause, trace)


def record(row: Row, attempts: Sequence[bytes] | None = None) -> JobRecord:
    """Return a job from the values of `COLUMNS`."""
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
        return None  # the next progress note replaces it
