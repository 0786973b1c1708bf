"""Pools over time, as the API returns them: a list of numbers for each line of a chart."""

from collections.abc import Sequence

from msgspec import Struct

from shiftwork.core.observing.history import Moment, Point
from shiftwork.views.instants import past_iso


class PoolSeries(Struct, frozen=True, kw_only=True):
    """A pool over time; null where a number is not known. Ended runs are counted since the previous sample."""

    queued: list[int | None]
    processing: list[int | None]
    workers: list[int | None]
    wanted: list[int | None]
    oldest_wait: list[float | None]
    completed: list[int | None]
    failed: list[int | None]
    retried: list[int | None]
    wait_p95: list[float | None]
    run_p95: list[float | None]


class Series(Struct, frozen=True, kw_only=True):
    """All pools over time. Every list is as long as `at`."""

    step: float
    at: list[str]
    pools: dict[str, PoolSeries]


def pools_of(moments: Sequence[Moment]) -> list[str]:
    """Return every pool that occurs in these samples."""
    return sorted({name for moment in moments for name in moment.pools})


def series_of(moments: Sequence[Moment], *, step: float, pools: Sequence[str]) -> Series:
    """Return these pools over these samples."""
    points = {name: [moment.pools.get(name) for moment in moments] for name in pools}
    series = {name: _one(of) for name, of in points.items()}
    return Series(step=step, at=[past_iso(moment.at) for moment in moments], pools=series)


def _one(points: Sequence[Point | None]) -> PoolSeries:
    names = PoolSeries.__struct_fields__  # a point has the same fields
    return PoolSeries(**{name: [None if one is None else getattr(one, name) for one in points] for name in names})
