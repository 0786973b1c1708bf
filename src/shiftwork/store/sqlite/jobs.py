"""Turns jobs into rows, and rows into jobs. It owns `add`, `get`, and the burial of rows that cannot be read."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import MsgspecError, convert, msgpack

from shiftwork.core.docs import read_attempt
from shiftwork.core.model import Added, Attempt, JobPriority, JobRecord, JobStatus, NewJob, Progress
from shiftwork.core.statuses import COMPLETED, DEAD, FAILED, NUMBERS, PROCESSING, QUEUED, SCHEDULED, STATUSES
from shiftwork.store.columns import COLUMNS
from shiftwork.store.sqlite import keys
from shiftwork.store.sqlite.driver import Damaged
from shiftwork.store.sqlite.session import ADDED, SqliteSession, as_list

INLINE_BYTES: Final = 1024
"""Larger payloads and results have tables of their own, because every change of status rewrites the job's row."""

Row = Sequence[Any]
Place = tuple[int, int, int, int]
"""Where a new job belongs: its own number, and those of its pool, its worker and its status."""


# ── add ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add(session: SqliteSession, jobs: Sequence[NewJob], now: float) -> list[Added]:
    """Keep these jobs, and return what became of each, in order."""
    first = session.next_seqs(len(jobs))
    placed = [(job, _place(session, seq, job, now)) for seq, job in enumerate(jobs, first)]
    due = due_before(session, [status for _, (_, _, _, status) in placed])
    if session.run_rows("add_job", [_row(session.namespace, job, place, now) for job, place in placed]) == len(jobs):
        answers = [Added(job.id, created=True) for job in jobs]
    else:
        answers = _sort_out(session, jobs, first)
        placed = [one for one, answer in zip(placed, answers, strict=True) if answer.created]
    _after_add(session, placed)
    if due is not None:
        ring_if_sooner(session, (job.run_at for job, (_, _, _, status) in placed if status == SCHEDULED), due)
    return answers


def _place(session: SqliteSession, seq: int, job: NewJob, now: float) -> Place:
    status = NUMBERS[JobStatus.by_time(job.run_at, now)]
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


def _sort_out(session: SqliteSession, jobs: Sequence[NewJob], first: int) -> list[Added]:
    """Find which jobs existed already: those whose id has a lower number than the one meant for them.

    A job whose id has a higher number, or none, met a live job with its unique key; its id was free for a later job.
    """
    seqs = dict(session.run("seqs_of_ids", (session.namespace, as_list(job.id for job in jobs))))
    answers = []
    for seq, job in enumerate(jobs, first):
        if seqs.get(job.id, seq + 1) <= seq:
            answers.append(Added(job.id, created=seqs[job.id] == seq))
        else:
            twin = session.value("live_twin", (session.workers.number(job.worker), job.unique_key))
            answers.append(Added(twin, created=False))
    return answers


def _after_add(session: SqliteSession, added: Sequence[tuple[NewJob, Place]]) -> None:
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
        keys.repark(session, groups)


def due_before(session: SqliteSession, statuses: Iterable[int]) -> float | None:
    """When the next job was due before jobs of these statuses are written; None if none of them waits for its time."""
    if not any(status <= FAILED for status in statuses):
        return None
    due = session.value("next_due", (session.namespace,))
    return float("inf") if due is None else float(due)


def ring_if_sooner(session: SqliteSession, times: Iterable[float], due: float | None) -> None:
    """Wake the leader if something is due sooner than before."""
    if due is not None and min(times, default=due) < due:
        session.ring("leader")


# ── read ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Unreadable(dict[int, str]):
    """The jobs whose rows cannot be read, by number, each with the reason. They are to be buried."""


def get(session: SqliteSession, ids: Sequence[str], broken: Unreadable) -> list[JobRecord | None]:
    """These jobs, whole, in order."""
    rows = read_rows(session, "records_of_ids", (session.namespace, as_list(set(ids))))
    found = {record.id: record for record in records(session, rows, broken, whole=True)}
    return [found.get(id) for id in ids]


def read_rows(session: SqliteSession, statement: str, args: Sequence[Any]) -> dict[int, Row]:
    """What a statement selects from the view `records`: the columns of `COLUMNS`, by the job's number."""
    return {seq: columns for seq, _, *columns in session.run(statement, args)}


def records(session: SqliteSession, rows: Mapping[int, Row], broken: Unreadable, *, whole: bool) -> list[JobRecord]:
    """These rows as jobs, in order; whole ones with their attempts."""
    attempts = _attempts(session, rows) if whole else {}
    return [_record(seq, row, attempts.get(seq, ()), broken) for seq, row in rows.items()]


