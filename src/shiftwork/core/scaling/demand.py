"""How much work do the workers of a pool bring? Measured by worker, over windows of real time.

`observe` takes a worker's window on by one sample of its counters; `pool_demand` adds up the windows of a pool. A pool
that mixes jobs of 50 ms and of a minute is never averaged: each worker counts with its own rate and its own run time.

**Attempts that became due** between two samples are those that ended, plus those by which the queued and running ones
have become more. So a scheduled job counts once it is due, a retry counts as the work it is, and no store needs a
counter for it. A job that a person cancels is not an attempt that was taken back: what is below zero counts as zero.

**Windows** are exponentially weighted: what is a window old counts for about a third. They span a minute, or a few runs
where runs take long, since a minute says little about jobs of an hour. Nothing is concluded from a short window or from
a few attempts. A new leader begins without windows: until it has seen enough there is no rate, and the run times are
the mean of all time.

**Gates** bound what a worker brings (`core.scaling.backlog`): jobs behind a shut gate bring nothing, and a worker with
a rate limit or `max_running` no more than those let through.

**Run times** are known from attempts that ended, and are not forgotten while none ends. While jobs run longer than
that, the time for which they have already occupied slots is the least they can take.
"""

from collections.abc import Mapping
from math import exp
from typing import Final

from msgspec import Struct

from shiftwork.core.observing.pool_stats import WorkerStats
from shiftwork.core.scaling.backlog import Backlog
from shiftwork.core.words import rate, seconds
from shiftwork.sentences import sentence, series

WINDOW_SECONDS: Final = 60.0
"""How long a window is at least."""
RUNS_A_WINDOW: Final = 3.0
"""How many runs of a worker a window spans at least."""
LEAST_SECONDS: Final = 15.0
"""How much time a window must have seen before its rate is believed."""
LEAST_ATTEMPTS: Final = 5.0
"""How many attempts a window must have seen before its rate is believed."""
PRIOR_ENDS: Final = 10.0
"""How many ends the mean run time of all time counts for at most, in a window that begins with it."""
_NAMED: Final = 2
"""How many workers are named in words."""


class WorkerWindow(Struct, frozen=True, kw_only=True):
    """What was seen of a worker lately. The second group of numbers is weighted: older samples count for less."""

    at: float
    live: int
    """How many attempts were queued or running at the last sample."""
    processing: int
    ended: int
    """How many attempts have ended, since counting began."""
    run_total: float
    """How long those ran."""

    due: float = 0.0
    """How many attempts became due."""
    seen: float = 0.0
    """How many seconds were seen."""
    ends: float = 0.0
    """How many attempts ended."""
    mean: float | None = None
    """How long those ran, on average; None if none has ever ended."""
    occupied: float = 0.0
    """How many seconds slots were occupied, in all."""
    busy: float = 0.0
    """How many slots were occupied, on average over the time after which the pool may shrink, or a few runs."""

    @property
    def run_seconds(self) -> float | None:
        """Return how long an attempt takes; None if nothing is known about that."""
        running = self.ends + self.processing
        least = self.occupied / running if running > 0 else 0.0
        return max(self.mean or 0.0, least) or self.mean

    @property
    def per_second(self) -> float | None:
        """Return how many attempts become due in a second; None if too little was seen to tell."""
        if self.seen < LEAST_SECONDS or self.due < LEAST_ATTEMPTS:
            return None
        return self.due / self.seen


def observe(before: WorkerWindow | None, stats: WorkerStats, now: float, *, calm_seconds: float) -> WorkerWindow:
    """Return the window with one more sample. `calm_seconds`: how long the pool must need less before it shrinks."""
    ended = stats.completed + stats.failed
    if before is None or ended < before.ended:  # a store that was moved into counts from zero
        return _first(stats, now)
    passed = now - before.at
    if passed <= 0:
        return before
    ends_now, run_now = ended - before.ended, stats.run_seconds - before.run_total
    live = stats.queued + stats.processing
    window = max(WINDOW_SECONDS, RUNS_A_WINDOW * (before.run_seconds or 0.0))
    kept = exp(-passed / window)
    weight = (1 - kept) * window / passed
    ends = before.ends * kept + ends_now * weight
    return WorkerWindow(
        at=now,
        live=live,
        processing=stats.processing,
        ended=ended,
        run_total=stats.run_seconds,
        due=before.due * kept + max(0, ends_now + live - before.live) * weight,
        seen=before.seen * kept + passed * weight,
        ends=ends,
        mean=((before.mean or 0.0) * before.ends * kept + run_now * weight) / ends if ends_now else before.mean,
        occupied=before.occupied * kept + before.processing * passed * weight,
        busy=_busy(before, passed, calm_seconds),
    )


