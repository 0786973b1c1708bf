"""Pools over time, for the charts, made from what the store counts anyway.

A moment holds the state of the pools (queued, workers …) and what has ended since the moment before it. The moments of
the last day are kept in the store, a minute apart, in docs of kind "history": one for each hour of the day, under its
number in UTC ("00" to "23"), and overwritten a day later.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shiftwork.core.model import PoolStats
from shiftwork.core.run_histograms import RETRIED, quantile, runs, waits

MINUTE: Final = 60.0
"""How far apart the moments in the store are."""
HOUR: Final = 3_600
DAY: Final = 86_400
MOST_POOLS: Final = 100
"""How many pools of a moment are kept in the store: the busiest ones."""
MOST_MOMENTS: Final = 90
"""How many moments an hour may hold: sixty, and a few more if the leader changed."""
STALE_STEPS: Final = 3
"""After a longer gap between two moments, what ended in between is left out: it is not known in which step."""
P95: Final = 0.95
DIGITS: Final = 4
"""How many decimals of seconds are kept: a day has many numbers."""


class EndedTotals(Struct, frozen=True, array_like=True):
    """How many runs have ended in a pool since it exists."""

    completed: int = 0
    failed: int = 0
    marks: dict[str, int] = {}
    wait_seconds: float = 0.0
    run_seconds: float = 0.0


class Point(Struct, frozen=True, array_like=True):
    """A pool at one moment, and what has ended since the moment before; None where that is not known."""

    queued: int
    processing: int
    workers: int
    wanted: int
    oldest_wait: float | None = None
    completed: int | None = None
    failed: int | None = None
    retried: int | None = None
    wait_p95: float | None = None
    """The 95th percentile of the waits of the runs that ended; None if none did. `run_p95` likewise."""
    run_p95: float | None = None


class Moment(Struct, frozen=True, array_like=True):
    """All pools at one moment."""

    at: float
    pools: dict[str, Point]


class Sample(Struct, frozen=True):
    """The state of all pools at one instant: what a moment is made from."""

    at: float
    stats: Mapping[str, PoolStats]
    workers: Mapping[str, int]
    wanted: Mapping[str, int]


class Before(Struct, frozen=True):
    """How many runs had ended at an earlier moment."""

    at: float
    totals: Mapping[str, EndedTotals]
    whole: bool = True
    """Whether every pool is listed: then one that is missing had no ended runs."""

    def of(self, pool: str) -> EndedTotals | None:
        """Return how many runs had ended in the pool, if that is known."""
        return self.totals.get(pool, EndedTotals() if self.whole else None)


class Hour(Struct, array_like=True):
    """The moments of one hour, as the store keeps them."""

    number: int
    """The number of the hour since the epoch."""
    moments: list[Moment] = []
    totals: dict[str, EndedTotals] = {}
    """The totals at the last moment, from which the next leader continues."""

    def before(self) -> Before | None:
        """Return the totals at its last moment."""
        whole = len(self.totals) < MOST_POOLS
        return Before(self.moments[-1].at, self.totals, whole=whole) if self.moments else None


def ended(sample: Sample) -> Before:
    """Return how many runs had ended when the sample was taken."""
    totals = {
        name: EndedTotals(one.completed, one.failed, one.marks, one.wait_seconds, one.run_seconds)
        for name, one in sample.stats.items()
    }
    return Before(sample.at, totals)


def moment(sample: Sample, before: Before | None, *, step: float) -> Moment:
    """Return a sample as a moment, with what has ended since the moment before."""
    if before is not None and not 0 <= sample.at - before.at <= STALE_STEPS * step:
        before = None
    return Moment(sample.at, {name: _point(name, sample, before.of(name) if before else None) for name in sample.stats})


def _point(name: str, sample: Sample, before: EndedTotals | None) -> Point:
    stats = sample.stats[name]
    oldest = None if stats.oldest_run_at is None else round(max(0.0, sample.at - stats.oldest_run_at), DIGITS)
    now = (stats.queued, stats.processing, sample.workers.get(name, 0), sample.wanted.get(name, 0), oldest)
    if before is None:
        return Point(*now)
    marks = {mark: n - before.marks.get(mark, 0) for mark, n in stats.marks.items()}
    return Point(
        *now,
        completed=max(0, stats.completed - before.completed),
        failed=max(0, stats.failed - before.failed),
        retried=max(0, marks.get(RETRIED, 0)),
        wait_p95=p95(waits(marks), stats.wait_seconds - before.wait_seconds),
        run_p95=p95(runs(marks), stats.run_seconds - before.run_seconds),
    )


def p95(numbers: Sequence[int], total: float | None = None) -> float | None:
    """Return the 95th percentile in seconds, from a histogram and the sum of its values; None if it is empty."""
    seconds = quantile(P95, numbers, total)
    return None if seconds is None else round(seconds, DIGITS)


def appended(hour: Hour, last: Moment, totals: Mapping[str, EndedTotals]) -> Hour:
    """Return the hour with one more moment, of which the busiest pools are kept."""
    names = sorted(last.pools, key=lambda name: (_bustle(last.pools[name]), name), reverse=True)[:MOST_POOLS]
    kept = Moment(last.at, {name: last.pools[name] for name in names})
    moments = [*hour.moments, kept][-MOST_MOMENTS:]
    return Hour(hour.number, moments, {name: totals[name] for name in names if name in totals})


def _bustle(point: Point) -> tuple[int, int]:
    return (point.completed or 0) + (point.failed or 0) + point.processing, point.queued


def hour_name(number: int) -> str:
    """Return the name of its doc."""
    return f"{number % 24:02}"


def last_day(hours: Iterable[Hour], now: float) -> list[Moment]:
    """Return the moments of the last day, in order."""
    found = [one for hour in hours for one in hour.moments if now - DAY <= one.at <= now]
    return sorted(found, key=lambda one: one.at)


def spread(one: Moment, step: float) -> list[Moment]:
    """Return a minute's moment as several, a step apart, over which what ended is spread evenly."""
    parts = max(1, round(MINUTE / step))
    return [
        Moment(
            one.at - MINUTE + MINUTE * (part + 1) / parts,
            {name: _share(point, part, parts) for name, point in one.pools.items()},
        )
        for part in range(parts)
    ]


