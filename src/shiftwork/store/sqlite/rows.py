"""How a job is a row, with what it has in other tables: reading both as people see them, replacing values, deleting.

Payloads and results that are too large for the row have tables of their own. A row that cannot be read is noted as
`Unreadable`; `finish.bury` ends its job.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from msgspec import MsgspecError, convert, json, msgpack

from shiftwork.core.doc_kinds import read_attempt
from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.job_parts import NEED_ALONE, NEED_BROKEN, NEED_WHATEVER, Need, Signal, Step, Wait
from shiftwork.core.model.jobs import Attempt, JobPriority, JobRecord, JobStatus, Progress
from shiftwork.store.sqlite.file.driver import Damaged
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession, as_list

Row = dict[str, Any]
"""A row of the view `records`, by the names of its columns."""


INLINE_BYTES: Final = 1024
"""Larger payloads and results have tables of their own, because every change of status rewrites the job's row."""
PART_TABLES: Final = ("payloads", "results", "attempts", "needs", "tags", "steps", "signals")
"""The tables whose rows end with their job, in the order of `parts_in_use`."""
DoomedJob = tuple[int, int, int, int, int | None]
"""A job to be deleted: its own number, and those of its pool, its worker, its status and its flow."""


class Unreadable(dict[int, str]):
    """The jobs whose rows cannot be read, by number, each with the reason. They are to be buried."""


class Parts:
    """What a job has in other tables."""

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.steps: list[bytes] = []
        self.signals: list[bytes] = []
        self.unmet: list[Need] = []


def read_rows(session: SqliteSession, statement: str, args: Sequence[Any]) -> dict[int, Row]:
    """Return what a statement selects from the view `records`, by the job's number."""
    found = session.run(statement, args)
    names = [name for name, *_ in found.description]
    return {row["seq"]: row for row in (dict(zip(names, values, strict=True)) for values in found)}


def detailed(session: SqliteSession, rows: Mapping[int, Row], broken: Unreadable, *, whole: bool) -> list[JobRecord]:
    """Return these rows as jobs with attempts and unmet needs, in order; whole ones with their steps and signals."""
    return records(rows, broken, _parts(session, rows, whole=whole))


def with_broken_needs(session: SqliteSession, rows: Mapping[int, Row], broken: Unreadable) -> list[JobRecord]:
    """Return these rows as jobs, in order, with nothing of what they have in other tables but their broken needs."""
    parts: defaultdict[int, Parts] = defaultdict(Parts)
    of_flows = [seq for seq, row in rows.items() if row["flow"] is not None]
    for seq, id, kind in session.run("broken_needs_of_jobs", (as_list(of_flows),)) if of_flows else ():
        parts[seq].unmet.append(need_of(id, kind))
    return records(rows, broken, parts)


def records(
    rows: Mapping[int, Row], broken: Unreadable, parts: Mapping[int, Parts] = MappingProxyType({})
) -> list[JobRecord]:
    """Return these rows as jobs, in order, with what they have in other tables."""
    return [_record(seq, row, parts.get(seq) or Parts(), broken) for seq, row in rows.items()]


def _parts(session: SqliteSession, seqs: Iterable[int], *, whole: bool) -> dict[int, Parts]:
    listed = (as_list(seqs),)
    found: defaultdict[int, Parts] = defaultdict(Parts)
    for seq, body in session.run("attempts_of_jobs", listed):
        found[seq].attempts.append(read_attempt(body))
    for seq, id, kind in session.run("needs_of_jobs", listed):
        found[seq].unmet.append(need_of(id, kind))
    if whole:
        for seq, body in session.run("steps_of_jobs", listed):
            found[seq].steps.append(body)
        for seq, body in session.run("signals_of_jobs", listed):
            found[seq].signals.append(body)
    return found


def _record(seq: int, row: Row, parts: Parts, broken: Unreadable) -> JobRecord:
    try:
        return _decode(row, parts)
    except (MsgspecError, TypeError, ValueError, IndexError) as error:
        broken[seq] = f"unreadable: {error}"
        return _remains(row, parts, broken[seq])


