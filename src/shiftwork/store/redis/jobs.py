"""Jobs as bytes for the scripts, and back. It owns the layout of a job's state and of what never changes about a job.

`jobs.lua` describes the layout, and reads and writes the same bytes.
"""

import math
import struct
from collections import Counter
from collections.abc import Awaitable, Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import MsgspecError, convert, msgpack
from msgspec.structs import replace

from shiftwork.core.docs import read_attempt
from shiftwork.core.job_parts import Need, Signal, Step, Wait
from shiftwork.core.model import (
    Added,
    Attempt,
    Claimed,
    DeadJob,
    JobPriority,
    JobRecord,
    JobStatus,
    NewJob,
    Outcome,
    Progress,
    Rewrite,
)
from shiftwork.core.statuses import NUMBERS, STATUSES

STATE: Final = struct.Struct("<BHHIIddddd")
PARKED, CANCELLING, KEYED, UNIQUE, HAS_ERROR, HAS_RESULT, HAS_PROGRESS = 1, 2, 4, 8, 16, 32, 64
EXPIRES, WAITS, IN_FLOW, TAGGED, DURABLE, NEEDS = 128, 256, 512, 1024, 2048, 4096

_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder().decode
_new: Final = attrgetter("id", "worker", "pool", "run_at", "head_start", "unique_key", "key", "key_limit")
_outcome_fields: Final = attrgetter(
    "id",
    "fence",
    "worker",
    "pool",
    "status",
    "ended_at",
    "run_at",
    "attempt",
    "crashes",
    "verdict",
    "disable_after",
    "result",
    "error",
    "keep_until",
    "cause",
    "report",
    "waited",
    "marks",
    "wait",
)
OWN_ARGUMENTS: Final = 2
"""How many elements of ARGV come before the bytes that follow the arguments."""

Fields = dict[bytes, Any]


class UnreadableError(Exception):
    """A job's record cannot be read; the message gives the reason."""


def new_jobs(jobs: Sequence[NewJob], now: float) -> tuple[list[tuple[Any, ...]], list[bytes]]:
    """Return jobs as rows for `added_together`, and their payloads."""
    rows, payloads = [], []
    for job in jobs:
        job.id.encode()  # an id that cannot be sent fails here, not for all jobs of the batch
        rows.append((*_new(job), now, _never_changes(job, now), _extra(job)))
        payloads.append(job.payload)
    return rows, payloads


