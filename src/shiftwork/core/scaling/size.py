"""How many slots should a pool have?

A *worker* in the names of options is a slot: one job's worth of concurrency.

`decide` returns as many as the most demanding of these rules asks for, and which rule that was:

* **depth**: with more queued jobs than `scale_up_threshold`, the pool grows by depth ÷ threshold, rounded up; with
  fewer than `scale_down_threshold`, it may shrink; in between it stays as it is. Slots that were added
  and have not been busy since count as part of that growth, or each look would add as many before one could start;
* **load** (Little's law): the number of slots that the attempts becoming due keep busy on average;
* **backlog**: the queued jobs should be done within `target_latency_seconds`;
* **waiting**: the oldest job has waited longer than that while all slots are busy: one more.
* **steadiness**: a pool keeps the slots that were busy on average lately, and twice the square root of that number to
  spare. So a load that stays the same, with its usual ups and downs, keeps the same number of slots.

Only jobs that gates let through count (`core.scaling.backlog`): jobs behind an open breaker are no depth, and no rule
makes a pool grow beyond the jobs that are running and those that gates would let start, nor keeps it larger while a
gate holds others. So a worker limited to 50 jobs a second gets the few slots that these keep busy, however long its
queue is. A pool grows at once. It shrinks by a step a second, one slot or a tenth of the pool, to the most that was
wanted within the last `scale_down_after_seconds`, and never below the number of busy slots. A lowered maximum holds at
once, even if all slots are busy and more jobs are queued, or it would never be reached: surplus slots finish what they
run, and take no more jobs. `decide` starts and stops nothing.
"""

from collections.abc import Callable, Iterator
from math import ceil, floor, sqrt
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.scaling.bounds import Bounds, bounds_at
from shiftwork.core.scaling.demand import Demand
from shiftwork.core.words import counted, number, seconds
from shiftwork.sentences import sentence, series

STEP_SECONDS: Final = 1.0
"""How far apart the steps are by which a pool shrinks."""
UNSEEN_SECONDS: Final = 10.0
"""After a longer time between two decisions, what was wanted in between counts as unknown."""
SHRINK_PARTS: Final = 10
"""A large pool shrinks by one part in ten at a time."""
SPARE: Final = 2.0
"""How many standard deviations of the busy slots a pool keeps to spare: jobs that come at random vary by their root."""
_HAIR: Final = 1e-9


class PoolLoad(Struct, frozen=True, kw_only=True):
    """What was measured of a pool. None means unknown."""

    queue_depth: int
    busy_slots: int
    current: int
    """How many slots exist, or have been planned."""
    oldest_wait_seconds: float | None = None
    open: int | None = None
    """How many of the queued jobs are behind no shut gate; None if nothing is known of gates: then all."""
    startable: int | None = None
    """How many of the queued jobs gates would let start now; None: all."""
    gate: str = ""
    """What holds most of the others, in words."""
    demand: Demand = Demand()
    known: bool = True
    """False if the store could not be asked: then only `current` is right."""

    @property
    def depth(self) -> int:
        """Return how many queued jobs count as depth."""
        return self.queue_depth if self.open is None else self.open

    def with_held(self, words: str) -> str:
        """Return these words, and which queued jobs are no depth, if some are not."""
        held = self.queue_depth - self.depth
        if held <= 0 or not self.gate:
            return words
        return series("; ", [words, sentence("{n} more are held: {why}", n=f"{held:,}", why=self.gate)])


class Memory(Struct, frozen=True):
    """What one decision leaves for the next."""

    wanted: tuple[tuple[float, int], ...] = ()
    """How many slots were wanted when, the earliest first; only what no later wish equals or exceeds."""
    shrunk_at: float | None = None
    added: int = 0
    """How many slots were added for a deep queue and have not all been busy since."""


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
    """A number of slots and the rule that asks for it, in words: of all wishes, one is shown."""

    n: int
    why: Callable[[], str]


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
        return _decision(load, target, sentence("the queue could not be measured; holding"), Memory())
    unused = min(memory.added, max(0, load.current - load.busy_slots)) if _is_deep(pool, load) else 0
    asked = max(
        (*(_capped(load, wish) for wish in _wishes(pool, load, unused)), *_steady(load)), key=lambda wish: wish.n
    )
    wish = _bounded(bounds, _raised(floor, asked))
    memory = replace(memory, added=unused, wanted=_wanted(pool, load, memory, wish.n, now))
    if wish.n >= load.current:
        grown = max(0, min(asked.n, wish.n) - load.current)
        return _decision(load, wish.n, wish.why(), replace(memory, added=unused + grown))
    if load.current > bounds.high:
        return _decision(load, bounds.high, _limit(bounds, "max_workers", bounds.high), memory)
    return _shrink(pool, load, asked, wish, memory, now=now)


