"""A chart as SVG: named curves over the time of day, drawn over each other. It draws, and computes nothing else."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from itertools import count
from math import ceil, floor, log10
from typing import Final, Literal
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.json import encode

WIDTH: Final = 960
HEIGHT: Final = 220
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 10, 26
COLOURS: Final = 6
"""How many colours and dash patterns page.css has; the next curve begins again with the first."""
_TIME_STEPS: Final = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 604_800)
_MOST_TIMES: Final = 12
_VALUE_STEPS: Final = 4
_MINUTE: Final = 60
_SHORT: Final = 7_200
"""A chart of less than this many seconds shows seconds."""
_LOG_FROM: Final = 50.0
"""If the highest curve is this many times higher than the lowest, both can only be read on a logarithmic scale."""


class Curve(Struct, frozen=True):
    """A named series of points."""

    label: str
    points: Sequence[tuple[float, float]]
    """Each point is a number of seconds since the start of the chart, and the value there."""
    style: int | None = None
    """Which colour and dashes it has; by default its place among the curves."""


class Chart(Struct, frozen=True, kw_only=True):
    """Curves over each other."""

    title: str
    unit: str
    """What the values count, such as "jobs"."""
    curves: Sequence[Curve]
    start: float
    """When the time axis begins, in epoch seconds."""
    timezone: str = "UTC"
    scale: Literal["linear", "log", "auto"] = "linear"
    """ "auto" is logarithmic if one curve is much higher than another; a logarithmic axis has a place for zero."""


def evenly(label: str, values: Sequence[float], step: float, *, style: int | None = None) -> Curve:
    """Return a curve whose values are `step` seconds apart."""
    return Curve(label, [(place * step, value) for place, value in enumerate(values)], style)


def drawn(chart: Chart, name: str) -> str:
    """Return the chart as an HTML figure. `name` is its id in the page."""
    axes = _Axes(chart)
    lines = "".join(_line(curve, place, axes) for place, curve in enumerate(chart.curves))
    described = escape(_description(chart))
    return (
        f'<figure class="chart" id="{escape(name, quote=True)}" data-unit="{escape(chart.unit, quote=True)}">'
        f"<figcaption>{escape(chart.title)}{' <small>logarithmic</small>' if axes.log else ''}"
        f"{_legend(chart)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{described}">'
        f"{''.join(axes.value_lines())}{''.join(axes.time_lines())}{lines}"
        f'<line class="cursor" x1="0" x2="0" y1="{TOP}" y2="{HEIGHT - BOTTOM}" hidden=""></line></svg>'
        f'<output class="reading" aria-hidden="true">&nbsp;</output></figure>'
    )


def clock(at: float, timezone: str, *, seconds: bool = False) -> str:
    """Return the time of day in a zone: `14:05`."""
    return datetime.fromtimestamp(at, ZoneInfo(timezone)).strftime("%H:%M:%S" if seconds else "%H:%M")


class _Axes:
    """The two axes: from seconds and values to places in the picture."""

    def __init__(self, chart: Chart) -> None:
        self.chart = chart
        self.seconds = max((at for curve in chart.curves for at, _ in curve.points), default=0.0) or 1.0
        peaks = [max((value for _, value in curve.points), default=0.0) for curve in chart.curves]
        self.log = chart.scale == "log" or (
            chart.scale == "auto" and max(peaks, default=0.0) > _LOG_FROM * max(1.0, min(peaks, default=0.0))
        )
        self.ticks = [*_powers(max(peaks, default=0.0))] if self.log else [*_steps(max(peaks, default=0.0))]

    def x(self, at: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * at / self.seconds

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self._height(value) / self._height(self.ticks[-1])

    def _height(self, value: float) -> float:
        return log10(1 + value) if self.log else value

    def value_lines(self) -> Iterator[str]:
        for tick in self.ticks:
            y = self.y(tick)
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"></line>'
            yield f'<text class="value" x="{LEFT - 8}" y="{y + 4:.1f}">{tick:,.6g}</text>'

    def time_lines(self) -> Iterator[str]:
        step = next((one for one in _TIME_STEPS if self.seconds / one <= _MOST_TIMES), _TIME_STEPS[-1])
        zone = ZoneInfo(self.chart.timezone)
        offset = datetime.fromtimestamp(self.chart.start, zone).utcoffset()
        local = self.chart.start + (offset.total_seconds() if offset else 0.0)
        at = -local % step
        while at <= self.seconds:
            text = clock(self.chart.start + at, self.chart.timezone, seconds=step < _MINUTE)
            yield f'<text class="time" x="{self.x(at):.1f}" y="{HEIGHT - 8}">{text}</text>'
            at += step


def _line(curve: Curve, place: int, axes: _Axes) -> str:
    short = axes.seconds < _SHORT
    points = " ".join(f"{axes.x(at):.1f},{axes.y(value):.1f}" for at, value in curve.points)
    values = encode([round(value, 2) for _, value in curve.points]).decode()
    times = " ".join(clock(axes.chart.start + at, axes.chart.timezone, seconds=short) for at, _ in curve.points)
    return (
        f'<polyline class="{_style(curve, place)}" data-label="{escape(curve.label, quote=True)}" '
        f'points="{points}" data-values="{values}" data-times="{times}"></polyline>'
    )


def _style(curve: Curve, place: int) -> str:
    return f"curve c{(place if curve.style is None else curve.style) % COLOURS + 1}"


def _legend(chart: Chart) -> str:
    items = "".join(
        f'<li><svg viewBox="0 0 28 8" aria-hidden="true"><polyline class="{_style(curve, place)}" '
        f'points="0,4 28,4"></polyline></svg>{escape(curve.label)}</li>'
        for place, curve in enumerate(chart.curves)
    )
    return f'<ul class="legend">{items}</ul>'


def _description(chart: Chart) -> str:
    """Return what a person who does not see the picture should know: each curve's highest value, and when."""
    said = [f"{chart.title}."]
    for curve in chart.curves:
        if curve.points:
            at, value = max(curve.points, key=lambda point: point[1])
            when = clock(chart.start + at, chart.timezone)
            said.append(f"{curve.label}: at most {value:,.6g} {chart.unit}, at {when}.")
    return " ".join(said)


def _steps(highest: float) -> Iterator[float]:
    """Yield round values from zero to the highest one or a little above. They count things, so they are whole."""
    rough = max(highest / _VALUE_STEPS, 1.0)
    power = 10.0 ** floor(log10(rough))
    step = next(power * one for one in (1, 2, 5, 10) if power * one >= rough)
    yield from (place * step for place in range(max(1, ceil(highest / step - 1e-9)) + 1))


def _powers(highest: float) -> Iterator[float]:
    yield 0.0
    for power in count():
        yield 10.0**power
        if 10.0**power >= highest:
            return
