"""Adding jobs: a fast path for a single plain job, a full one for all others, and the tables of optional fields.

A plain job is one row. Optional fields, such as tags and needs, have columns that a plain row omits, or tables.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from shiftwork.core.jobs.transitions import NUMBERS, QUEUED, SCHEDULED, WAITING
from shiftwork.core.model.jobs import Added, JobStatus, NewJob
from shiftwork.store.sqlite import flows
from shiftwork.store.sqlite.file.sqlite_session import ADDED, FLOW_COUNTERS, SqliteSession, as_list
from shiftwork.store.sqlite.rows import INLINE_BYTES
from shiftwork.store.sqlite.sql import for_rows
from shiftwork.store.sqlite.waking import due_before, repark, ring_if_sooner

Place = tuple[int, int, int, int]
"""Where a new job belongs: its own number, and those of its pool, its worker and its status."""
Placed = tuple[NewJob, Place]
_ADD_FAST: Final = for_rows("add_job_fast", 1)


def add(session: SqliteSession, jobs: Sequence[NewJob], now: float) -> list[Added]:
    """Keep these jobs, and return what became of each, in order."""
    if len(jobs) == 1 and _add_fast(session, jobs[0], now):
        return [Added(jobs[0].id, created=True)]
    return _add_full(session, jobs, now)


def extend(session: SqliteSession, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
    """Keep jobs that a running job adds; None unless it runs under this fence and was not asked to stop."""
    if session.value("may_add", (session.namespace, parent, fence)) is None:
        return None
    return add(session, jobs, now)


def _add_fast(session: SqliteSession, job: NewJob, now: float) -> bool:
    """Keep a new plain job that is due, as most single ones are. False if it is another one."""
    if job.key is not None or not job.run_at <= now or len(job.payload) > INLINE_BYTES or not _is_plain(job):
        return False
    pool, worker = session.pools.number(job.pool), session.workers.number(job.worker)
    row = _row(session.namespace, job, (session.next_seqs(1), pool, worker, QUEUED), now)
    if session.cursor.execute(_ADD_FAST, row).rowcount != 1:
        return False
    counts = session.lane(pool, worker)
    counts[QUEUED] += 1
    counts[ADDED] += 1
    session.topics.add(f"pool:{job.pool}")
    return True


def _is_plain(job: NewJob) -> bool:
    """Return whether it has no optional fields."""
    return (
        job.options is None
        and job.flow is None
        and job.expires_at is None
        and job.parent is None
        and not (job.tags or job.needs)
    )


def _add_full(session: SqliteSession, jobs: Sequence[NewJob], now: float) -> list[Added]:
    """Keep any jobs. If all of them are plain, their rows omit the optional columns."""
    first = session.next_seqs(len(jobs))
    placed = [(job, _place(session, seq, job, now)) for seq, job in enumerate(jobs, first)]
    plain = all(map(_is_plain, jobs))
    expiring = not plain and any(job.expires_at is not None for job in jobs)
    due = due_before(session, {status for _, (_, _, _, status) in placed}, expiring=expiring)
    rows = [_row(session.namespace, job, place, now) for job, place in placed]
    if plain:
        answers, kept = _keep(session, "add_job_fast", placed, rows)
    else:
        numbers = flows.numbers_of(session, (job.flow for job in jobs))
        whole = [(*row, *_optional_columns(job, numbers.get(job.flow))) for row, job in zip(rows, jobs, strict=True)]
        answers, kept = _keep(session, "add_job_full", placed, whole)
        _add_optional(session, kept, numbers, now)
    if due is not None:
        ring_if_sooner(session, _times(kept), due)
    return answers


def _keep(
    session: SqliteSession, statement: str, placed: Sequence[Placed], rows: Sequence[tuple[Any, ...]]
) -> tuple[list[Added], Sequence[Placed]]:
    """Write new jobs. Returns what became of each, and those that are new."""
    if session.run_rows(statement, rows) == len(placed):
        answers = [Added(job.id, created=True) for job, _ in placed]
    else:
        answers = _sort_out(session, placed)
        placed = [one for one, answer in zip(placed, answers, strict=True) if answer.created]
    _after_add(session, placed)
    return answers, placed


def _place(session: SqliteSession, seq: int, job: NewJob, now: float) -> Place:
    status = WAITING if job.needs else NUMBERS[JobStatus.by_time(job.run_at, now)]
    return seq, session.pools.number(job.pool), session.workers.number(job.worker), status


def _row(namespace: int, job: NewJob, place: Place, now: float) -> tuple[Any, ...]:
    seq, pool, worker, status = place
    unique_key, key, trace, payload, run_at = job.unique_key, job.key, job.trace, job.payload, job.run_at
    return (
        seq,
        namespace,
        job.id,
        pool,
        worker,
        status,
        1 if key is not None and status == QUEUED else 0,
        run_at - job.head_start,
        run_at,
        job.head_start,
        now,
        int(job.priority),
        job.key_limit,
        job.cause,
        0 if unique_key is None else unique_key,
        0 if key is None else key,
        0 if trace is None else trace,
        bytearray(payload) if len(payload) <= INLINE_BYTES else 0,
    )


def _sort_out(session: SqliteSession, placed: Sequence[Placed]) -> list[Added]:
    """Find which jobs existed already: those whose id has a lower number than the one meant for them.

    A job whose id has a higher number, or none, met a live job with its unique key; its id was free for a later job.
    """
    seqs = dict(session.run("seqs_of_ids", (session.namespace, as_list(job.id for job, _ in placed))))
    answers = []
    for job, (seq, _, worker, _) in placed:
        if seqs.get(job.id, seq + 1) <= seq:
            answers.append(Added(job.id, created=seqs[job.id] == seq))
        else:
            twin = session.value("live_twin", (worker, job.unique_key))
            answers.append(Added(twin, created=False))
    return answers


def _after_add(session: SqliteSession, added: Sequence[Placed]) -> None:
    woken: set[int] = set()
    large: list[tuple[int, bytes]] = []
    groups: set[tuple[int, str]] = set()
    for job, (seq, pool, worker, status) in added:
        counts = session.lane(pool, worker)
        counts[status] += 1
        counts[ADDED] += 1
        if len(job.payload) > INLINE_BYTES:
            large.append((seq, job.payload))
        if status == QUEUED:
            woken.add(pool)
            if job.key is not None:
                groups.add((worker, job.key))
    for pool in woken:
        session.ring_pool(pool)
    if large:
        session.run_many("add_payload", large)
    if groups:
        repark(session, groups)


# ── optional fields ──────────────────────────────────────────────────────────────────────────────────────────────────


def _add_optional(
    session: SqliteSession, added: Sequence[Placed], numbers: Mapping[str | None, int], now: float
) -> None:
    """Write the optional fields that have other tables. `numbers` are those of the flows."""
    _add_tags(session, added, now)
    for job, (_, _, _, status) in added:
        if job.flow is not None:
            session.flow(numbers[job.flow])[FLOW_COUNTERS[status]] += 1
    for job in {job.flow: job for job, _ in added}.values():  # the last one of each flow
        if job.flow is not None:
            flows.begin(session, numbers[job.flow], job, now)
    flows.tie(session, [(seq, job) for job, (seq, _, _, _) in added if job.needs or job.parent], now)


def _optional_columns(job: NewJob, flow: int | None) -> tuple[Any, ...]:
    expires_at, options, tags = job.expires_at, job.options, job.tags
    return (
        "" if expires_at is None else expires_at,
        0 if flow is None else flow,
        0 if options is None else bytearray(options),
        as_list(tags) if tags else 0,
    )


def _add_tags(session: SqliteSession, added: Sequence[Placed], now: float) -> None:
    rows = [(session.namespace, tag, now, job.id, seq) for job, (seq, _, _, _) in added for tag in job.tags]
    if rows:
        session.run_many("add_tag", rows)


def _times(added: Sequence[Placed]) -> Iterator[float]:
    """Yield the times when these jobs are due or expire."""
    for job, (_, _, _, status) in added:
        if status == SCHEDULED:
            yield job.run_at
        if job.expires_at is not None:
            yield job.expires_at