def _decision(load: PoolLoad, target: int, reason: str, memory: Memory) -> Decision:
    action: Literal["scale_up", "scale_down", "none"] = "none"
    if target != load.current:
        action = "scale_up" if target > load.current else "scale_down"
    return Decision(current=load.current, target=target, action=action, reason=reason, memory=memory)


# ── shrinking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _shrink(pool: PoolConfig, load: PoolLoad, asked: _Wish, wish: _Wish, memory: Memory, *, now: float) -> Decision:
    """Return the next step down. `asked` is the wish before it was bounded."""
    current = load.current
    if load.busy_slots >= current:
        return _decision(
            load, current, series("; ", [asked.why(), sentence("but all {n} are busy", n=current)]), memory
        )
    least = max(wish.n, load.busy_slots, current - _step(current))
    why = (wish if least == wish.n else asked).why()
    enough = [at for at, n in memory.wanted if n >= current]
    if enough:
        left = enough[-1] + pool.scale_down_after_seconds - now
        fewer = sentence("one fewer in {n} s if that lasts", n=f"{left:.0f}")
        if current - least > 1:
            fewer = sentence("{n} fewer in {n2} s if that lasts", n=current - least, n2=f"{left:.0f}")
        return _decision(load, current, series("; ", [why, fewer]), memory)
    if memory.shrunk_at is not None and 0 <= now - memory.shrunk_at < STEP_SECONDS - _HAIR:
        return _decision(load, current, why, memory)
    return _decision(load, max(least, memory.wanted[0][1]), why, replace(memory, shrunk_at=now))


def _wanted(pool: PoolConfig, load: PoolLoad, memory: Memory, n: int, now: float) -> tuple[tuple[float, int], ...]:
    """Return what was wanted when, with what is wanted now. What was not seen was as many as there are."""
    before = memory.wanted
    if not before or not 0 <= now - before[-1][0] <= UNSEEN_SECONDS:
        before = ((now, load.current),)
    oldest = now - pool.scale_down_after_seconds + _HAIR
    return (*((at, wanted) for at, wanted in before if at > oldest and wanted > n), (now, n))


