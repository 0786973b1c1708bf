"""The picture in the README: planned and real curves over each other, as SVG."""

from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import Final

from examples.company.day import HOURS, PEAK_HOURS, Day
from examples.company.outcome import Sample
from examples.company.report import Curves

WIDE: Final = 860
HIGH: Final = 190
LEFT: Final = 46
TOP: Final = 44
GAP: Final = 34
COLOURS: Final = {"elastic pools": "#1971c2", "ten fixed slots": "#d9480f"}
PLANNED: Final = ' stroke-dasharray="5 4" opacity="0.75"'
EVERY_HOURS: Final = 2

Value = Callable[[Sample], float]


def draw(curves: Curves) -> str:
    """Two charts on one time axis: waiting jobs above, slots below."""
    high = TOP + 2 * HIGH + GAP + 24
    font = 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" {font}>',
        f'<rect width="{WIDE}" height="{high}" fill="#fff"/>',
        *_legend(),
        *_chart(curves, TOP, "waiting jobs", lambda sample: sample.queued),
        *_chart(curves, TOP + HIGH + GAP, "slots", lambda sample: sample.slots),
        *(
            f'<text x="{_x(hour):.0f}" y="{high - 6}" fill="#495057" text-anchor="middle">{hour}:00</text>'
            for hour in range(0, HOURS + 1, EVERY_HOURS)
        ),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _legend() -> Iterator[str]:
    for place, name in enumerate(f"{who}, {how}" for who in COLOURS for how in ("real", "planned")):
        x = LEFT + place * 200
        yield f'<line x1="{x}" x2="{x + 26}" y1="14" y2="14" {_style(name)}/>'
        yield f'<text x="{x + 32}" y="18">{name}</text>'


def _chart(curves: Curves, top: int, title: str, value: Value) -> Iterator[str]:
    most = _rounded(max((value(sample) for _, samples in curves.named() for sample in samples), default=0))
    first, last = (_x(hour) for hour in PEAK_HOURS)
    yield f'<rect x="{first:.0f}" width="{last - first:.0f}" y="{top}" height="{HIGH}" fill="#f1f3f5"/>'
    yield f'<text x="{LEFT}" y="{top - 6}" font-weight="bold">{title}</text>'
    for share in (0.0, 0.5, 1.0):
        y = top + HIGH * (1 - share)
        yield f'<line x1="{LEFT}" x2="{WIDE - 10}" y1="{y:.0f}" y2="{y:.0f}" stroke="#ced4da"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.0f}" fill="#495057" text-anchor="end">{most * share:.0f}</text>'
    for name, samples in curves.named():
        yield _line(name, _points(curves.day, samples, value, most, top))


def _rounded(most: float) -> int:
    """The next number with two digits and zeros behind them that can be halved."""
    step = 2 * int(10.0 ** max(0, len(str(int(most))) - 2))
    return max(2, ceil(most / step) * step)


def _points(day: Day, samples: Sequence[Sample], value: Value, most: float, top: int) -> str:
    shown = [sample for sample in samples if sample.seconds <= day.seconds]
    return " ".join(f"{_x(day.hour(one.seconds)):.1f},{top + HIGH * (1 - value(one) / most):.1f}" for one in shown)


def _line(name: str, points: str) -> str:
    return f'<polyline points="{points}" fill="none" {_style(name)}/>'


def _style(name: str) -> str:
    who, how = name.split(", ")
    return f'stroke="{COLOURS[who]}" stroke-width="1.6"{PLANNED if how == "planned" else ""}'


def _x(hour: float) -> float:
    return LEFT + hour / HOURS * (WIDE - LEFT - 14)
