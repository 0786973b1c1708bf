"""Turns medians into tables: each of our figures, what it is compared with, the ratio, and the goal."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from benchmarks.plan import BARE, BARE_ENGINE, FIGURES, OURS, PEER, Figure, Goal, Sizes, Than

Medians = Mapping[str, Mapping[str, float]]
"""The medians, by subject and figure."""
HEADS = ("", OURS, "against itself", "bare server", "of bare", PEER, f"against {PEER}")


@dataclass(frozen=True)
class Comparison:
    """One of our figures, compared."""

    figure: str
    than: Than
    ratio: float
    goal: float | None
    at_most: bool

    @property
    def met(self) -> bool:
        """Whether the goal is reached; true if there is none."""
        if self.goal is None:
            return True
        return self.ratio <= self.goal if self.at_most else self.ratio >= self.goal

    def __str__(self) -> str:
        times = " ×" if self.than in (Than.PEER, Than.ONE_PROCESS) else ""
        said = "" if self.than is Than.ITSELF else f"{self.ratio:.{1 if self.ratio >= 10 else 2}f}{times} "
        if self.goal is not None:
            said += f"(goal {'≤ ' if self.at_most else ''}{self.goal:g}){'' if self.met else ' ✗'}"
        return said.strip()


def comparisons(store: str, medians: Medians) -> list[Comparison]:
    """All comparisons on one store."""
    return [
        compared
        for name, figure in FIGURES.items()
        for than in Than
        if (compared := _compare(store, name, figure, than, medians)) is not None
    ]


def _compare(store: str, name: str, figure: Figure, than: Than, medians: Medians) -> Comparison | None:
    goal = next((goal.value for goal in figure.goals if goal.than is than and store in goal.stores), None)
    ours = medians.get(OURS, {}).get(name)
    other = _other(name, figure, than, medians)
    if ours is None or other is None:
        return None
    # Against a peer more is always better; of a bare server's time we may take a little more.
    faster = figure.less_is_better and than is Than.PEER
    ratio = other / ours if faster else ours / other
    return Comparison(name, than, ratio, goal, at_most=figure.less_is_better and not faster)


def _other(name: str, figure: Figure, than: Than, medians: Medians) -> float | None:
    if than is Than.ITSELF:
        return 1.0 if _aims(figure.goals, than) else None
    if than is Than.ONE_PROCESS:
        return medians.get(OURS, {}).get("drain") if _aims(figure.goals, than) else None
    return medians.get(than.value, {}).get(name)


def _aims(goals: Sequence[Goal], than: Than) -> bool:
    return any(goal.than is than for goal in goals)


def table(store: str, medians: Medians, sizes: Sizes) -> str:
    """The figures of one store; empty if there are none."""
    found = {(compared.figure, compared.than): str(compared) for compared in comparisons(store, medians)}
    lines = [list(HEADS)]
    for name, figure in FIGURES.items():
        if not any(name in figures for figures in medians.values()):
            continue
        own = found.get((name, Than.ITSELF)) or _of_one_process(found.get((name, Than.ONE_PROCESS)))
        cells = [_cell(medians, who, name, figure) for who in (OURS, BARE, PEER)]
        bare, peer = (found.get((name, than), "–") for than in (Than.BARE, Than.PEER))
        label = figure.label.format(**asdict(sizes))
        lines.append([label, cells[0], own or "–", cells[1], bare, cells[2], peer])
        if name in medians.get(BARE_ENGINE, {}):
            engine = _cell(medians, BARE_ENGINE, name, figure)
            ratio = found.get((name, Than.BARE_ENGINE), "–")
            lines.append(["… with an engine’s work", cells[0], "–", engine, ratio, "–", "–"])
    if len(lines) == 1:
        return ""
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    return "\n".join(_line(line, widths) for line in lines)


def _line(cells: list[str], widths: list[int]) -> str:
    label = cells[0].ljust(widths[0])
    return "  ".join([label, *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True))]).rstrip()


def _of_one_process(said: str | None) -> str | None:
    return said and said.replace(" ×", " × of 1 process")


def _cell(medians: Medians, who: str, name: str, figure: Figure) -> str:
    value = medians.get(who, {}).get(name)
    return "–" if value is None else f"{value:,.{figure.digits}f} {figure.unit}"