def added_together(rows: Sequence[tuple[Any, ...]], payloads: Sequence[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the rows of a batch as arguments of `add.lua`, and the bytes that follow them."""
    first = OWN_ARGUMENTS + len(payloads) + 1
    if len(rows) == 1:
        [(*row, info, extra)] = rows
        if extra is None:
            return _encode((1, (*row, first))), [*payloads, info]
        return _encode((1, (*row, first, first + 1))), [*payloads, info, extra]
    *given, infos, extras = zip(*rows, strict=True)
    at = {info: first + n for n, info in enumerate(dict.fromkeys(infos))}
    given.append(tuple(map(at.__getitem__, infos)))
    if extras.count(None) < len(extras):
        for extra in dict.fromkeys(filter(None, extras)):
            at[extra] = first + len(at)
        given.append(tuple(map(at.get, extras)))
    return _encode((len(rows), [_brief(column) for column in given])), [*payloads, *at]


async def added(new: Sequence[NewJob], reply: Awaitable[list[Any]]) -> list[Added]:
    """Wait for the reply of `add.lua`, and return what happened to each job."""
    answers = await reply
    if not answers:
        return [Added(job.id, created=True) for job in new]
    return [
        Added(one.decode(), created=False) if isinstance(one, bytes) else Added(job.id, created=one == 1)
        for job, one in zip(new, answers, strict=True)
    ]


def columns(rows: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Turn rows into columns, which the server unpacks several times faster."""
    return [_brief(column) for column in zip(*rows, strict=True)]


def _brief(column: tuple[Any, ...]) -> Any:
    """Return the one value that a whole column has, or the column: most columns of a batch have one value."""
    return column[0] if column.count(column[0]) == len(column) else column


def _never_changes(job: NewJob | JobRecord, now: float) -> bytes:
    never_changes = (
        job.worker,
        job.pool,
        int(job.priority),
        job.head_start,
        now,
        job.cause,
        job.unique_key,
        job.key,
        job.key_limit,
        job.trace,
    )
    if job.options is None and job.expires_at is None:
        return _encode(never_changes)
    # The server's MessagePack knows texts, but no bytes.
    options = None if job.options is None else job.options.decode("latin-1")
    return _encode((*never_changes, options, job.expires_at))


def _extra(job: NewJob) -> bytes | None:
    """Return what few new jobs have, as `add.lua` describes it; None if this one has nothing of it."""
    if job.flow is None and not job.tags and not job.needs and job.parent is None and job.expires_at is None:
        return None
    return _encode((job.flow, job.tags, job.needs, job.parent, job.expires_at))


def outcomes(given: Sequence[Outcome]) -> tuple[list[Any], list[bytes]]:
    """Return outcomes as columns for `finish.lua`, and the bytes that follow them."""
    behind: list[bytes] = []
    return columns(_outcome(one, behind) for one in given), behind


def _outcome(one: Outcome, behind: list[bytes]) -> tuple[Any, ...]:
    if one.result is None and one.report is None and one.wait is None:
        return _outcome_fields(one)
    result = report = None
    if one.result is not None:
        behind.append(one.result)
        result = OWN_ARGUMENTS + len(behind)
    if one.report is not None:
        behind.append(_encode(one.report))
        report = OWN_ARGUMENTS + len(behind)
    *before, _, error, keep_until, cause, _, waited, marks, wait = _outcome_fields(one)
    return (*before, result, error, keep_until, cause, report, waited, marks, _wait(wait))


def _wait(wait: Wait | None) -> str | None:
    return None if wait is None else f"{wait.nth} {wait.name}"


def whole_jobs(records: Sequence[JobRecord]) -> tuple[list[Any], list[bytes]]:
    """Return whole jobs as arguments of `restore.lua`, and the bytes that follow them."""
    jobs: list[Any] = []
    behind: list[bytes] = []
    for one in records:
        kept = _fields(one)
        keep_until = False if one.keep_until is None else one.keep_until
        jobs.append((one.id, keep_until, len(kept), one.flow or False, one.tags, one.unmet))
        for pair in kept.items():
            behind += pair
    return jobs, behind


def _fields(one: JobRecord) -> Fields:
    """Return the fields of a job as they are stored, not parked; `restore.lua` decides about that."""
    optional: dict[bytes, tuple[int, bytes | None]] = {
        b"r": (HAS_RESULT, one.result),
        b"e": (HAS_ERROR, None if one.error is None else one.error.encode()),
        b"g": (HAS_PROGRESS, None if one.progress is None else _encode(one.progress)),
        b"f": (IN_FLOW, None if one.flow is None else one.flow.encode()),
        b"t": (TAGGED, _encode(one.tags) if one.tags else None),
        b"wait": (WAITS, None if one.wait is None else f"{one.wait.nth} {one.wait.name}".encode()),
    }
    flags = KEYED * (one.key is not None) + UNIQUE * (one.unique_key is not None)
    flags += EXPIRES * (one.expires_at is not None) + NEEDS * bool(one.unmet)
    flags += DURABLE * bool(one.steps or one.signals)
    state = STATE.pack(
        NUMBERS[one.status],
        flags + sum(flag for flag, value in optional.values() if value is not None),
        len(one.attempts),
        one.attempt,
        one.crashes,
        one.fence,
        one.run_at,
        one.head_start,
        math.nan if one.started_at is None else one.started_at,
        math.nan if one.ended_at is None else one.ended_at,
    )
    return {
        b"s": state + (one.instance or "").encode(),
        b"i": _never_changes(one, one.created_at),
        b"p": one.payload,
        **{name: value for name, (_, value) in optional.items() if value is not None},
        **_numbered(b"a", one.attempts),
        **_numbered(b"step", one.steps),
        **_numbered(b"signal", one.signals),
        **_signal_counts(one.signals),
    }


def _numbered(name: bytes, values: Sequence[Attempt | Step | Signal]) -> Fields:
    return {name + b"%d" % n: _encode(value) for n, value in enumerate(values, 1)}


def _signal_counts(signals: Sequence[Signal]) -> Fields:
    if not signals:
        return {}
    by_name = Counter(f"signals {signal.name}".encode() for signal in signals)
    return {name: b"%d" % n for name, n in (by_name | {b"signals": len(signals)}).items()}


def rewrites(given: Sequence[Rewrite]) -> tuple[list[Any], list[bytes]]:
    """Return rewrites as arguments of `rewrite.lua`, and the bytes that follow them."""
    jobs: list[Any] = []
    behind: list[bytes] = []
    for one in given:
        old, new = _carried(one.before), _carried(one.after)
        jobs.append((one.before.id, len(new)))
        for name, value in new.items():
            behind += (name, old.get(name, b""), value)
    return jobs, behind


def _carried(one: JobRecord) -> Fields:
    """Return the fields of a job that hold what it carries."""
    optional = {
        b"r": one.result,
        b"e": None if one.error is None else one.error.encode(),
        b"g": None if one.progress is None else _encode(one.progress),
    }
    return {
        b"p": one.payload,
        **{name: value for name, value in optional.items() if value is not None},
        **_numbered(b"a", one.attempts),
        **_numbered(b"step", one.steps),
        **_numbered(b"signal", one.signals),
    }


def claimed(flat: Sequence[Any], broken: dict[str, str]) -> list[Claimed]:
    """Return the jobs of a reply of `claim.lua`. Unreadable ones are added to `broken`, with the reason."""
    jobs: list[Claimed] = []
    for id, state, never_changes, payload in zip(flat[::4], flat[1::4], flat[2::4], flat[3::4], strict=True):
        _, flags, _, attempt, crashes, fence, run_at, _, _, _ = STATE.unpack_from(state)
        try:
            worker, pool, _, _, _, cause, _, _, _, trace, *own = _decode(never_changes)
        except (MsgspecError, UnicodeDecodeError, TypeError, ValueError) as error:
            broken[id.decode()] = f"unreadable: {error}"
            continue
        name = id.decode()
        job = Claimed(name, worker, pool, payload, int(fence), attempt, crashes, run_at, cause, trace or None)
        jobs.append(job if not own else replace(job, **_own(own, flags)))
    return jobs


def _own(own: Sequence[Any], flags: int) -> dict[str, Any]:
    """Return what few jobs have in i: their options, and their expiry as long as it holds."""
    if not own:
        return {}
    options, expires_at = own
    return {
        "options": options.encode("latin-1") if options else None,
        "expires_at": expires_at if flags & EXPIRES and expires_at else None,
    }


def fields(flat: Sequence[Any]) -> Fields:
    """Return the fields of an HGETALL reply by name."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def record(id: str, found: Fields, *, whole: bool) -> JobRecord:
    """Return a job from its fields, with its attempts if `whole`. Raises `UnreadableError`."""
    try:
        return _record(id, found, whole=whole)
    except (MsgspecError, struct.error, UnicodeDecodeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise UnreadableError(f"unreadable: {error}") from error


def _record(id: str, found: Fields, *, whole: bool) -> JobRecord:
    state = found[b"s"]
    status, flags, reports, attempt, crashes, fence, run_at, head_start, started, ended = STATE.unpack_from(state)
    worker, pool, priority, _, created_at, cause, unique_key, key, key_limit, trace, *own = (
        None if value is False else value for value in msgpack.decode(found[b"i"])
    )
    values: dict[str, Any] = {
        "id": id,
        "worker": worker,
        "pool": pool,
        "status": STATUSES[status],
        "payload": found[b"p"],
        "priority": JobPriority(priority or 0),
        "head_start": head_start,
        "run_at": run_at,
        "created_at": created_at,
        "cause": cause,
        "attempt": attempt,
        "crashes": crashes,
        "fence": int(fence),
        "instance": state[STATE.size :].decode() or None,
        "started_at": _instant(started),
        "ended_at": _instant(ended),
        "keep_until": float(found[b"k"]) if b"k" in found else None,
        "unique_key": unique_key,
        "key": key,
        "key_limit": key_limit,
        "parked": bool(flags & PARKED),
        "cancelling": bool(flags & CANCELLING),
        "result": found.get(b"r"),
        "error": found[b"e"].decode() if b"e" in found else None,
        "progress": msgpack.decode(found[b"g"], type=Progress) if b"g" in found else None,
        "attempts": tuple(read_attempt(found.get(b"a%d" % n) or b"") for n in range(1, reports + 1)) if whole else (),
        "trace": trace,
        "flow": found[b"f"].decode() if b"f" in found else None,
        "tags": msgpack.decode(found[b"t"]) if b"t" in found else (),
        "wait": _read_wait(found[b"wait"].decode()) if b"wait" in found else None,
        **_own(own, flags),
        **(_parts(found) if whole else {}),
    }
    return convert(values, JobRecord)


def _read_wait(text: str) -> Wait:
    nth, _, name = text.partition(" ")
    return Wait(name, int(nth))


def _parts(found: Fields) -> Fields:
    """Return the steps, the signals and the unmet needs of a job."""
    unmet = found.get(b"unmet") or ()
    needs = (Need(id.decode(), whatever == b"1") for id, whatever in zip(unmet[::2], unmet[1::2], strict=True))
    return {
        "steps": tuple(_read_numbered(b"step", found, Step)),
        "signals": tuple(_read_numbered(b"signal", found, Signal)),
        "unmet": tuple(sorted(needs, key=attrgetter("id"))),
    }


def _read_numbered(name: bytes, found: Fields, type: type[Step | Signal]) -> Iterator[Step | Signal]:
    n = 1
    while (value := found.get(name + b"%d" % n)) is not None:
        yield msgpack.decode(value, type=type)
        n += 1


def dead(flat: Sequence[bytes]) -> list[DeadJob]:
    """Return the dead jobs of a reply of `dead.lua`."""
    rows = zip(flat[::5], flat[1::5], flat[2::5], flat[3::5], flat[4::5], strict=True)
    return [
        DeadJob(
            id.decode(),
            _worker_and_pool({b"i": never_changes})[0],
            error.decode(errors="replace") or None,
            float(created_at),
            _instant(STATE.unpack_from(state)[-1]) if len(state) >= STATE.size else None,
        )
        for id, created_at, state, never_changes, error in rows
    ]


def _instant(number: float) -> float | None:
    return None if math.isnan(number) else number


def remains(id: str, found: Fields, why: str) -> JobRecord:
    """Return a dead job with what is left of a record that cannot be read."""
    worker, pool = _worker_and_pool(found)
    payload = found.get(b"p")
    return JobRecord(
        id=id,
        worker=worker,
        pool=pool,
        status=JobStatus.DEAD,
        payload=payload if isinstance(payload, bytes) else b"",
        priority=JobPriority.NORMAL,
        head_start=0.0,
        run_at=0.0,
        created_at=0.0,
        error=why,
    )


def _worker_and_pool(found: Fields) -> tuple[str, str]:
    """Return worker and pool as far as a damaged record has them; empty otherwise."""
    try:
        worker, pool, *_ = _decode(found.get(b"i") or b"")
    except (MsgspecError, UnicodeDecodeError, TypeError, ValueError):
        return "", ""
    return (worker if isinstance(worker, str) else ""), (pool if isinstance(pool, str) else "")
