"""Two tables: how soon each page answers, and what watching costs, with the goals beside."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

PAGE_MS: Final = 100.0
"""All but one visit in twenty to a page are answered within this."""
STORE_PERCENT: Final = 1.0
"""What a watched dashboard may cost the store, of one core."""
HEADS: Final = {"p50": ("p50", "p95", "goal"), "store": ("store", "web process", "goal")}
COUNT: Final = "count "
"""How rows begin that are no page: very many jobs are counted before they are changed, which takes what it takes."""
PREFIX: Final = "dashboard: "
"""How figures of the dashboard are named: this, the row, a slash, the column."""


def table(figures: Mapping[str, float]) -> str:
    """What was found on one store; empty if the dashboard was not measured."""
    rows: dict[str, dict[str, float]] = {}
    for name, value in figures.items():
        if name.startswith(PREFIX):
            row, _, column = name.removeprefix(PREFIX).rpartition("/")
            rows.setdefault(row, {})[column] = value
    parts = [_part(kind, [(row, cells) for row, cells in rows.items() if kind in cells]) for kind in HEADS]
    return "\n\n".join(part for part in parts if part)


def _part(kind: str, rows: Iterable[tuple[str, Mapping[str, float]]]) -> str:
    lines = [(row, *(_watching(cells) if kind == "store" else _page(row, cells))) for row, cells in rows]
    if not lines:
        return ""
    lines.insert(0, ("dashboard", *HEADS[kind]))
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    behind = (cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  ".join([cells[0].ljust(widths[0]), *behind]).rstrip()


def _page(row: str, cells: Mapping[str, float]) -> tuple[str, str, str]:
    goal = "–  " if row.startswith(COUNT) else _goal(cells["p95"], PAGE_MS, "ms")
    return f"{cells['p50']:.1f} ms", f"{cells['p95']:.1f} ms", goal


def _watching(cells: Mapping[str, float]) -> tuple[str, str, str]:
    return f"{cells['store']:.2f} %", f"{cells['web']:.2f} %", _goal(cells["store"], STORE_PERCENT, "% of a core")


def _goal(value: float, most: float, unit: str) -> str:
    return f"≤ {most:g} {unit} {' ' if value <= most else '✗'}"
