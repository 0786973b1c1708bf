"""How a job is stored: its fields as bytes, and back, as it is claimed and as people read it.

The state of a job (`s`) has a fixed layout, what never changes about it (`i`) is MessagePack; `parts/job_state.lua`
describes both. A record that cannot be read raises `UnreadableError`; `remains` is what is left of it.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from msgspec import MsgspecError, convert, msgpack

from shiftwork.core.doc_kinds import read_attempt
from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.job_parts import NEED_ALONE, NEED_WHATEVER, Need, Signal, Step, Wait
from shiftwork.core.model.jobs import Attempt, JobPriority, JobRecord, JobStatus, NewJob, Progress
from shiftwork.store.redis.lua import STATE, Flag

_encode: Final = msgpack.Encoder().encode
_decode: Final = msgpack.Decoder().decode

Fields = dict[bytes, Any]


class UnreadableError(Exception):
    """A job's record cannot be read; the message gives the reason."""


def never_changes_of(job: NewJob | JobRecord, now: float) -> bytes:
    """Return i of a job, which was created at this time."""
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


def own_values(own: Sequence[Any], flags: int) -> dict[str, Any]:
    """Return the optional fields in i: the job's options, and its expiry as long as it holds."""
    if not own:
        return {}
    options, expires_at = own
    return {
        "options": options.encode("latin-1") if options else None,
        "expires_at": expires_at if flags & Flag.EXPIRES and expires_at else None,
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
        "started_at": instant(started),
        "ended_at": instant(ended),
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


def _parts(found: Fields) -> dict[str, Any]:
    """Return the steps and the signals of a job."""
    return {
        "steps": tuple(_read_numbered(b"step", found, Step)),
        "signals": tuple(_read_numbered(b"signal", found, Signal)),
    }


def _read_numbered(name: bytes, found: Fields, kind: type[Step | Signal]) -> Iterator[Step | Signal]:
    """Yield steps or signals by their numbers; signals that were taken have left gaps."""
    numbers = sorted(
        int(field[len(name) :]) for field in found if field.startswith(name) and field[len(name) :].isdigit()
    )
    for n in numbers:
        yield msgpack.decode(found[name + b"%d" % n], type=kind)


def _needs(found: Fields) -> tuple[Need, ...]:
    """Return the unmet needs of a job; in a list, the broken ones."""
    unmet, broken = found.get(b"unmet") or (), found.get(b"broken") or ()
    kinds = ((id, int(kind or 0)) for id, kind in zip(unmet[::2], unmet[1::2], strict=True))
    needs = (
        Need(id.decode(), whatever=bool(kind & NEED_WHATEVER), alone=bool(kind & NEED_ALONE), broken=id in broken)
        for id, kind in kinds
    )
    return tuple(sorted(needs, key=attrgetter("id")))


def wait_text(wait: Wait | None) -> str | None:
    """Return the signal that a job waits for as the scripts have it."""
    return None if wait is None else f"{wait.nth} {wait.name}"


def _read_wait(text: str) -> Wait:
    nth, _, name = text.partition(" ")
    return Wait(name, int(nth))


def instant(number: float) -> float | None:
    return None if math.isnan(number) else number


def remains(id: str, found: Fields, why: str) -> JobRecord:
    """Return a dead job with what is left of a record that cannot be read."""
    worker, pool = worker_and_pool(found)
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


def worker_and_pool(found: Fields) -> tuple[str, str]:
    """Return worker and pool as far as a damaged record has them; empty otherwise."""
    try:
        worker, pool, *_ = _decode(found.get(b"i") or b"")
    except (MsgspecError, UnicodeDecodeError, TypeError, ValueError):
        return "", ""
    return (worker if isinstance(worker, str) else ""), (pool if isinstance(pool, str) else "")


def numbered(name: bytes, values: Sequence[Attempt | Step | Signal]) -> Fields:
    return {name + b"%d" % n: _encode(value) for n, value in enumerate(values, 1)}
