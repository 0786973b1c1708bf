"""Draws a night: what the nodes and the store took over time, for each store, one curve below the other."""

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Final

WIDTH: Final = 900
ROW: Final = 70
GAP: Final = 26
COLOURS: Final = {
    "sqlite": "#2b6cb0",
    "encrypted": "#63b3ed",
    "redis": "#c6362c",
    "sentinel": "#dd6b20",
    "cluster": "#b7791f",
    "postgresql": "#2f855a",
    "standby": "#68b08a",
}
CURVES: Final[tuple[tuple[str, Callable[[Any], float], str], ...]] = (
    ("memory of a process", lambda one: one.memory / max(1, one.processes) / 1e6, "MB"),
    ("descriptors of a process", lambda one: one.descriptors / max(1, one.processes), ""),
    ("size of the store", lambda one: one.store_bytes / 1e6, "MB"),
    ("longest wait in a queue", lambda one: one.oldest, "s"),
    ("log of the nodes", lambda one: one.log_bytes / 1e3, "kB"),
)


def draw(pieces: Sequence[Any]) -> str:
    """Return the picture: the pieces of each store, one after the other, without the time between them."""
    height = GAP + len(CURVES) * (ROW + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-size="12">',
        f'<g font-family="sans-serif"><rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for n, (store, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{10 + 110 * n}" y="16" fill="{colour}">{store}</text>')
    for n, (what, value, unit) in enumerate(CURVES):
        parts += _curve(pieces, what, value, unit, top=GAP + n * (ROW + GAP))
    return "\n".join([*parts, "</g></svg>"]) + "\n"


def _curve(pieces: Sequence[Any], what: str, value: Callable[[Any], float], unit: str, *, top: float) -> list[str]:
    series = {
        store: [value(one) for piece in pieces if piece.store == store for one in piece.samples] for store in COLOURS
    }
    most = max((max(values) for values in series.values() if values), default=1.0) or 1.0
    base = top + GAP / 2 + ROW
    label = escape(f"{what}, {most:,.0f} {unit} at most".strip())
    parts = [f'<text x="10" y="{top + 10:.0f}" fill="#444">{label}</text>']
    parts.append(f'<line x1="0" x2="{WIDTH}" y1="{base}" y2="{base}" stroke="#ccc"/>')
    for store, values in series.items():
        if len(values) > 1:
            step = WIDTH / (len(values) - 1)
            points = " ".join(f"{n * step:.1f},{base - one / most * ROW:.1f}" for n, one in enumerate(values))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[store]}" stroke-width="1"/>')
    return parts
