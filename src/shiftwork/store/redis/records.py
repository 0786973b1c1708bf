"""Whole jobs as fields for the scripts, and back: as people read them, move them and encrypt them anew."""

import math
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import MsgspecError, convert, msgpack

from shiftwork.core.doc_kinds import read_attempt
from shiftwork.core.jobs.transitions import NUMBERS, STATUSES
from shiftwork.core.model.job_parts import NEED_ALONE, NEED_WHATEVER, Need, SeenParts, Signal, Step, StepPage, Wait
from shiftwork.core.model.jobs import Attempt, DeadJob, JobPriority, JobRecord, JobStatus, Progress, Rewrite
from shiftwork.core.values.beginnings import read_step, seen_signal, seen_step
from shiftwork.store.redis.jobs import never_changes_of, own_values, wait_text
from shiftwork.store.redis.layout import STATE, Flag

_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder().decode

Fields = dict[bytes, Any]


class UnreadableError(Exception):
    """A job's record cannot be read; the message gives the reason."""


def whole_jobs(records: Sequence[JobRecord]) -> tuple[list[Any], list[bytes]]:
    """Return whole jobs as arguments of `restore`, and the bytes that follow them."""
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
    """Return the fields of a job as they are stored, not parked; `restore` decides about that."""
    optional: dict[bytes, tuple[int, bytes | None]] = {
        b"r": (Flag.HAS_RESULT, one.result),
        b"e": (Flag.HAS_ERROR, None if one.error is None else one.error.encode()),
        b"g": (Flag.HAS_PROGRESS, None if one.progress is None else _encode(one.progress)),
        b"f": (Flag.IN_FLOW, None if one.flow is None else one.flow.encode()),
        b"t": (Flag.TAGGED, _encode(one.tags) if one.tags else None),
        b"wait": (Flag.WAITS, None if one.wait is None else (wait_text(one.wait) or "").encode()),
    }
    flags = Flag.KEYED * (one.key is not None) + Flag.UNIQUE * (one.unique_key is not None)
    flags += Flag.EXPIRES * (one.expires_at is not None) + Flag.NEEDS * bool(one.unmet)
    flags += Flag.DURABLE * bool(one.steps or one.signals)
    state = STATE.pack(
        NUMBERS[one.status],
        flags + sum(flag for flag, value in optional.values() if value is not None),
        len(one.attempts),
        one.attempt,
        one.crashes,
        one.fence,
        one.run_at,
        _lead(one),
        math.nan if one.started_at is None else one.started_at,
        math.nan if one.ended_at is None else one.ended_at,
    )
    return {
        b"s": state + (one.instance or "").encode(),
        b"i": never_changes_of(one, one.created_at),
        b"p": one.payload,
        **{name: value for name, (_, value) in optional.items() if value is not None},
        **_numbered(b"a", one.attempts),
        **_numbered(b"step", one.steps),
        **_numbered(b"signal", one.signals),
        **_step_counts(one.steps),
        **_signal_counts(one.signals),
    }


def _lead(one: JobRecord) -> float:
    """Return by how much a job's rank is below its `run_at`: by its head start, unless it has kept its rank."""
    usual = one.rank == one.run_at - one.head_start
    return one.head_start if usual else one.run_at - one.rank


def _numbered(name: bytes, values: Sequence[Attempt | Step | Signal]) -> Fields:
    return {name + b"%d" % n: _encode(value) for n, value in enumerate(values, 1)}


def _signal_counts(signals: Sequence[Signal]) -> Fields:
    if not signals:
        return {}
    named: defaultdict[bytes, bytes] = defaultdict(bytes)
    for n, signal in enumerate(signals, 1):
        named[f"signals {signal.name}".encode()] += b"%d:%d " % (n, len(signal.value))
    size = sum(len(signal.value) for signal in signals)
    return {
        b"signals": b"%d" % len(signals),
        b"last signal": b"%d" % len(signals),
        b"signal bytes": b"%d" % size,
        **named,
    }