def _attempts(session: SqliteSession, seqs: Iterable[int]) -> dict[int, tuple[Attempt, ...]]:
    found: dict[int, tuple[Attempt, ...]] = {}
    for seq, body in session.run("attempts_of_jobs", (as_list(seqs),)):
        found[seq] = (*found.get(seq, ()), read_attempt(body))
    return found


def _record(seq: int, row: Row, attempts: tuple[Attempt, ...], broken: Unreadable) -> JobRecord:
    try:
        return _decode(row, attempts)
    except (MsgspecError, TypeError, ValueError, IndexError) as error:
        broken[seq] = f"unreadable: {error}"
        return _remains(row, attempts, broken[seq])


def _decode(row: Row, attempts: tuple[Attempt, ...]) -> JobRecord:
    if Damaged in map(type, row):
        raise ValueError("text that is not valid UTF-8")
    fields = dict(zip(COLUMNS, row, strict=True))
    for name in ("payload", "result"):
        if isinstance(fields[name], str):  # `convert` would take it for base64
            raise TypeError(f"{name} is text")
    fields["status"] = STATUSES[_index(fields["status"])]
    fields["parked"] = bool(fields["parked"])
    fields["cancelling"] = bool(fields["cancelling"])
    fields["attempts"] = attempts
    if fields["progress"] is not None:
        fields["progress"] = msgpack.decode(fields["progress"], type=Progress)
    return convert(fields, JobRecord)


def _index(status: Any) -> int:
    if type(status) is not int or not 0 <= status < len(STATUSES):
        raise ValueError(f"unknown status {status!r}")
    return status


def _remains(row: Row, attempts: tuple[Attempt, ...], reason: str) -> JobRecord:
    """What is left of a job whose row cannot be read."""
    fields = dict(zip(COLUMNS, row, strict=True))
    payload = fields["payload"]
    return JobRecord(
        id=str(fields["id"]),
        worker=str(fields["worker"]),
        pool=str(fields["pool"]),
        status=JobStatus.DEAD,
        payload=payload if isinstance(payload, bytes) else b"",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=number(fields["run_at"]),
        created_at=number(fields["created_at"]),
        error=reason,
        attempts=attempts,
    )


def number(value: Any) -> float:
    """A number from a column that may be damaged."""
    return float(value) if isinstance(value, int | float) else 0.0


def bury_unreadable(session: SqliteSession, suspects: Unreadable) -> None:
    """Bury the jobs that a reader could not read, if they still cannot be read."""
    broken = Unreadable()
    records(session, read_rows(session, "records_of_seqs", (as_list(suspects),)), broken, whole=False)
    bury(session, broken, None)


def bury(session: SqliteSession, broken: Unreadable, now: float | None) -> None:
    """Put jobs whose rows cannot be read into the dead-letter queue, with the reason."""
    groups: set[tuple[int, str]] = set()
    for seq, reason in broken.items():
        row = session.run("job_to_bury", (seq,)).fetchone()
        status, pool, worker, key = row or (DEAD, 0, 0, None)
        if status == DEAD:
            continue
        session.run("bury_job", (reason, now, seq))
        session.run("drop_cancel", (seq,))
        session.count(pool, worker, status, -1)
        session.count(pool, worker, DEAD)
        if key is not None and status in (QUEUED, PROCESSING):
            groups.add((worker, key))
        known = session.run("read_state", (worker,)).fetchone() is not None  # the number may be damaged, too
        if known and status in range(COMPLETED):  # or a schedule would wait for its end for ever
            state = session.state(worker)
            state.last_ended = now or (state.last_ended or 0.0) + 1.0
            session.state_changed(worker)
        session.ring("ended", "leader")
    keys.repark(session, groups)


def replace_payload(session: SqliteSession, seq: int, payload: bytes) -> None:
    """Replace a job's payload."""
    small = len(payload) <= INLINE_BYTES
    session.run("change_payload", (payload if small else None, seq))
    session.run("drop_payload", (seq,))
    if not small:
        session.run("add_payload", (seq, payload))


def delete(session: SqliteSession, doomed: Iterable[tuple[int, int, int, int]]) -> int:
    """Delete these jobs (number, pool, worker, status) and everything that belongs to them. Returns how many."""
    doomed = list(doomed)
    for (pool, worker, status), n in Counter((pool, worker, status) for _, pool, worker, status in doomed).items():
        session.count(pool, worker, status, -n)
    seqs = (as_list(seq for seq, _, _, _ in doomed),)
    for what in ("delete_jobs", "delete_payloads", "delete_results", "delete_attempts"):
        session.run(what, seqs)
    return len(doomed)
