"""How many slots should a pool have?

A *worker* here is a slot: one job's worth of concurrency.

`decide` returns as many as the most demanding of four rules asks for, and which rule that was:

* **depth**: with more queued jobs than `scale_up_threshold`, the pool grows by depth ÷ threshold, rounded up; with
  fewer than `scale_down_threshold`, it shrinks by one; in between it stays as it is;
* **load** (Little's law): arrivals per second x mean run time is how many are busy on average;
* **backlog**: the queued jobs should be done within `target_latency_seconds`;
* **waiting**: the oldest job has waited longer than that while all workers are busy: one more. (While some are idle,
  the job waits for a gate, and more workers would wait too.)

A pool grows at once. It shrinks by one at a time, only after wanting less for `scale_down_after_seconds` without a
break, and never below the number of busy slots. A lowered `max_workers` holds at once, even if all are busy and more
jobs are queued, or it would never be reached: surplus workers finish what they run, and take no more jobs. `decide`
starts and stops nothing.
"""

from collections.abc import Iterator
from math import ceil
from typing import Final, Literal

from msgspec import Struct

from shiftwork.core.bounds import Bounds, bounds_at
from shiftwork.core.model import PoolConfig

_HAIR: Final = 1e-9


class PoolLoad(Struct, frozen=True, kw_only=True):
    """What was measured of a pool. None means unknown."""

    queue_depth: int
    busy_workers: int
    current: int
    """How many slots exist, or have been planned."""
    oldest_wait_seconds: float | None = None
    arrivals_per_second: float | None = None
    mean_run_seconds: float | None = None
    known: bool = True
    """False if the store could not be asked: then only `current` is right."""


class Memory(Struct, frozen=True):
    """What one decision leaves for the next."""

    wants_less_since: float | None = None


class Floor(Struct, frozen=True):
    """How many slots a pool should have at least by what is expected. It holds within the pool's bounds."""

    n: int
    why: str
    """The expectation in words, such as "yesterday 12 slots were busy at 10:05"."""


class Decision(Struct, frozen=True, kw_only=True):
    """How many slots a pool should have, and why."""

    current: int
    target: int
    action: Literal["scale_up", "scale_down", "none"]
    reason: str
    memory: Memory


class _Wish(Struct, frozen=True):
    """A number of slots and the rule that asks for it."""

    n: int
    why: str


def decide(
    pool: PoolConfig,
    load: PoolLoad,
    memory: Memory,
    *,
    now: float,
    bounds: Bounds | None = None,
    floor: Floor | None = None,
) -> Decision:
    """Return how many slots the pool should have now, within the bounds that hold now: those of `bounds_at`."""
    if bounds is None:
        bounds = bounds_at(pool, None, now)
    if not load.known:
        target = max(load.current, bounds.low)
        return _decision(load, target, "the queue could not be measured; holding", Memory())
    wish = _bounded(bounds, _raised(floor, max(_wishes(pool, load), key=lambda wish: wish.n)))
    if wish.n >= load.current:
        return _decision(load, wish.n, wish.why, Memory())
    since = now if memory.wants_less_since is None else memory.wants_less_since
    return _shrink(pool, bounds, load, wish, since=since, now=now)


def _decision(load: PoolLoad, target: int, reason: str, memory: Memory) -> Decision:
    action: Literal["scale_up", "scale_down", "none"] = "none"
    if target != load.current:
        action = "scale_up" if target > load.current else "scale_down"
    return Decision(current=load.current, target=target, action=action, reason=reason, memory=memory)


def _shrink(pool: PoolConfig, bounds: Bounds, load: PoolLoad, wish: _Wish, *, since: float, now: float) -> Decision:
    kept = Memory(wants_less_since=since)
    if load.current > bounds.high:
        return _decision(load, bounds.high, _limit(bounds, "max_workers", bounds.high), kept)
    if load.busy_workers >= load.current:
        return _decision(load, load.current, f"{wish.why}; but all {load.current} are busy", kept)
    left = since + pool.scale_down_after_seconds - now
    if left > 0:
        return _decision(load, load.current, f"{wish.why}; one fewer in {left:.0f} s if that lasts", kept)
    return _decision(load, load.current - 1, wish.why, kept)


def _wishes(pool: PoolConfig, load: PoolLoad) -> Iterator[_Wish]:
    yield _by_depth(pool, load)
    yield from _by_load(load)
    yield from _by_latency(pool, load)
    if load.queue_depth > 0:
        yield _Wish(1, f"{load.queue_depth} queued")


def _by_depth(pool: PoolConfig, load: PoolLoad) -> _Wish:
    depth, current = load.queue_depth, load.current
    if depth > pool.scale_up_threshold:
        more = ceil(depth / pool.scale_up_threshold)
        why = f"{depth} queued is above scale_up_threshold {pool.scale_up_threshold}: {more} more"
        return _Wish(current + more, why)
    if depth < pool.scale_down_threshold:
        return _Wish(current - 1, f"{depth} queued is below scale_down_threshold {pool.scale_down_threshold}")
    return _Wish(current, f"{depth} queued needs no change")


def _by_load(load: PoolLoad) -> Iterator[_Wish]:
    if load.arrivals_per_second is not None and load.mean_run_seconds is not None:
        n = _at_least(load.arrivals_per_second * load.mean_run_seconds)
        yield _Wish(n, f"{load.arrivals_per_second:.3g} jobs/s at {load.mean_run_seconds:.3g} s each keep {n} busy")


def _by_latency(pool: PoolConfig, load: PoolLoad) -> Iterator[_Wish]:
    latency, waited = pool.target_latency_seconds, load.oldest_wait_seconds
    if latency is None or load.queue_depth <= 0:
        return
    if load.mean_run_seconds is not None:
        n = _at_least(load.queue_depth * load.mean_run_seconds / latency)
        yield _Wish(
            n,
            f"{load.queue_depth} queued at {load.mean_run_seconds:.3g} s each need {n} to be done within {latency:g} s",
        )
    if waited is not None and waited > latency and load.busy_workers >= load.current:
        yield _Wish(load.current + 1, f"the oldest job has waited {waited:.0f} s, more than {latency:g} s: one more")


def _raised(floor: Floor | None, wish: _Wish) -> _Wish:
    if floor is None or floor.n <= wish.n:
        return wish
    return _Wish(floor.n, f"{wish.why}; {floor.why}: at least {floor.n}")


def _bounded(bounds: Bounds, wish: _Wish) -> _Wish:
    if wish.n > bounds.high:
        return _Wish(bounds.high, f"{wish.why}; {_limit(bounds, 'max_workers', bounds.high)}")
    if wish.n < bounds.low:
        return _Wish(bounds.low, f"{wish.why}; {_limit(bounds, 'min_workers', bounds.low)}")
    return wish


def _limit(bounds: Bounds, option: str, n: int) -> str:
    return bounds.why if bounds.by == "clock" else f"{option} is {n}"


def _at_least(n: float) -> int:
    """Return the number rounded up, but not because 0.1 x 30 is a hair above 3."""
    return ceil(n - _HAIR)