def _step_counts(steps: Sequence[Step]) -> Fields:
    if not steps:
        return {}
    return {b"steps": b"%d" % len(steps), b"step bytes": b"%d" % sum(len(step.result) for step in steps)}


def rewrites(given: Sequence[Rewrite]) -> tuple[list[Any], list[bytes]]:
    """Return rewrites as arguments of `rewrite`, and the bytes that follow them."""
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
    status, flags, reports, attempt, crashes, fence, run_at, lead, started, ended = STATE.unpack_from(state)
    worker, pool, priority, head_start, created_at, cause, unique_key, key, key_limit, trace, *own = (
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
        "rank": run_at - lead,
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
        "parked": bool(flags & Flag.PARKED),
        "cancelling": bool(flags & Flag.CANCELLING),
        "result": found.get(b"r"),
        "error": found[b"e"].decode() if b"e" in found else None,
        "progress": msgpack.decode(found[b"g"], type=Progress) if b"g" in found else None,
        "attempts": tuple(read_attempt(found.get(b"a%d" % n) or b"") for n in range(1, reports + 1)) if whole else (),
        "trace": trace,
        "flow": found[b"f"].decode() if b"f" in found else None,
        "tags": msgpack.decode(found[b"t"]) if b"t" in found else (),
        "wait": _read_wait(found[b"wait"].decode()) if b"wait" in found else None,
        "payload_size": found.get(b"p size"),
        "result_size": found.get(b"r size"),
        **own_values(own, flags),
        "unmet": _needs(found),
        **(_parts(found) if whole else {}),
    }
    return convert(values, JobRecord)


def _read_wait(text: str) -> Wait:
    nth, _, name = text.partition(" ")
    return Wait(name, int(nth))


def _parts(found: Fields) -> dict[str, Any]:
    """Return the steps and the signals of a job."""
    return {
        "steps": tuple(_read_numbered(b"step", found, Step)),
        "signals": tuple(_read_numbered(b"signal", found, Signal)),
    }


def _needs(found: Fields) -> tuple[Need, ...]:
    """Return the unmet needs of a job; in a list, the broken ones."""
    unmet, broken = found.get(b"unmet") or (), found.get(b"broken") or ()
    kinds = ((id, int(kind or 0)) for id, kind in zip(unmet[::2], unmet[1::2], strict=True))
    needs = (
        Need(id.decode(), whatever=bool(kind & NEED_WHATEVER), alone=bool(kind & NEED_ALONE), broken=id in broken)
        for id, kind in kinds
    )
    return tuple(sorted(needs, key=attrgetter("id")))


def _read_numbered(name: bytes, found: Fields, kind: type[Step | Signal]) -> Iterator[Step | Signal]:
    """Yield steps or signals by their numbers; signals that were taken have left gaps."""
    numbers = sorted(
        int(field[len(name) :]) for field in found if field.startswith(name) and field[len(name) :].isdigit()
    )
    for n in numbers:
        yield msgpack.decode(found[name + b"%d" % n], type=kind)


def step_page(bodies: Sequence[bytes], more: int) -> StepPage:
    """Return the steps of a reply of `steps`."""
    return StepPage([read_step(body) for body in bodies], more=bool(more))


def seen_parts(steps: Sequence[Any], signals: Sequence[Any], *counts: int) -> SeenParts:
    """Return what people see of a job, from a reply of `parts`."""
    step_count, step_bytes, signal_count, signal_bytes = counts
    return SeenParts(
        steps=[seen_step(head, tail) for head, tail in zip(steps[::2], steps[1::2], strict=True)],
        signals=[seen_signal(head, tail) for head, tail in zip(signals[::2], signals[1::2], strict=True)],
        step_count=step_count,
        step_bytes=step_bytes,
        signal_count=signal_count,
        signal_bytes=signal_bytes,
    )


def dead(flat: Sequence[bytes]) -> list[DeadJob]:
    """Return the dead jobs of a reply of `dead`."""
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
        rank=0.0,
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