def _step(current: int) -> int:
    """Return by how many slots a pool of this size shrinks at a time."""
    return max(1, current // SHRINK_PARTS)


# ── the rules ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _wishes(pool: PoolConfig, load: PoolLoad, unused: int) -> Iterator[_Wish]:
    yield _by_depth(pool, load, unused)
    yield from _by_load(load)
    yield from _by_latency(pool, load)
    if load.queue_depth > 0:
        yield _Wish(1, lambda: _queued(load))


def _queued(load: PoolLoad) -> str:
    n = f"{load.queue_depth:,}"
    if load.depth or not load.gate:
        return sentence("{n} queued", n=n)
    return sentence("{n} queued, all held: {why}", n=n, why=load.gate)


def _is_deep(pool: PoolConfig, load: PoolLoad) -> bool:
    return load.depth > pool.scale_up_threshold


def _by_depth(pool: PoolConfig, load: PoolLoad, unused: int) -> _Wish:
    depth, current = load.depth, load.current
    if depth < pool.scale_down_threshold:
        return _Wish(
            0,
            lambda: load.with_held(
                sentence("{n} queued is below scale_down_threshold {n2}", n=depth, n2=pool.scale_down_threshold)
            ),
        )
    if not _is_deep(pool, load):
        return _Wish(current, lambda: load.with_held(sentence("{n} queued needs no change", n=depth)))
    more = ceil(depth / pool.scale_up_threshold)
    why = sentence(
        "{n} queued is above scale_up_threshold {n2}: {n3} more", n=f"{depth:,}", n2=pool.scale_up_threshold, n3=more
    )
    if not unused:
        return _Wish(current + more, lambda: why)
    # Most of what is wanted must be missing before there are more: slots take a moment to start.
    missing = more - unused if more > 2 * unused else 0
    return _Wish(current + missing, lambda: sentence("{why}, counting {n} just added", why=why, n=unused))


def _by_load(load: PoolLoad) -> Iterator[_Wish]:
    demand = load.demand
    if demand.slots is not None:
        n = _at_least(demand.slots)
        yield _Wish(n, lambda: sentence("{demand}: that keeps {n} busy", demand=demand.words, n=n))


def _by_latency(pool: PoolConfig, load: PoolLoad) -> Iterator[_Wish]:
    latency, waited, work = pool.target_latency_seconds, load.oldest_wait_seconds, load.demand.queued_seconds
    if latency is None or load.queue_depth <= 0:
        return
    if work is not None:
        n = _at_least(work / latency)
        yield _Wish(n, lambda: _backlog(load.depth, work, n, latency))
    if waited is not None and waited > latency and load.busy_slots >= load.current:
        yield _Wish(load.current + 1, lambda: _waiting(waited, latency))


def _backlog(depth: int, work: float, n: int, latency: float) -> str:
    return sentence(
        "{n} queued, {time} of work, need {n2} to be done within {latency}",
        n=f"{depth:,}",
        time=seconds(work),
        n2=n,
        latency=seconds(latency),
    )


def _waiting(waited: float, latency: float) -> str:
    return sentence(
        "the oldest job has waited {time}, more than {latency}: one more",
        time=seconds(waited),
        latency=seconds(latency),
    )


def _steady(load: PoolLoad) -> Iterator[_Wish]:
    busy = load.demand.busy
    if busy is not None:
        n = floor(busy + SPARE * sqrt(busy))
        yield _Wish(
            min(n, load.current),
            lambda: sentence("{n} busy on average, so {n2} leave room to spare", n=number(busy), n2=n),
        )


def _capped(load: PoolLoad, wish: _Wish) -> _Wish:
    """Return the wish, as far as there are jobs for the slots: for those by which the pool would grow.

    While gates hold some of the queued jobs, there must be jobs for all slots but one: a pool does not stay large for
    jobs that it may not start.
    """
    startable = load.queue_depth if load.startable is None else min(load.queue_depth, load.startable)
    jobs = load.busy_slots + startable
    most = max(jobs, min(1, load.current) if startable < load.queue_depth else load.current)
    if wish.n <= most:
        return wish
    return _Wish(most, lambda: series("; ", [wish.why(), _few(load, jobs, held=startable < load.queue_depth)]))


def _few(load: PoolLoad, jobs: int, *, held: bool) -> str:
    """Return how many jobs there are, fewer than there could be slots."""
    n, are = counted(jobs, "job"), "is" if jobs == 1 else "are"
    if not held:
        return sentence("but only {jobs} {are} running or queued", jobs=n, are=are)
    if not load.gate:
        return sentence("but only {jobs} {are} running or may start", jobs=n, are=are)
    return sentence("but only {jobs} {are} running or may start: {why}", jobs=n, are=are, why=load.gate)


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _raised(floor: Floor | None, wish: _Wish) -> _Wish:
    if floor is None or floor.n <= wish.n:
        return wish
    return _Wish(
        floor.n, lambda: series("; ", [wish.why(), sentence("{floor}: at least {n}", floor=floor.why, n=floor.n)])
    )


def _bounded(bounds: Bounds, wish: _Wish) -> _Wish:
    if wish.n > bounds.high:
        return _Wish(bounds.high, lambda: series("; ", [wish.why(), _limit(bounds, "max_workers", bounds.high)]))
    if wish.n < bounds.low:
        return _Wish(bounds.low, lambda: series("; ", [wish.why(), _limit(bounds, "min_workers", bounds.low)]))
    return wish


def _limit(bounds: Bounds, option: str, n: int) -> str:
    if bounds.by == "clock":
        return sentence("the clock's bounds since {when}: {n} to {n2}", when=bounds.since, n=bounds.low, n2=bounds.high)
    return sentence("max_workers is {n}", n=n) if option == "max_workers" else sentence("min_workers is {n}", n=n)


def _at_least(n: float) -> int:
    """Return the number rounded up, unless it is above a whole number only by the rounding of floats."""
    return ceil(n - _HAIR)
