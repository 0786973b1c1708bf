"""Draws the two mornings: queued jobs and slots over time."""

from collections.abc import Sequence
from typing import Final

from benchmarks.morning.day import Day

WIDE: Final = 760
HIGH: Final = 170
EDGE: Final = 46
QUEUED: Final = "#d9480f"
SLOTS: Final = "#1971c2"


def draw(days: Sequence[Day]) -> str:
    """An SVG with one chart for each day, on the same scales."""
    longest = max(day.samples[-1].at for day in days)
    queued = max(sum(sample.queued.values()) for day in days for sample in day.samples) or 1
    slots = max(sum(sample.workers.values()) for day in days for sample in day.samples) or 1
    high = HIGH * len(days) + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDE} {high}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDE}" height="{high}" fill="#fff"/>',
    ]
    for row, day in enumerate(days):
        top = row * HIGH + 10
        title = "ten fixed slots" if day.pools == "fixed" else "elastic pools"
        parts += [
            f'<text x="{EDGE}" y="{top + 12}" font-weight="bold">{title}</text>',
            f'<text x="{EDGE + 170}" y="{top + 12}" fill="{QUEUED}">queued jobs, up to {queued}</text>',
            f'<text x="{EDGE + 380}" y="{top + 12}" fill="{SLOTS}">slots, up to {slots}</text>',
            _line([(s.at, sum(s.queued.values()) / queued) for s in day.samples], longest, top, QUEUED),
            _line([(s.at, sum(s.workers.values()) / slots) for s in day.samples], longest, top, SLOTS),
            f'<line x1="{EDGE}" x2="{WIDE - 10}" y1="{top + HIGH - 30}" y2="{top + HIGH - 30}" stroke="#868e96"/>',
        ]
    parts.append(f'<text x="{EDGE}" y="{HIGH * len(days) + 10}" fill="#495057">0 s … {longest:.0f} s</text></svg>')
    return "\n".join(parts) + "\n"


def _line(points: Sequence[tuple[float, float]], longest: float, top: int, colour: str) -> str:
    room = HIGH - 52
    shown = " ".join(
        f"{EDGE + at / longest * (WIDE - EDGE - 10):.1f},{top + 22 + room * (1 - height):.1f}" for at, height in points
    )
    return f'<polyline points="{shown}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
