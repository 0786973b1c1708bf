"""Moments in shorter or longer steps than they were taken in, for the charts."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from shiftwork.core.history import DIGITS, MINUTE, Moment, Point

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
        point.workers,
        point.wanted,
        point.oldest_wait,
        share(point.completed),
        share(point.failed),
        share(point.retried),
        point.wait_p95,
        point.run_p95,
        share(point.arrived),
        None if point.run_seconds is None else round(point.run_seconds / parts, DIGITS),
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
        _total([point.arrived for point in points]),
        _total([point.run_seconds for point in points]),
    )


def _total(numbers: Iterable[N | None]) -> N | None:
    known = [n for n in numbers if n is not None]
    return sum(known[1:], known[0]) if known else None