def _first(stats: WorkerStats, now: float) -> WorkerWindow:
    ended = stats.completed + stats.failed
    return WorkerWindow(
        at=now,
        live=stats.queued + stats.processing,
        processing=stats.processing,
        ended=ended,
        run_total=stats.run_seconds,
        ends=min(PRIOR_ENDS, ended),
        mean=stats.run_seconds / ended if ended else None,
        busy=stats.processing,
    )


def _busy(before: WorkerWindow, passed: float, calm_seconds: float) -> float:
    window = max(calm_seconds / 6, RUNS_A_WINDOW * (before.run_seconds or 0.0))
    kept = exp(-passed / window) if window > 0 else 0.0
    return before.busy * kept + before.processing * (1 - kept)


class Share(Struct, frozen=True, kw_only=True):
    """What one worker brings."""

    worker: str
    per_second: float
    run_seconds: float

    @property
    def slots(self) -> float:
        """Return how many slots it keeps busy, on average (Little's law)."""
        return self.per_second * self.run_seconds


class Demand(Struct, frozen=True, kw_only=True):
    """What the workers of a pool bring, together."""

    shares: tuple[Share, ...] = ()
    """The workers whose rate is known."""
    queued_seconds: float | None = None
    """How long the queued jobs will run, in all; None if there are none, or nothing is known about them."""
    busy: float | None = None
    """How many slots were busy on average lately; None if that was never seen."""

    @property
    def slots(self) -> float | None:
        """Return how many slots the attempts that become due keep busy on average; None if that is not known."""
        return sum(share.slots for share in self.shares) if self.shares else None

    @property
    def words(self) -> str:
        """Return what keeps the slots busy, the largest share first."""
        largest = sorted(self.shares, key=lambda share: (-share.slots, share.worker))
        named = [
            sentence(
                "{worker} ({rate}, {time} each)",
                worker=one.worker,
                rate=rate(one.per_second),
                time=seconds(one.run_seconds),
            )
            for one in largest[:_NAMED]
        ]
        rest = len(largest) - len(named)
        if rest <= 0:
            return series(" and ", named)
        return series(" and ", [series(", ", named), sentence("{n} more", n=rest)])


def pool_demand(windows: Mapping[str, WorkerWindow], backlogs: Mapping[str, Backlog] | None = None) -> Demand:
    """Return what these workers, those of one pool, bring together, as far as gates let it through."""
    held = backlogs or {}
    queued = [_queued_seconds(window, held.get(name)) for name, window in windows.items()]
    known = [one for one in queued if one is not None]
    shares = (_share(name, window, held.get(name)) for name, window in windows.items())
    return Demand(
        shares=tuple(share for share in shares if share is not None),
        queued_seconds=sum(known) if known else None,
        busy=sum(window.busy for window in windows.values()) if windows else None,
    )


def _queued_seconds(window: WorkerWindow, held: Backlog | None) -> float | None:
    """Return how long the queued jobs of a worker will run, without those that a shut gate holds."""
    queued = window.live - window.processing if held is None else held.open
    return queued * window.run_seconds if queued > 0 and window.run_seconds is not None else None


def _share(name: str, window: WorkerWindow, held: Backlog | None) -> Share | None:
    due, run = window.per_second, window.run_seconds
    if due is None or run is None or (held is not None and held.queued and not held.open):
        return None
    most = None if held is None else held.slots
    return Share(worker=name, per_second=due if most is None or run <= 0 else min(due, most / run), run_seconds=run)
