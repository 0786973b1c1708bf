"""Pools over time, for the charts and for planning, made from what the store counts anyway.

A moment holds the state of the pools (queued, workers …) and what has arrived and ended since the moment before it. The
moments of a bit more than the last day are kept in the store, a minute apart, in docs of kind "history": one for each
hour, under its number modulo `KEPT_HOURS`, and overwritten when that comes round again. An hour also has how long the
runs of each pool took, and what each worker did (`core.observing.worker_hours`).

Leaders of two versions may take turns during a rolling deploy. Records are arrays, to which fields are only appended:
an older leader drops what it does not know, and what it writes in fields of its own is still read.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.observing.pool_stats import PoolStats, WorkerStats
from shiftwork.core.observing.run_histograms import (
    RETRIED,
    from_old,
    run_marks,
    run_quantile,
    runs,
    since,
    split_by_worker,
    together,
    wait_quantile,
)
from shiftwork.core.observing.worker_hours import WorkerHour, WorkerTotals, arrived, busier, worker_totals

MINUTE: Final = 60.0
"""How far apart the moments in the store are."""
HOUR: Final = 3_600
DAY: Final = 86_400
KEPT_HOURS: Final = 28
"""How many hours are kept: a day before the present one, one more because of daylight saving, and what lies around
the same time of yesterday."""
MOST_POOLS: Final = 100
"""How many pools of a moment are kept in the store: the busiest ones."""
MOST_MOMENTS: Final = 90
"""How many moments an hour may hold: sixty, and a few more if the leader changed."""
STALE_STEPS: Final = 3
"""After a longer gap between two moments, what ended in between is left out: it is not known in which step."""
P95: Final = 0.95
MOMENT_DIGITS: Final = 4
"""How many decimals of seconds are kept: a day has many numbers."""


class EndedTotals(Struct, frozen=True, array_like=True):
    """How many runs have ended in a pool since it exists, and how many jobs are there now."""

    completed: int = 0
    failed: int = 0
    marks: dict[str, int] = {}
    wait_seconds: float = 0.0
    run_seconds: float = 0.0
    present: int = 0
    """How many jobs are queued or running."""


class Point(Struct, frozen=True, array_like=True):
    """A pool at one moment, and what has ended since the moment before; None where that is not known."""

    queued: int
    processing: int
    slots: int
    wanted: int
    oldest_wait: float | None = None
    completed: int | None = None
    failed: int | None = None
    retried: int | None = None
    wait_p95: float | None = None
    """The 95th percentile of the waits of the runs that ended; None if none did."""
    run_p95: float | None = None
    """The same for their run times."""
    arrived: int | None = None
    """How many attempts became due: new jobs, and retries."""
    run_seconds: float | None = None
    """How long the attempts that ended took in all."""


_NOTHING: Final = Point(0, 0, 0, 0, completed=0, failed=0, retried=0, arrived=0, run_seconds=0.0)


class Moment(Struct, frozen=True, array_like=True):
    """All pools at one moment."""

    at: float
    pools: dict[str, Point]


class Sample(Struct, frozen=True):
    """The state of all pools at one instant: what a moment is made from."""

    at: float
    stats: Mapping[str, PoolStats]
    workers: Mapping[str, int]
    """How many slots each pool has."""
    wanted: Mapping[str, int]
    by_worker: Mapping[str, WorkerStats] = {}


class Before(Struct, frozen=True):
    """How many runs had ended at an earlier moment."""

    at: float
    totals: Mapping[str, EndedTotals]
    whole: bool = True
    """Whether every pool is listed: then one that is missing had no ended runs."""
    by_worker: Mapping[str, WorkerTotals] = {}
    every_worker: bool = True
    """Whether every worker is listed: then one that is missing had no ended runs."""

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
    old_runs: dict[str, list[int]] = {}
    """How long runs took, in the buckets of version 0.1, as a leader of that version wrote it."""
    workers: dict[str, WorkerHour] = {}
    worker_totals: dict[str, WorkerTotals] = {}
    """The same for these workers only: those without jobs take no room, and what one of them begins to do while the
    leader changes is not counted."""
    run_marks: dict[str, dict[str, int]] = {}
    """How long the runs took that ended in this hour: by pool, how often each mark was given."""

    def runs(self, pool: str) -> list[int]:
        """Return how long the runs took that ended in this hour, as `run_histograms.runs` counts them."""
        numbers = zip(runs(self.run_marks.get(pool, {})), from_old(self.old_runs.get(pool, [])), strict=True)
        return [n + max(0, m) for n, m in numbers]

    @property
    def pools_with_runs(self) -> set[str]:
        return {*self.run_marks, *self.old_runs}

    def before(self) -> Before | None:
        """Return the totals at its last moment."""
        if not self.moments:
            return None
        return Before(
            self.moments[-1].at,
            # A leader of version 0.1 keeps the names of workers in marks that newer nodes gave.
            {name: replace(one, marks=split_by_worker(one.marks)[0]) for name, one in self.totals.items()},
            whole=len(self.totals) < MOST_POOLS,
            by_worker=self.worker_totals,
            every_worker=False,
        )


def ended(sample: Sample) -> Before:
    """Return how many runs had ended in each pool when the sample was taken."""
    totals = {
        name: EndedTotals(
            one.completed, one.failed, one.marks, one.wait_seconds, one.run_seconds, one.queued + one.processing
        )
        for name, one in sample.stats.items()
    }
    return Before(sample.at, totals)


def ended_by_worker(sample: Sample) -> Before:
    """Return how many runs had ended when the sample was taken, also of each worker."""
    return replace(ended(sample), by_worker=worker_totals(sample.by_worker))


def moment(sample: Sample, before: Before | None, *, step: float) -> Moment:
    """Return a sample as a moment, with what has ended since the moment before."""
    before = _recent(before, sample.at, step)
    return Moment(sample.at, {name: _point(name, sample, before.of(name) if before else None) for name in sample.stats})


def _recent(before: Before | None, at: float, step: float) -> Before | None:
    """Return the reading before, unless it is too old to say when something ended."""
    return before if before is not None and 0 <= at - before.at <= STALE_STEPS * step else None


def _point(name: str, sample: Sample, before: EndedTotals | None) -> Point:
    stats = sample.stats[name]
    oldest = None if stats.oldest_run_at is None else round(max(0.0, sample.at - stats.oldest_run_at), MOMENT_DIGITS)
    now = (stats.queued, stats.processing, sample.workers.get(name, 0), sample.wanted.get(name, 0), oldest)
    if before is None:
        return Point(*now)
    marks = since(stats.marks, before.marks)
    return Point(
        *now,
        completed=max(0, stats.completed - before.completed),
        failed=max(0, stats.failed - before.failed),
        retried=marks.get(RETRIED, 0),
        wait_p95=_rounded(wait_quantile(P95, marks, stats.wait_seconds - before.wait_seconds)),
        run_p95=_rounded(run_quantile(P95, marks, stats.run_seconds - before.run_seconds)),
        arrived=arrived(
            stats.queued + stats.processing,
            stats.completed + stats.failed,
            present_before=before.present,
            ended_before=before.completed + before.failed,
        ),
        run_seconds=round(max(0.0, stats.run_seconds - before.run_seconds), MOMENT_DIGITS),
    )


def wait_p95(now: EndedTotals, before: EndedTotals | None) -> float | None:
    """Return the 95th percentile of the waits of the runs that ended between two readings; None if none did."""
    then = before or EndedTotals()
    return _rounded(wait_quantile(P95, since(now.marks, then.marks), now.wait_seconds - then.wait_seconds))


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, MOMENT_DIGITS)


def appended(hour: Hour, sample: Sample, before: Before | None, after: Before) -> Hour:
    """Return the hour with one more moment, in which the busiest pools and workers are kept."""
    last = moment(sample, before, step=MINUTE)
    names = sorted(last.pools, key=lambda name: (_bustle(last.pools[name]), name), reverse=True)[:MOST_POOLS]
    kept = Moment(last.at, {name: last.pools[name] for name in names})
    known, workers = _recent(before, sample.at, MINUTE), hour.workers
    if known is not None:
        workers = busier(workers, known.by_worker, after.by_worker, at=sample.at, whole=known.every_worker)
    return Hour(
        hour.number,
        [*hour.moments, kept][-MOST_MOMENTS:],
        {name: after.totals[name] for name in names},
        hour.old_runs,
        workers,
        {name: after.by_worker[name] for name in workers if name in after.by_worker},
        hour.run_marks if known is None else _more_runs(hour.run_marks, known, after, names),
    )


def _more_runs(
    had: Mapping[str, dict[str, int]], before: Before, after: Before, names: Sequence[str]
) -> dict[str, dict[str, int]]:
    """Return the marks of an hour with those of the runs that ended between two readings."""
    found: dict[str, dict[str, int]] = {}
    for name in names:
        then = before.of(name)
        new = {} if then is None else run_marks(since(after.totals[name].marks, then.marks))
        known = had.get(name, {})
        if new or known:
            found[name] = together(known, new)
    return found


def _bustle(point: Point) -> tuple[int, int]:
    return (point.completed or 0) + (point.failed or 0) + point.processing, point.queued


def hour_name(number: int) -> str:
    """Return the name of its doc."""
    return f"{number % KEPT_HOURS:02}"


def point_of(pool: str, moment: Moment) -> Point | None:
    """Return a pool at one moment. One that is missing never had a job, unless there were too many to keep all."""
    return moment.pools.get(pool, _NOTHING if len(moment.pools) < MOST_POOLS else None)


def last_day(hours: Iterable[Hour], now: float) -> list[Moment]:
    found = [one for hour in hours for one in hour.moments if now - DAY <= one.at <= now]
    return sorted(found, key=lambda one: one.at)


N = TypeVar("N", int, float)


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
        point.slots,
        point.wanted,
        point.oldest_wait,
        share(point.completed),
        share(point.failed),
        share(point.retried),
        point.wait_p95,
        point.run_p95,
        share(point.arrived),
        None if point.run_seconds is None else round(point.run_seconds / parts, MOMENT_DIGITS),
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
        last.slots,
        last.wanted,
        last.oldest_wait,
        _total([point.completed for point in points]),
        _total([point.failed for point in points]),
        _total([point.retried for point in points]),
        max((point.wait_p95 for point in points if point.wait_p95 is not None), default=None),
        max((point.run_p95 for point in points if point.run_p95 is not None), default=None),
        _total([point.arrived for point in points]),
        _total([point.run_seconds for point in points]),
    )


def _total(numbers: Iterable[N | None]) -> N | None:
    known = [n for n in numbers if n is not None]
    return sum(known[1:], known[0]) if known else None