def _decode(row: Row, parts: Parts) -> JobRecord:
    if Damaged in map(type, row.values()):
        raise ValueError("text that is not valid UTF-8")
    for name in ("payload", "result", "options"):
        if isinstance(row[name], str):  # `convert` would take it for base64
            raise TypeError(f"{name} is text")
    fields = row | {
        "status": STATUSES[_index(row["status"])],
        "parked": bool(row["parked"]),
        "cancelling": bool(row["cancelling"]),
        "progress": None if row["progress"] is None else msgpack.decode(row["progress"], type=Progress),
        "wait": None if row["wait"] is None else msgpack.decode(row["wait"], type=Wait),
        "tags": () if row["tags"] is None else json.decode(row["tags"], type=tuple[str, ...]),
        "attempts": tuple(parts.attempts),
        "steps": tuple(msgpack.decode(body, type=Step) for body in parts.steps),
        "signals": tuple(msgpack.decode(body, type=Signal) for body in parts.signals),
        "unmet": tuple(parts.unmet),
        "payload_size": _size_of_cut(row["payload"], row["payload_size"]),
        "result_size": _size_of_cut(row["result"], row["result_size"]),
    }
    return convert(fields, JobRecord)


def _size_of_cut(value: bytes | None, size: int | None) -> int | None:
    """Return the size of a value that was cut; None of one that is whole."""
    return size if value is not None and size is not None and len(value) < size else None


def _index(status: Any) -> int:
    if type(status) is not int or not 0 <= status < len(STATUSES):
        raise ValueError(f"unknown status {status!r}")
    return status


def _remains(row: Row, parts: Parts, reason: str) -> JobRecord:
    """Return what is left of a job whose row cannot be read."""
    payload = row["payload"]
    return JobRecord(
        id=str(row["id"]),
        worker=str(row["worker"]),
        pool=str(row["pool"]),
        status=JobStatus.DEAD,
        payload=payload if isinstance(payload, bytes) else b"",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=number(row["run_at"]),
        rank=number(row["run_at"]),
        created_at=number(row["created_at"]),
        error=reason,
        attempts=tuple(parts.attempts),
        unmet=tuple(parts.unmet),
    )


def number(value: Any) -> float:
    """Return a number from a column that may be damaged."""
    return float(value) if isinstance(value, int | float) else 0.0


def need_of(id: str, kind: int) -> Need:
    """Decode a row of `needs`."""
    return Need(id, whatever=bool(kind & NEED_WHATEVER), alone=bool(kind & NEED_ALONE), broken=bool(kind & NEED_BROKEN))


def kind_of(need: Need) -> int:
    """Return the flags of a need, as its row has them."""
    return NEED_WHATEVER * need.whatever + NEED_ALONE * need.alone + NEED_BROKEN * need.broken


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def replace_payload(session: SqliteSession, seq: int, payload: bytes) -> None:
    """Replace a job's payload."""
    small = len(payload) <= INLINE_BYTES
    session.run("change_payload", (payload if small else None, seq))
    session.run("drop_payload", (seq,))
    if not small:
        session.run("add_payload", (seq, payload))


def replace_result(session: SqliteSession, seq: int, result: bytes) -> None:
    """Replace a job's result."""
    small = len(result) <= INLINE_BYTES
    session.run("change_result", (result if small else None, seq))
    session.run("drop_result", (seq,))
    if not small:
        session.run("add_result", (seq, result))


def delete(session: SqliteSession, doomed: Iterable[DoomedJob]) -> int:
    """Delete these jobs and everything that belongs to them. Returns how many."""
    doomed = list(doomed)
    for (pool, worker, status, flow), n in Counter(job[1:] for job in doomed).items():
        session.count(pool, worker, flow, status, -n)
    seqs = (as_list(seq for seq, *_ in doomed),)
    session.run("delete_jobs", seqs)
    for part, used in zip(PART_TABLES, session.run("parts_in_use").fetchone(), strict=True):
        if used:
            session.run(f"delete_{part}", seqs)
    if any(flow is not None for *_, flow in doomed):
        session.flush()  # a flow ends with its last job, and begins anew if it gets another one
    return len(doomed)