def _share(point: Point, part: int, parts: int) -> Point:
    def share(n: int | None) -> int | None:
        return None if n is None else n * (part + 1) // parts - n * part // parts

    return Point(
        point.queued,
        point.processing,
        point.workers,
        point.wanted,
        point.oldest_wait,
        share(point.completed),
        share(point.failed),
        share(point.retried),
        point.wait_p95,
        point.run_p95,
    )


def thinned(moments: Sequence[Moment], step: float) -> list[Moment]:
    """Return one moment for each step: the state at its end, everything that ended in it, and the longest p95."""
    steps: dict[int, list[Moment]] = {}
    for one in moments:
        steps.setdefault(-int(-one.at // step), []).append(one)
    return [several[0] if len(several) == 1 else _joined(several) for several in steps.values()]


def _joined(several: Sequence[Moment]) -> Moment:
    points: dict[str, list[Point]] = {}
    for one in several:
        for name, point in one.pools.items():
            points.setdefault(name, []).append(point)
    return Moment(several[-1].at, {name: _sum(of) for name, of in points.items()})


def _sum(points: Sequence[Point]) -> Point:
    last = points[-1]
    return Point(
        last.queued,
        last.processing,
        last.workers,
        last.wanted,
        last.oldest_wait,
        _total([point.completed for point in points]),
        _total([point.failed for point in points]),
        _total([point.retried for point in points]),
        max((point.wait_p95 for point in points if point.wait_p95 is not None), default=None),
        max((point.run_p95 for point in points if point.run_p95 is not None), default=None),
    )


def _total(numbers: Iterable[int | None]) -> int | None:
    known = [n for n in numbers if n is not None]
    return sum(known) if known else None
