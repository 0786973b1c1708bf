"""Moving in from another store: jobs, states of workers and totals as arguments of `restore` and `take_over`."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import msgpack

from shiftwork.core.jobs.transitions import NUMBERS
from shiftwork.core.model.job_parts import Signal, Step
from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.store.redis.lua import STATE, Flag
from shiftwork.store.redis.rows import Fields, never_changes_of, numbered, wait_text

_encode: Final = msgpack.Encoder().encode


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
    """Return the fields of a job as they are stored. It is not parked: the script `restore` parks it if it must."""
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
        **numbered(b"a", one.attempts),
        **numbered(b"step", one.steps),
        **numbered(b"signal", one.signals),
        **_step_counts(one.steps),
        **_signal_counts(one.signals),
    }


def _lead(one: JobRecord) -> float:
    """Return by how much a job's rank is below its `run_at`: by its head start, unless it has kept its rank."""
    usual = one.rank == one.run_at - one.head_start
    return one.head_start if usual else one.run_at - one.rank


def _step_counts(steps: Sequence[Step]) -> Fields:
    if not steps:
        return {}
    return {b"steps": b"%d" % len(steps), b"step bytes": b"%d" % sum(len(step.result) for step in steps)}


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


def taken_over(
    states: Sequence[WorkerState], totals: Mapping[str, PoolStats]
) -> tuple[list[Any], list[Any], list[str]]:
    """Return states of workers, totals of pools, and their marks as arguments of `take_over`."""
    grown = [
        (pool, f"{one.added}", f"{one.completed}", f"{one.failed}", f"{one.run_seconds!r}", f"{one.wait_seconds!r}")
        for pool, one in totals.items()
    ]
    return [_state_fields(state) for state in states], grown, _mark_fields(totals)


def _state_fields(known: WorkerState) -> tuple[str, list[str]]:
    """Return a worker's state as names and values of fields."""
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


def _mark_fields(totals: Mapping[str, PoolStats]) -> list[str]:
    """Return the marks of pools as names of fields and values in turn."""
    return [
        part for pool, one in totals.items() for mark, n in one.marks.items() for part in (f"m{mark} {pool}", f"{n}")
    ]
