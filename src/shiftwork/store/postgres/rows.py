"""Jobs as arguments of functions, one column for each field of a batch; and rows of results as jobs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import MsgspecError, json, msgpack

from shiftwork.core.doc_kinds import read_attempt
from shiftwork.core.jobs.needs import needs_of
from shiftwork.core.jobs.transitions import NUMBERS, STATUSES
from shiftwork.core.model.job_parts import Need, Wait
from shiftwork.core.model.jobs import Claimed, JobPriority, JobRecord, NewJob, Progress
from shiftwork.core.values.beginnings import read_signal, read_step
from shiftwork.errors import StoreError
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.queries import COLUMNS

Row = Sequence[Any]
TimedJob = tuple[NewJob, float]
"""A new job, and the time of the call that adds it."""


class StartedRow(NamedTuple):
    """One row of the functions `claim` and `start`. A row without an id says in `cause` why `claim` chose nothing."""

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
    expires_at: float | None
    options: bytes | None


def is_plain(job: NewJob) -> bool:
    """Return whether the job has nothing that only `add_full` knows."""
    return not (job.flow or job.needs or job.parent or job.tags or job.options) and job.expires_at is None


def new_columns(jobs: Sequence[NewJob], times: Sequence[float]) -> tuple[Any, ...]:
    """Return new jobs as arguments of the function `add`."""
    keys = arrays.texts([job.key for job in jobs])
    workers = [job.worker for job in jobs]
    columns = (
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
    _refuse_nul(columns, jobs)
    return columns


def part_columns(jobs: Sequence[NewJob]) -> tuple[Any, ...]:
    """Return the arguments of the function `add_full` that `add` does not have."""
    ids = {job.id for job in jobs}
    needs = [(job.id, need) for job in jobs for need in needs_of(job)]
    needed = {need.id for _, need in needs}
    columns = (
        arrays.optional_numbers([job.expires_at for job in jobs]),
        arrays.blobs([job.options for job in jobs]),
        arrays.texts([arrays.texts(job.tags) if job.tags else None for job in jobs]),
        arrays.texts([job.flow for job in jobs]),
        arrays.numbers([len(needs_of(job)) for job in jobs]),
        arrays.booleans([job.id in needed or job.parent is not None for job in jobs]),
        arrays.texts([job.parent for job in jobs]),
        arrays.texts([id for id, _ in needs]) if needs else None,
        arrays.texts([need.id for _, need in needs]) if needs else None,
        arrays.booleans([need.whatever for _, need in needs]),
        arrays.booleans([need.alone for _, need in needs]),
        arrays.booleans([need.id not in ids for _, need in needs]),
    )
    _refuse_nul(columns, jobs)
    return columns


def new_row(job: NewJob, now: float) -> tuple[Any, ...]:
    """Return one new job without keys as arguments of the function `add_one_fast`."""
    row = (
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
    _refuse_nul(row, [job])
    return row


def is_lone(job: NewJob) -> bool:
    """Return whether the function `add_one_fast` can add the job."""
    return job.key is None and job.unique_key is None and is_plain(job)


def lone_row(namespace: int, job: NewJob, now: float) -> tuple[bytes | None, ...]:
    """Return all arguments of the function `add_one_fast`, encoded as the protocol of the server has them."""
    id, worker, pool, payload, run_at, priority, head_start, key_limit, cause, trace, at = new_row(job, now)
    return (
        b"%d" % namespace,
        id.encode(),
        worker.encode(),
        pool.encode(),
        payload,
        repr(run_at).encode(),
        b"%d" % priority,
        repr(head_start).encode(),
        b"%d" % key_limit,
        cause.encode(),
        None if trace is None else trace.encode(),
        repr(at).encode(),
    )


def _refuse_nul(arguments: Sequence[Any], jobs: Sequence[NewJob]) -> None:
    """Raise if one of the texts in these arguments, which were made from the jobs, has a NUL character."""
    for argument in arguments:
        if isinstance(argument, str) and "\x00" in argument:
            raise _nul_error(next(job for job in jobs if _has_nul(job)))


def _has_nul(job: NewJob) -> bool:
    one_each = job.id, job.worker, job.pool, job.unique_key, job.key, job.cause, job.trace, job.flow, job.parent
    return any("\x00" in text for text in (*one_each, *job.tags, *(need.id for need in job.needs)) if text)


def _nul_error(job: NewJob | JobRecord) -> StoreError:
    return StoreError(f"job {job.id!r} of {job.worker!r}: PostgreSQL cannot store text with a NUL character")


def wait_columns(waits: Sequence[Wait | None]) -> tuple[Any, ...]:
    """Return the names and numbers of the signals that jobs wait for."""
    return (
        arrays.texts([None if wait is None else wait.name for wait in waits]),
        arrays.optional_numbers([None if wait is None else wait.nth for wait in waits]),
    )


def record_columns(jobs: Sequence[JobRecord]) -> tuple[Any, ...]:
    """Return whole jobs as arguments of the function `restore`."""
    for job in jobs:
        if "\x00" in f"{job.id}{job.worker}{job.pool}{job.unique_key}{job.key}{job.cause}{job.trace}{job.instance}":
            raise _nul_error(job)
        if "\x00" in f"{job.flow}{''.join(job.tags)}{job.unmet}{job.wait}":
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
        arrays.numbers([job.rank for job in jobs]),
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
        arrays.optional_numbers([job.expires_at for job in jobs]),
        arrays.blobs([job.options for job in jobs]),
        arrays.texts([arrays.texts(job.tags) if job.tags else None for job in jobs]),
        arrays.texts([job.flow for job in jobs]),
        *wait_columns([job.wait for job in jobs]),
        arrays.numbers([len(job.unmet) for job in jobs]),
        arrays.numbers([position for position, _ in attempts]),
        arrays.blobs([msgpack.encode(one) for _, one in attempts]) if attempts else None,
        *_records_beside(jobs),
    )


def _records_beside(jobs: Sequence[JobRecord]) -> tuple[Any, ...]:
    """Return the signals, unmet needs and steps of whole jobs as arguments of the function `restore`."""
    signals = [(job.id, one) for job in jobs for one in job.signals]
    needs = [(job.id, one) for job in jobs for one in job.unmet]
    steps = [(job.id, one) for job in jobs for one in job.steps]
    return (
        arrays.texts([id for id, _ in signals]),
        arrays.texts([storable(one.name) for _, one in signals]),
        arrays.numbers([len(one.value) for _, one in signals]),
        arrays.blobs([msgpack.encode(one) for _, one in signals]) if signals else None,
        arrays.texts([id for id, _ in needs]),
        arrays.texts([one.id for _, one in needs]),
        arrays.booleans([one.whatever for _, one in needs]),
        arrays.booleans([one.alone for _, one in needs]),
        arrays.booleans([one.broken for _, one in needs]),
        arrays.texts([id for id, _ in steps]),
        arrays.numbers([one.number for _, one in steps]),
        arrays.numbers([len(one.result) for _, one in steps]),
        arrays.blobs([msgpack.encode(one) for _, one in steps]) if steps else None,
    )


def carried(job: JobRecord) -> dict[str, Any]:
    """Return the values of a job that can be encrypted, as arguments of the statement `rewrite`."""
    return {
        "payload": job.payload,
        "result": job.result,
        "error": storable(job.error),
        "progress": None if job.progress is None else msgpack.encode(job.progress),
        "attempts": [msgpack.encode(attempt) for attempt in job.attempts],
        "steps": [msgpack.encode(step) for step in job.steps],
        "signals": [msgpack.encode(signal) for signal in job.signals],
    }


def storable(text: str | None) -> str | None:
    """Return the text without NUL characters, which PostgreSQL cannot store: an error message may have some."""
    return text.replace("\x00", "\\x00") if text is not None and "\x00" in text else text


def claimed(row: StartedRow, pool: str) -> Claimed:
    _, id, worker, payload, fence, attempt, crashes, run_at, cause, trace, expires_at, options = row
    return Claimed(id or "", worker, pool, payload, fence, attempt, crashes, run_at, cause, trace, expires_at, options)


def record(row: Row) -> JobRecord:
    """Return a job from the values of `COLUMNS`, its wait, and what follows of `WHOLE`."""
    fields: dict[str, Any] = dict(zip(COLUMNS, row, strict=False))
    wait_name, wait_nth, *whole = row[len(COLUMNS) :]
    fields["status"] = STATUSES[fields["status"]]
    fields["priority"] = JobPriority(fields["priority"])
    fields["tags"] = tuple(fields["tags"] or ())
    if fields["progress"] is not None:
        fields["progress"] = _progress(fields["progress"])
    if wait_nth is not None:
        fields["wait"] = Wait(wait_name, wait_nth)
    if whole:
        fields |= _whole(*whole)
    return JobRecord(**fields)


def _whole(
    attempts: Sequence[bytes] | None,
    unmet: str | None,
    steps: Sequence[bytes] | None = None,
    signals: Sequence[bytes] | None = None,
) -> dict[str, Any]:
    return {
        "attempts": tuple(read_attempt(body) for body in attempts or ()),
        "unmet": json.decode(unmet, type=tuple[Need, ...]) if unmet else (),
        "steps": tuple(read_step(body) for body in steps or ()),
        "signals": tuple(read_signal(body) for body in signals or ()),
    }


def _progress(body: bytes) -> Progress | None:
    try:
        return msgpack.decode(body, type=Progress)
    except (MsgspecError, UnicodeDecodeError):
        return None  # the next progress note replaces it
