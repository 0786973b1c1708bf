"""Looking ahead: how many slots a pool will need soon, if today is like yesterday.

Before the peak of yesterday comes round again, the pool gets a floor: as many slots as the work that came yesterday
within the next ten minutes needed. How many that were is not how many were busy, because the pool may have had too few:
it is how many attempts became due per second times how long runs took on average, over five minutes or the length of a
run, and never more than were queued and running.

* The floor is a forecast of the start of a peak. Once yesterday's peak has begun and today's has not, it gives way: it
  shrinks to the share of yesterday's work that has come today, over the last quarter of an hour. So a holiday, or an
  accident of yesterday, costs a quarter of an hour and not a morning.
* A trickle is not a curve: work that needs less than two slots raises nothing.
* "This time of yesterday" is the time on the wall in the pool's time zone, also where the clocks have been changed.

The leader computes it once a minute, from the history that it writes itself (`core.observing.pool_history`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import accumulate, pairwise
from math import isfinite
from typing import Final

from msgspec import Struct

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.pool_history import HOUR, MINUTE, STALE_STEPS, Moment, Point, point_of
from shiftwork.core.scaling.size import Floor
from shiftwork.core.schedules.timing import zone_named
from shiftwork.sentences import sentence

FORECAST_SECONDS: Final = 600.0
"""How far it looks ahead. A process starts within a second, a machine within minutes."""
SMOOTHED_SECONDS: Final = 300.0
"""Over which time arrivals are averaged at least; over the length of a run, if that is longer."""
COMPARED_SECONDS: Final = 900.0
"""Over which time today is compared with yesterday."""
LEAST_SLOTS: Final = 2.0
"""Less work than this many slots can do raises nothing, and is too little to compare."""
AS_MUCH: Final = 0.95
"""From which share of yesterday's work today counts as being like yesterday, in words."""
LEAST_RUNS: Final = 5
"""How many runs must have ended around a time for their mean to be used; else the mean of all known runs is."""
_HAIR: Final = 1e-9


