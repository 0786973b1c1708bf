"""What holds the queued jobs of a worker, and how many of them would gates let start now?

`core.workers.admission` decides about one job. This looks at all queued jobs of a worker and of a pool: the planner
wants no slots for jobs that a gate holds, and health names the gate that holds most of a backlog.

A gate is *shut* if it lets nothing start: a pause, a disabled worker, an open breaker, a dependency, a conflict. A rate
limit, `max_running` and concurrency keys let some jobs start, and hold the rest.
"""

from collections.abc import Iterable
from math import ceil, floor
from typing import Final

from msgspec import Struct

from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.core.workers.admission import Facts, Gates, Head, Lane, Obstacle, RateLimit, explain
from shiftwork.sentences import sentence

READY_COUNTED: Final = 1_000
"""Up to how many jobs a store counts for `Lane.ready`, if it has to count them one by one."""
SHUT: Final = {"paused", "disabled", "breaker", "dependency", "blocked"}
"""The obstacles that let no job of a worker start."""


class Gate(Struct, frozen=True, kw_only=True):
    """A gate that holds queued jobs."""

    code: str
    """The code of its `Obstacle`, concurrency_key, or unserved if no running node has the worker."""
    by: str
    """The worker, pool or breaker that they wait for."""
    worker: str
    """The worker whose jobs it holds; the one with the most of them, if there are several."""
    why: str
    jobs: int
    """How many queued jobs it holds."""
    since: float | None = None
    per_second: float | None = None
    """How many it lets start in a second; only of a rate limit."""


class Backlog(Struct, frozen=True, kw_only=True):
    """The queued jobs of one worker."""

    queued: int
    gate: Gate | None = None
    """The gate that holds most of them; None if they only wait for a free slot."""
    open: int
    """How many of them are behind no shut gate, and not parked behind a concurrency key."""
    startable: int
    """How many of them gates would let start now, if there were slots for all of them."""
    slots: float | None = None
    """How many slots the worker can keep busy at most; None if no gate bounds that."""


class Held(Struct, frozen=True):
    """The queued jobs of a pool that gates hold."""

    jobs: int
    gate: Gate
    """The gate that holds most of them."""


def backlog(
    worker: str, stats: WorkerStats, facts: Facts, now: float, *, run_seconds: float | None = None, full: bool = True
) -> Backlog:
    """Return what holds the queued jobs of a worker.

    `run_seconds`: how long a run takes, if that is known. `full`: whether every slot of the pool is busy. While one is
    free, what jobs wait for is the limit that has let the last one start a moment ago.
    """
    lane = facts.lanes.get(worker) or Lane(state=WorkerState(worker=worker))
    queued, gates = stats.queued, facts.gates.get(worker)
    shut = _shut(worker, lane, facts, now)
    if shut is not None:
        return Backlog(queued=queued, gate=_gate(shut, worker, queued), open=0, startable=0, slots=0.0)
    ready = queued if lane.ready is None or lane.ready >= READY_COUNTED else min(queued, lane.ready)
    slots = _slots(gates, facts, run_seconds)
    startable = ready if slots is None else min(ready, max(0, ceil(slots) - lane.running))
    if gates is not None and gates.rate is not None and not _probing(gates, facts):
        startable = max(startable, min(ready, _burst(gates.rate, lane, now, run_seconds), _left(gates, lane)))
    return Backlog(
        queued=queued,
        gate=_limiting(worker, lane, facts, now, queued=queued, ready=ready, full=full),
        open=ready,
        startable=startable,
        slots=slots,
    )


def unserved(worker: str, queued: int) -> Backlog:
    """Return what holds the queued jobs of a worker that no running node has."""
    why = sentence("no running node has worker {worker}", worker=worker)
    gate = Gate(code="unserved", by=worker, worker=worker, why=why, jobs=queued)
    return Backlog(queued=queued, gate=gate, open=0, startable=0, slots=0.0)


def main_gate(backlogs: Iterable[Backlog]) -> Gate | None:
    """Return the gate that holds most of what is queued; None if most jobs only wait for a free slot."""
    found = [*backlogs]
    gate = largest_gate(found)
    free = sum(one.queued - (one.gate.jobs if one.gate else 0) for one in found)
    return gate if gate is not None and gate.jobs >= free else None


def largest_gate(backlogs: Iterable[Backlog]) -> Gate | None:
    """Return the gate that holds more queued jobs than any other; None if no gate holds any."""
    held: dict[tuple[str, str], Gate] = {}
    for one in backlogs:
        gate = one.gate
        if gate is not None and gate.jobs:
            known = held.get((gate.code, gate.by))
            held[gate.code, gate.by] = gate if known is None else _both(known, gate)
    return max(held.values(), key=lambda gate: (gate.jobs, gate.code, gate.by), default=None)


