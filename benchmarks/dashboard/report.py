"""Two tables: how fast each page loads, and what watching costs, with the goals."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

PAGE_MS: Final = 100.0
"""The goal for the 95th percentile of a page."""
STORE_PERCENT: Final = 1.0
"""The goal for the store's load by a watched dashboard, in percent of a core."""
HEADS: Final = {"p50": ("p50", "p95", "goal"), "store": ("store", "web process", "goal")}
COUNT: Final = "count "
"""The prefix of rows that are not pages: counting very many jobs before a bulk action, which has no goal."""
PREFIX: Final = "dashboard: "
"""The prefix of the dashboard's figures; the row, a slash and the column follow."""


def table(figures: Mapping[str, float]) -> str:
    """The results on one store; empty if the dashboard was not measured."""
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
