"""What people read, from what the scripts answer: states, facts, numbers, instances, events."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from shiftwork.core.admission import Facts, Head, Lane, Running
from shiftwork.core.docs import BEAT, read_event
from shiftwork.core.model import Event, InstanceRecord, JobStatus, PoolStats, Stats, WorkerState, WorkerStats
from shiftwork.core.statuses import STATUSES
from shiftwork.store.redis.docs import readable, stored

COUNTED: Final = {
    JobStatus.SCHEDULED: "scheduled",
    JobStatus.FAILED: "retrying",
    JobStatus.QUEUED: "queued",
    JobStatus.PROCESSING: "processing",
    JobStatus.DEAD: "dead",
}
"""Statuses that the numbers name, and how."""
TOTALS: Final = {"a": "added", "c": "completed", "f": "failed"}
SECONDS: Final = {"r": "run_seconds", "w": "wait_seconds"}
LEASE: Final = struct.Struct("<dd")
NUMBER: Final = 8
"""Bytes that a stored event begins with: its number, so that no two are alike."""


def state(worker: str, answer: Sequence[bytes | None]) -> WorkerState:
    """A worker's state from the fields that `worker_state.lua` names."""
    on, why, at, failures, started, ended, success, error, rate = answer
    return WorkerState(
        worker=worker,
        enabled=on != b"0",
        reason=_text(why),
        changed_at=_number(at),
        failures=int(failures or 0),
        last_started=_number(started),
        last_ended=_number(ended),
        last_success=_number(success),
        last_error=_text(error),
        rate_at=_number(rate) or 0.0,
    )


def told_state(known: WorkerState) -> tuple[str, list[str]]:
    """A worker's state as `take_over.lua` takes it."""
    fields = {
        "on": "1" if known.enabled else "0",
        "why": known.reason,
        "at": known.changed_at,
        "failures": known.failures,
        "started": known.last_started,
        "ended": known.last_ended,
        "success": known.last_success,
        "error": known.last_error,
        "rate": known.rate_at,
    }
    return known.worker, [str(part) for pair in fields.items() if pair[1] is not None for part in pair]


def told_marks(totals: Mapping[str, PoolStats]) -> list[str]:
    """The marks of pools as `take_over.lua` takes them: names of fields, each with its value behind it."""
    return [
        part for pool, told in totals.items() for mark, n in told.marks.items() for part in (f"{mark} {pool}", f"{n}")
    ]


def facts(answer: Sequence[Any]) -> Facts:
    """What `survey.lua` tells."""
    gates, breakers, pools, served, lanes = answer
    told = {lane[0].decode(): _lane(lane) for lane in lanes}
    return Facts(
        lanes=told,
        gates={name: gate for name, gate in readable(stored("gates", gates)).items() if name in told},
        breakers=readable(stored("breaker", breakers)),
        pools=readable(stored("pool", pools)),
        served={pool.decode() for pool in served},
    )


def _lane(answer: Sequence[Any]) -> Lane:
    name, fields, running, eldest, newest, head, retrying, live = answer
    return Lane(
        state=state(name.decode(), fields),
        running=running,
        eldest=Running(eldest[0].decode(), eldest[1].decode(), float(eldest[2])) if eldest else None,
        newest_started_at=_number(newest),
        head=Head(rank=float(head[0]), id=head[1].decode(), run_at=float(head[2])) if head else None,
        retrying=bool(retrying),
        live=bool(live),
    )


def stats(answer: Sequence[Any]) -> Stats:
    """What `stats.lua` counts."""
    by_pool, by_worker, totals, seconds, marks, heads = answer
    told = Stats()
    for field, n in _pairs(totals):
        pool = told.pools.setdefault(field[1:], PoolStats())
        setattr(pool, TOTALS[field[0]], int(n))
    for field, n in _pairs(seconds):
        setattr(told.pools.setdefault(field[1:], PoolStats()), SECONDS[field[0]], float(n))
    for field, n in _pairs(marks):
        mark, _, name = field.partition(" ")
        told.pools.setdefault(name, PoolStats()).marks[mark] = int(n)
    for name, run_at in _pairs(heads):
        told.pools.setdefault(name, PoolStats()).oldest_run_at = float(run_at)
    for field, n in _pairs(by_pool):
        _count(told.pools.setdefault(field[1:], PoolStats()), field, int(n))
    for field, n in _pairs(by_worker):
        if int(n):
            _count(told.workers.setdefault(field[1:], WorkerStats()), field, int(n))
    return told


def _count(numbers: PoolStats | WorkerStats, field: str, n: int) -> None:
    name = COUNTED.get(STATUSES[int(field[0])])
    if name is not None:
        setattr(numbers, name, n)


def instances(flat: Sequence[bytes]) -> list[InstanceRecord]:
    """All instances, in order of their names. One that cannot be read is written anew by its next beat."""
    found = []
    for body in flat[1::2]:
        beat = BEAT.decode(body[LEASE.size :])
        if beat is not None:
            found.append(InstanceRecord(beat, *LEASE.unpack_from(body)))
    return sorted(found, key=lambda record: record.beat.instance)


def event(number: int, body: bytes) -> Event:
    """An event from its bytes."""
    return read_event(number, body[NUMBER:])


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    return ((name.decode(), value) for name, value in zip(flat[::2], flat[1::2], strict=True))


def _number(value: bytes | None) -> float | None:
    return float(value) if value else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode()