def held_of(backlogs: Iterable[Backlog]) -> Held | None:
    """Return what gates hold of these backlogs, those of one pool; None if no gate holds any."""
    found = [*backlogs]
    gate = largest_gate(found)
    return None if gate is None else Held(sum(one.gate.jobs for one in found if one.gate is not None), gate)


def _both(one: Gate, other: Gate) -> Gate:
    larger = one if one.jobs >= other.jobs else other
    since = min((gate.since for gate in (one, other) if gate.since is not None), default=None)
    return Gate(
        code=larger.code,
        by=larger.by,
        worker=larger.worker,
        why=larger.why,
        jobs=one.jobs + other.jobs,
        since=since,
        per_second=larger.per_second,
    )


def _gate(obstacle: Obstacle, worker: str, jobs: int, per_second: float | None = None) -> Gate:
    return Gate(
        code=obstacle.code,
        by=obstacle.by,
        worker=worker,
        why=obstacle.why,
        jobs=jobs,
        since=obstacle.since,
        per_second=per_second,
    )


def _shut(worker: str, lane: Lane, facts: Facts, now: float) -> Obstacle | None:
    head = lane.head or Head(now, "", now)
    return next((wait for wait in explain(worker, head, facts, now) if wait.code in SHUT), None)


def _probing(gates: Gates | None, facts: Facts) -> bool:
    """Return whether a half-open breaker lets a single run start. `_shut` has found those that are open."""
    return gates is not None and gates.breaker is not None and _is_open(gates.breaker, facts)


def _is_open(breaker: str, facts: Facts) -> bool:
    state = facts.breakers.get(breaker)
    return state is not None and state.open


def _slots(gates: Gates | None, facts: Facts, run_seconds: float | None) -> float | None:
    """Return how many slots the worker can keep busy. A rate limit keeps rate x run time busy; one more is to spare."""
    if gates is None:
        return None
    limits: list[float] = [1.0] if _probing(gates, facts) else []
    if gates.max_running is not None:
        limits.append(gates.max_running)
    if gates.rate is not None:
        limits.append(1 + (run_seconds or 0.0) * gates.rate.count / gates.rate.seconds)
    return min(limits, default=None)


def _tokens(rate: RateLimit, lane: Lane, now: float) -> int:
    """Return how many jobs the rate limit lets start at once."""
    opens_at = rate.opens_at(lane.state.rate_at)
    return 0 if now < opens_at else min(rate.burst, 1 + floor((now - opens_at) / rate.spacing))


def _burst(rate: RateLimit, lane: Lane, now: float, run_seconds: float | None) -> int:
    """Return how many slots use up within a second what the rate limit lets start at once."""
    return ceil(_tokens(rate, lane, now) * min(1.0, run_seconds or 1.0))


def _left(gates: Gates, lane: Lane) -> int:
    return lane.running + READY_COUNTED if gates.max_running is None else max(0, gates.max_running - lane.running)


def _limiting(worker: str, lane: Lane, facts: Facts, now: float, *, queued: int, ready: int, full: bool) -> Gate | None:
    """Return the limit that holds most of the queued jobs, if one does."""
    parked, gates = queued - ready, facts.gates.get(worker)
    if parked and parked >= ready:
        why = sentence("jobs of {worker} with the same concurrency key run one after the other", worker=worker)
        return Gate(code="concurrency_key", by=worker, worker=worker, why=why, jobs=parked)
    if gates is None:
        return None
    if _probing(gates, facts):
        why = sentence("breaker {breaker} is half-open, and lets one run start", breaker=gates.breaker)
        return Gate(code="breaker", by=gates.breaker or "", worker=worker, why=why, jobs=ready)
    if gates.max_running is not None and (lane.running >= gates.max_running or (lane.running and not full)):
        why = sentence(
            "{n} of {n2} allowed {worker} jobs are running", n=lane.running, n2=gates.max_running, worker=worker
        )
        return Gate(code="max_running", by=worker, worker=worker, why=why, jobs=ready)
    rate, rate_at = gates.rate, lane.state.rate_at
    if rate is not None and (now < rate.opens_at(rate_at) or (now < rate_at + rate.spacing and not full)):
        why = sentence("rate limit of {worker}: {n} in {n2} s", worker=worker, n=rate.count, n2=f"{rate.seconds:g}")
        return Gate(
            code="rate_limit", by=worker, worker=worker, why=why, jobs=ready, per_second=rate.count / rate.seconds
        )
    return None
