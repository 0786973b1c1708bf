"""Replies of scripts as values: worker states, facts, statistics, instances, events."""

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import MsgspecError, msgpack

from shiftwork.core.doc_kinds import BEAT, read_event
from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.event import Event
from shiftwork.core.model.flows import FlowRecord
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.pool_stats import PoolStats, Stats, WorkerStats
from shiftwork.core.workers.admission import Facts, Head, Lane, Running
from shiftwork.store.redis.docs import readable, stored

COUNTED: Final = {
    JobStatus.SCHEDULED: "scheduled",
    JobStatus.FAILED: "retrying",
    JobStatus.WAITING: "waiting",
    JobStatus.QUEUED: "queued",
    JobStatus.PROCESSING: "processing",
    JobStatus.DEAD: "dead",
}
"""Statuses that statistics count, and under which name."""
Number = type[int] | type[float]
OF_POOLS: Final[dict[str, tuple[str, Number]]] = {
    "a": ("added", int),
    "c": ("completed", int),
    "f": ("failed", int),
    "r": ("run_seconds", float),
    "q": ("wait_seconds", float),
}
OF_WORKERS: Final[dict[str, tuple[str, Number]]] = {
    "C": ("completed", int),
    "F": ("failed", int),
    "D": ("died", int),
    "R": ("run_seconds", float),
}
"""Which number a field of the hash `numbers` has, by its first letter."""
LEASE: Final = struct.Struct("<dd")
NUMBER: Final = 8
"""The number of bytes that precede a stored event: its number, so that no two events are equal."""


def state(worker: str, reply: Sequence[bytes | None]) -> WorkerState:
    """Return a worker's state from the fields that `worker_state.lua` lists."""
    on, why, at, failures, started, ended, success, error, wrong, rate = reply
    return WorkerState(
        worker=worker,
        enabled=on in {None, b"1"},
        reason=_text(why),
        changed_at=_number(at),
        failures=int(_number(failures) or 0),
        last_started=_number(started),
        last_ended=_number(ended),
        last_success=_number(success),
        last_error=_text(error),
        last_error_at=_number(wrong),
        rate_at=_number(rate) or 0.0,
    )


def state_fields(known: WorkerState) -> tuple[str, list[str]]:
    """Return a worker's state as an argument of `take_over`."""
    fields = {
        "on": "1" if known.enabled else "0",
        "why": known.reason,
        "at": known.changed_at,
        "failures": known.failures,
        "started": known.last_started,
        "ended": known.last_ended,
        "success": known.last_success,
        "error": known.last_error,
        "wrong": known.last_error_at,
        "rate": known.rate_at,
    }
    return known.worker, [str(part) for pair in fields.items() if pair[1] is not None for part in pair]


def mark_fields(totals: Mapping[str, PoolStats]) -> list[str]:
    """Return the marks of pools as an argument of `take_over`: names of fields and values in turn."""
    return [
        part for pool, one in totals.items() for mark, n in one.marks.items() for part in (f"m{mark} {pool}", f"{n}")
    ]


def facts(reply: Sequence[Any]) -> Facts:
    """Return the facts of a reply of `survey`."""
    gates, breakers, pools, served, lanes = reply
    by_worker = {lane.state.worker: lane for lane in map(_lane, lanes)}
    return Facts(
        lanes=by_worker,
        gates={name: gate for name, gate in readable(stored("gates", gates)).items() if name in by_worker},
        breakers=readable(stored("breaker", breakers)),
        pools=readable(stored("pool", pools)),
        served={pool.decode() for pool in served},
    )


def _lane(reply: Sequence[Any]) -> Lane:
    name, fields, running, eldest, newest, head, retrying, live, ready = reply
    return Lane(
        state=state(name.decode(), fields),
        running=running,
        eldest=_running(*eldest) if eldest else None,
        newest_started_at=_number(newest),
        head=_head(*head) if head else None,
        retrying=bool(retrying),
        live=bool(live),
        ready=None if ready == b"" else int(ready),
    )


def _running(id: bytes, instance: bytes, started_at: bytes) -> Running:
    return Running(id.decode(), instance.decode(), float(started_at))


def _head(rank: bytes, id: bytes, since: bytes) -> Head:
    return Head(rank=float(rank), id=id.decode(), since=float(since))


def stats(reply: Sequence[Any]) -> Stats:
    """Return the statistics of a reply of `stats`."""
    numbers, heads = reply
    found = Stats()
    marks: dict[str, dict[str, int]] = {}
    for name, run_at in _pairs(heads):
        found.pools.setdefault(name, PoolStats()).oldest_run_at = float(run_at)
    for field, n in _pairs(numbers):
        kind, name = field[0], field[1:]
        if kind == "p":
            _count(found.pools.setdefault(name[1:], PoolStats()), name, int(n))
        elif kind == "w":
            if int(n):
                _count(found.workers.setdefault(name[1:], WorkerStats()), name, int(n))
        elif kind == "m":
            mark, _, pool = name.partition(" ")
            marks.setdefault(pool, {})[mark] = int(n)
        elif kind in OF_POOLS:
            what, number = OF_POOLS[kind]
            setattr(found.pools.setdefault(name, PoolStats()), what, number(n))
        else:
            what, number = OF_WORKERS[kind]
            setattr(found.workers.setdefault(name, WorkerStats()), what, number(n))
    for pool, counts in marks.items():
        found.count_marks(pool, counts)
    return found


def _count(numbers: PoolStats | WorkerStats, name: str, n: int) -> None:
    status = COUNTED.get(STATUSES[int(name[0])])
    if status is not None:
        setattr(numbers, status, n)


def flows(flat: Sequence[bytes]) -> list[FlowRecord]:
    """Return the flows of a reply of `flows`."""
    width = 3 + len(STATUSES)
    return [_flow(*flat[at : at + width]) for at in range(0, len(flat), width)]


def _flow(id: bytes, created_at: bytes, aim: bytes, *counts: bytes) -> FlowRecord:
    by_status = zip(STATUSES, map(int, counts), strict=True)
    try:
        worker, tags = msgpack.decode(aim, type=tuple[str, list[str]])
    except MsgspecError:
        worker, tags = "", []
    counted = {status.value: n for status, n in by_status if n}
    return FlowRecord(id.decode(), float(created_at), counted, worker, tuple(tags))


def instances(flat: Sequence[bytes]) -> list[InstanceRecord]:
    """Return all instances by name, without those that cannot be read: their next beat replaces them."""
    found = []
    for body in flat[1::2]:
        beat = BEAT.decode(body[LEASE.size :])
        if beat is not None:
            found.append(InstanceRecord(beat, *LEASE.unpack_from(body)))
    return sorted(found, key=lambda record: record.beat.instance)


def event(number: int, body: bytes) -> Event:
    """Return an event from its bytes."""
    return read_event(number, body[NUMBER:])


def _pairs(flat: Sequence[bytes]) -> Iterator[tuple[str, bytes]]:
    return ((name.decode(), value) for name, value in zip(flat[::2], flat[1::2], strict=True))


def _number(value: bytes | None) -> float | None:
    try:
        number = float(value or "nan")
    except ValueError:  # damaged: as if it was not there
        return None
    return number if math.isfinite(number) else None


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
