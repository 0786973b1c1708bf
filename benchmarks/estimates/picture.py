"""Draws the estimates against what happened, both in seconds on logarithmic scales."""

from collections.abc import Sequence
from math import log10
from statistics import quantiles
from typing import Final

from benchmarks.estimates.queues import Answer

SIDE: Final = 460
EDGE: Final = 64
LEAST, MOST = 0.1, 10_000.0
TICKS: Final = {0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 100.0: "100 s", 1_000.0: "17 min", 10_000.0: "2.8 h"}
FREE: Final = "#1971c2"
HELD: Final = "#d9480f"


def ratios(answers: Sequence[Answer]) -> list[float]:
    """Return true/estimated of all that were estimated; both are at least a tenth of a second."""
    return [max(LEAST, one.true) / max(LEAST, one.estimated) for one in answers if one.estimated is not None]


def quartiles(answers: Sequence[Answer]) -> tuple[float, float, float]:
    """Return the quartiles of true/estimated."""
    low, median, high = quantiles(ratios(answers), n=4)
    return low, median, high


def draw(answers: Sequence[Answer]) -> str:
    """Return an SVG: one dot for each estimate; on the line it was right."""
    low, median, high = quartiles(answers)
    wide, tall = SIDE + EDGE + 20, SIDE + EDGE + 40
    known = [one for one in answers if one.estimated is not None]
    title = f"{len(known)} estimates: true / estimated is {low:.2f}, {median:.2f}, {high:.2f} (quartiles)"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" font-family="sans-serif" font-size="12">',
        f'<rect width="{wide}" height="{tall}" fill="#fff"/>',
        f'<text x="{EDGE}" y="18" font-weight="bold">{title}</text>',
        f'<text x="{EDGE}" y="34" fill="{FREE}">only slots hold the job back</text>',
        f'<text x="{EDGE + 190}" y="34" fill="{HELD}">some worker has a gate</text>',
        *_scales(),
        _line(1.0, "#495057"),
        _line(2.0, "#ced4da"),
        _line(0.5, "#ced4da"),
    ]
    for one in known:
        colour = HELD if one.kinds & {"rate limit", "max_running", "key", "breaker"} else FREE
        x, y = _x(one.estimated or 0.0), _y(one.true)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}" fill-opacity="0.55"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _scales() -> list[str]:
    bottom = 44 + SIDE
    parts = [
        f'<text x="{EDGE + SIDE / 2}" y="{bottom + 36}" text-anchor="middle">estimated</text>',
        f'<text x="14" y="{44 + SIDE / 2}" text-anchor="middle" transform="rotate(-90 14 {44 + SIDE / 2})">true</text>',
    ]
    for at, name in TICKS.items():
        parts += [
            f'<line x1="{_x(at):.1f}" x2="{_x(at):.1f}" y1="44" y2="{bottom}" stroke="#f1f3f5"/>',
            f'<line x1="{EDGE}" x2="{EDGE + SIDE}" y1="{_y(at):.1f}" y2="{_y(at):.1f}" stroke="#f1f3f5"/>',
            f'<text x="{_x(at):.1f}" y="{bottom + 18}" text-anchor="middle" fill="#495057">{name}</text>',
            f'<text x="{EDGE - 6}" y="{_y(at) + 4:.1f}" text-anchor="end" fill="#495057">{name}</text>',
        ]
    return parts


def _line(factor: float, colour: str) -> str:
    """Return the line on which the truth is so many times the estimate."""
    start, end = max(LEAST, LEAST / factor), min(MOST, MOST / factor)
    return (
        f'<line x1="{_x(start):.1f}" y1="{_y(start * factor):.1f}" x2="{_x(end):.1f}" y2="{_y(end * factor):.1f}" '
        f'stroke="{colour}"/>'
    )


def _share(value: float) -> float:
    return log10(min(MOST, max(LEAST, value)) / LEAST) / log10(MOST / LEAST)


def _x(value: float) -> float:
    return EDGE + SIDE * _share(value)


def _y(value: float) -> float:
    return 44 + SIDE * (1 - _share(value))
