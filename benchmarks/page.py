"""Writes what was measured into a page of the documentation, between markers; the rest of the page is people's.

`<!-- bench:NAME -->` begins a part, `<!-- /bench:NAME -->` ends it. A part of which nothing was measured stays.
"""

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.plan import BARE, BARE_ENGINE, COSTS, FIGURES, OURS, PEERS, RUN, SUBJECTS, Sizes
from benchmarks.report import (
    DEPTH_HEADS,
    FLOW_HEADS,
    NONE,
    STEP_HEADS,
    Comparison,
    Medians,
    Runs,
    aim,
    best_peer,
    cell,
    comparisons,
    depth_lines,
    flow_lines,
    legend,
    markdown,
    of_bare,
    step_lines,
    times,
)

NAMES: Final = {"sqlite": "SQLite", "redis": "Redis", "postgresql": "PostgreSQL"}
LONG_FIGURES: Final = ("all", "growth")
HEADS: Final = ("", "best peer", "one process", "`run`", "× peer", "of the bare server", "aim")


class Found:
    """Everything that one run of the benchmarks found."""

    def __init__(self, written: dict[str, Any]) -> None:
        self.machine: str = written["machine"]
        self.versions: dict[str, str] = written["versions"]
        self.sizes = Sizes(**written["sizes"])
        self.headings = {store: found["heading"] for store, found in written["stores"].items()}
        self.runs: dict[str, Runs] = {store: found["runs"] for store, found in written["stores"].items()}


def write(page: Path, found: Found) -> list[str]:
    """Write all parts of which something was measured; returns their names."""
    text, parts = page.read_text(), {name: made for name, make in PARTS.items() if (made := make(found))}
    for name, made in parts.items():
        begin, end = f"<!-- bench:{name} -->", f"<!-- /bench:{name} -->"
        pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise LookupError(f"{page} has no part {begin} … {end}")
        text = pattern.sub(lambda _, made=made, begin=begin, end=end: f"{begin}\n{made}\n{end}", text)  # type: ignore[misc]
    page.write_text(text)
    return [*parts]


# ── parts ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def rates(found: Found) -> str:
    """Every figure on every store: the best peer, ours, the ratios, the aims."""
    lines = [_line(found, store, name) for name in FIGURES if name not in LONG_FIGURES for store in _with(found, name)]
    return _under(found, markdown(HEADS, lines))


def peers(found: Found) -> str:
    """Every figure of every peer, and the settings of all subjects."""
    measured = {who for runs in found.runs.values() for who in runs}
    lines = [
        [f"{_label(found, name)}, {NAMES[store]}", *(cell(found.runs[store], peer, name) for peer in PEERS)]
        for name in FIGURES
        for store in _with(found, name)
        if any(name in found.runs[store].get(peer, {}) for peer in PEERS)
    ]
    table = markdown(["", *(SUBJECTS[peer].label for peer in PEERS)], lines)
    return f"{table}\n\n{legend(measured, found.versions)}" if table else ""


def costs(found: Found) -> str:
    """The costs of a job that is drained, of every subject on every store."""
    lines = [
        [f"{NAMES[store]}, {SUBJECTS[who].label}", *(cell(runs, who, name) for name in COSTS)]
        for store, runs in found.runs.items()
        for who in SUBJECTS
        if any(name in runs.get(who, {}) for name in COSTS)
    ]
    return _under(found, markdown(["one job, drained", *(figure.label for figure in COSTS.values())], lines))


def depth(found: Found) -> str:
    """The rates beside a crowd, on every store."""
    return _under(found, markdown(DEPTH_HEADS, _on_stores(found, lambda runs: depth_lines(runs, found.sizes))))


def flows(found: Found) -> str:
    """The rates of a flow's jobs beside those of plain ones."""
    return _under(found, markdown(FLOW_HEADS, _on_stores(found, flow_lines)))


def steps(found: Found) -> str:
    """The rates of steps."""
    return _under(found, markdown(STEP_HEADS, _on_stores(found, step_lines)))


def _on_stores(found: Found, lines: Callable[[Runs], list[list[str]]]) -> list[list[str]]:
    return [[f"{NAMES[store]}, {line[0]}", *line[1:]] for store, runs in found.runs.items() for line in lines(runs)]


def memory(found: Found) -> str:
    """The memory after very many jobs."""
    lines = [
        [
            f"{_label(found, name)}, {NAMES[store]}",
            cell(found.runs[store], RUN, name),
            _aims(_compared(found, store, name)),
        ]
        for name in LONG_FIGURES
        for store in _with(found, name)
    ]
    return _under(found, markdown(["", "`shiftwork run`", "aim"], lines))


PARTS: Final = {
    "rates": rates,
    "peers": peers,
    "costs": costs,
    "flows": flows,
    "steps": steps,
    "depth": depth,
    "memory": memory,
}


# ── lines ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _line(found: Found, store: str, name: str) -> list[str]:
    runs, medians, compared = found.runs[store], _medians(found, store), _compared(found, store, name)
    peer = best_peer(name, medians)
    ours = OURS if name in medians.get(OURS, {}) else RUN
    return [
        f"{_label(found, name)}, {NAMES[store]}",
        f"{SUBJECTS[peer].label} {cell(runs, peer, name)}" if peer else NONE,
        cell(runs, OURS, name),
        cell(runs, RUN, name),
        times(medians, ours, peer, name),
        "; ".join(f"{of_bare(compared[than])} ({than})" for than in (BARE, BARE_ENGINE) if than in compared) or NONE,
        _aims(compared),
    ]


def _aims(compared: dict[str, Comparison]) -> str:
    return "; ".join(aim(one) for one in compared.values() if one.goal is not None) or NONE


def _label(found: Found, name: str) -> str:
    return FIGURES[name].label.format(**asdict(found.sizes))


def _with(found: Found, name: str) -> list[str]:
    """The stores on which a figure was measured."""
    return [store for store, runs in found.runs.items() if any(name in figures for figures in runs.values())]


def _medians(found: Found, store: str) -> Medians:
    return {
        who: {name: median(values) for name, values in figures.items()} for who, figures in found.runs[store].items()
    }


def _compared(found: Found, store: str, name: str) -> dict[str, Comparison]:
    every = comparisons(store, _medians(found, store))
    return {one.than.value: one for one in every if one.figure == name}


def _under(found: Found, table: str) -> str:
    """A table, and where it was measured."""
    return f"{table}\n\n{found.machine}; {'; '.join(found.headings.values())}." if table else ""