def hours_needed(now: float) -> set[int]:
    """Return the numbers of the hours of history from which it looks ahead."""
    number = int(now // HOUR)
    return {number - back for back in (0, 1, 2, *range(22, 28))}


def floors_ahead(pools: Mapping[str, PoolConfig], moments: Sequence[Moment], now: float) -> dict[str, Floor]:
    """Return the floor that yesterday's curve gives each pool now, whatever its bounds; the moments are in order."""
    found = {name: _floor(pool, moments, now) for name, pool in pools.items() if pool.look_ahead}
    return {name: floor for name, floor in found.items() if floor is not None}


def _floor(pool: PoolConfig, moments: Sequence[Moment], now: float) -> Floor | None:
    zone = _zone(pool.timezone)
    day = now - (datetime.fromtimestamp(now, zone) - timedelta(days=1)).timestamp()
    curve = WorkCurve.of(pool.name, [*_around(moments, now - day), *_around(moments, now)])
    coming = [(curve.needed(now - day + ahead), ahead) for ahead in _minutes(FORECAST_SECONDS)]
    needed, ahead = max(coming, key=lambda one: (one[0], -one[1]))
    share = curve.share_of_yesterday(now, day)
    n = int(needed * share + _HAIR)
    if n < LEAST_SLOTS:
        return None
    when = datetime.fromtimestamp(now + ahead, zone)
    why = sentence("yesterday's work needed {n} slots by {clock}", n=int(needed + _HAIR), clock=f"{when:%H:%M}")
    if share <= AS_MUCH:
        why = sentence(
            "yesterday's work needed {n} slots by {clock}, and today has {n2}% of it so far",
            n=int(needed + _HAIR),
            clock=f"{when:%H:%M}",
            n2=f"{share:.0%}".removesuffix("%"),
        )
    return Floor(n, why)


def _zone(name: str) -> tzinfo:
    try:
        return zone_named(name)
    except (KeyError, ValueError):  # registered on a machine that knows more zones than this one
        return UTC


def _minutes(seconds: float) -> Iterable[float]:
    return (minute * MINUTE for minute in range(1, int(seconds / MINUTE) + 1))


def _around(moments: Sequence[Moment], at: float) -> Sequence[Moment]:
    """Return the moments that matter for what was needed around a time."""
    first = bisect_left(moments, at - COMPARED_SECONDS - HOUR, key=_when)
    return moments[first : bisect_right(moments, at + FORECAST_SECONDS + COMPARED_SECONDS, key=_when)]


def _when(moment: Moment) -> float:
    return moment.at


class _Sums(Struct, frozen=True):
    """What came and ended over a time."""

    seconds: float
    """How much of the time is known."""
    arrived: float
    ended: float
    run_seconds: float


class WorkCurve:
    """The work of one pool over time, from the moments of its history, in order."""

    def __init__(self, moments: Sequence[tuple[float, Point]]) -> None:
        self._at = [at for at, _ in moments]
        self._present = [point.queued + point.processing for _, point in moments]
        steps = [MINUTE, *(later - at for at, later in pairwise(self._at))]
        known = [point.arrived is not None for _, point in moments]
        self._seconds = _sums(_step(step) if one else 0.0 for step, one in zip(steps, known, strict=False))
        self._arrived = _sums(point.arrived or 0 for _, point in moments)
        self._ended = _sums((point.completed or 0) + (point.failed or 0) for _, point in moments)
        self._run_seconds = _sums(_real(point.run_seconds) for _, point in moments)

    @classmethod
    def of(cls, pool: str, moments: Iterable[Moment]) -> "WorkCurve":
        return cls([(one.at, point) for one in moments if (point := point_of(pool, one)) is not None])

    def needed(self, at: float) -> float:
        """Return how many slots the work needed that came shortly before; 0 if too little is known."""
        run = self._mean_run(at)
        over = min(max(SMOOTHED_SECONDS, run), HOUR)
        first, last = self._span(at - over, at)
        return min(self._work(at, over, run), max(self._present[first:last], default=0))

    def share_of_yesterday(self, now: float, day: float) -> float:
        """Return how much of yesterday's work of the last minutes has come today: 1 is all of it, or not known."""
        last = bisect_right(self._at, now)
        if not last or now - self._at[last - 1] > STALE_STEPS * MINUTE:
            return 1.0
        at = self._at[last - 1]
        yesterday = self._work(at - day, COMPARED_SECONDS, self._mean_run(at - day))
        today = self._work(at, COMPARED_SECONDS, self._mean_run(at))
        return min(1.0, today / yesterday) if yesterday >= LEAST_SLOTS else 1.0

    def _work(self, at: float, over: float, run: float) -> float:
        """Return how many slots the arrivals of a time needed on average."""
        came = self._between(at - over, at)
        return came.arrived / came.seconds * run if came.seconds >= over / 2 else 0.0

    def _mean_run(self, at: float) -> float:
        """Return how long runs took on average around a time."""
        around = self._between(at - COMPARED_SECONDS, at + COMPARED_SECONDS)
        if around.ended >= LEAST_RUNS:
            return around.run_seconds / around.ended
        return self._run_seconds[-1] / self._ended[-1] if self._ended[-1] else 0.0

    def _between(self, begin: float, end: float) -> _Sums:
        first, last = self._span(begin, end)
        return _Sums(
            self._seconds[last] - self._seconds[first],
            self._arrived[last] - self._arrived[first],
            self._ended[last] - self._ended[first],
            self._run_seconds[last] - self._run_seconds[first],
        )

    def _span(self, begin: float, end: float) -> tuple[int, int]:
        """Return which moments lie in a time, as the ends of a slice."""
        return bisect_right(self._at, begin), bisect_right(self._at, end)


def _sums(numbers: Iterable[float]) -> list[float]:
    return [0.0, *accumulate(numbers)]


def _real(number: float | None) -> float:
    """Return a number as it is, or 0: a damaged record may hold what is not one, and the leader plans by it."""
    return number if number is not None and isfinite(number) else 0.0


def _step(seconds: float) -> float:
    """Return the time that a moment speaks for. After a longer gap, that is a minute."""
    return seconds if seconds <= STALE_STEPS * MINUTE else MINUTE
