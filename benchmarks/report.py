"""Turns what was measured into tables in Markdown: ours, the best peer's, the bare server's, the goals."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from benchmarks.plan import (
    BARE,
    BARE_ENGINE,
    CHANGEABLE,
    COSTS,
    DEPTHS,
    EVERY,
    FIGURES,
    FLOW_FIGURES,
    LEAST_BESIDE,
    LEAST_IN_FLOWS,
    LEAST_OF_BEFORE,
    MEASURES,
    OURS,
    PEERS,
    RATES,
    RUN,
    SHAPES,
    STEP_FIGURES,
    SUBJECTS,
    Figure,
    Goal,
    Sizes,
    Than,
)

Runs = dict[str, dict[str, list[float]]]
"""The results of all repeats, by subject and figure."""
Medians = Mapping[str, Mapping[str, float]]
"""The medians, by subject and figure."""
NONE = "–"
BEFORE = ", before"
"""How a subject is called that is measured in another checkout."""
AGAINST_HEADS = ("", "", "before", "now", "of before")
HEADS = (
    "",
    "best peer",
    "shiftwork, one process",
    "× peer",
    "`shiftwork run`",
    "× peer",
    "bare server",
    "of bare",
    "goals",
)


FLOW_HEADS = ("the same jobs as", "drain", "of plain", *(figure.label for figure in [*FLOW_FIGURES.values()][1:]))
STEP_HEADS = ("", *(figure.label for figure in STEP_FIGURES.values()))
DEPTH_HEADS = ("beside", "", *(head for rate in RATES.values() for head in (f"{rate}, /s", "of alone")))


@dataclass(frozen=True)
class Comparison:
    """One of our figures, compared. It is that of one process, or of `shiftwork run` if only that was measured."""

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
    ours = medians.get(_who(name, medians), {}).get(name)
    other = _other(name, figure, than, medians)
    if ours is None or other is None:
        return None
    # Against a peer more is always better; of a bare server's time we may take a little more.
    faster = figure.less_is_better and than is Than.PEER
    ratio = other / ours if faster else ours / other
    return Comparison(name, than, ratio, goal, at_most=figure.less_is_better and not faster)


def _who(name: str, medians: Medians) -> str:
    return OURS if name in medians.get(OURS, {}) else RUN


def _other(name: str, figure: Figure, than: Than, medians: Medians) -> float | None:
    if than is Than.ITSELF:
        return 1.0 if _aims(figure.goals, than) else None
    if than is Than.ONE_PROCESS:
        return medians.get(OURS, {}).get("drain") if _aims(figure.goals, than) else None
    if than is Than.PEER:
        peer = best_peer(name, medians)
        return medians[peer][name] if peer else None
    return medians.get(than.value, {}).get(name)


def _aims(goals: Sequence[Goal], than: Than) -> bool:
    return any(goal.than is than for goal in goals)


def best_peer(name: str, medians: Medians) -> str | None:
    """The peer that is best in this figure."""
    found = {peer: medians[peer][name] for peer in PEERS if name in medians.get(peer, {})}
    if not found:
        return None
    best = min if FIGURES[name].less_is_better else max
    return best(found, key=lambda peer: found[peer])


# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def table(store: str, runs: Runs, sizes: Sizes) -> str:
    """Ours beside the best peer and the bare server, on one store; empty if nothing of it was measured."""
    medians = {who: {name: median(values) for name, values in figures.items()} for who, figures in runs.items()}
    compared = {(found.figure, found.than): found for found in comparisons(store, medians)}
    lines = []
    for name, figure in FIGURES.items():
        if not any(name in figures for figures in runs.values()):
            continue
        peer, mine = best_peer(name, medians), {than: compared[name, than] for than in Than if (name, than) in compared}
        lines.append(
            [
                figure.label.format(**asdict(sizes)),
                f"{SUBJECTS[peer].label} {cell(runs, peer, name)}" if peer else NONE,
                cell(runs, OURS, name),
                times(medians, OURS, peer, name),
                cell(runs, RUN, name),
                times(medians, RUN, peer, name),
                cell(runs, BARE, name),
                of_bare(mine.get(Than.BARE)),
                "; ".join(aim(found) for found in mine.values() if found.goal is not None) or NONE,
            ]
        )
        if name in runs.get(BARE_ENGINE, {}):
            of_it = of_bare(mine.get(Than.BARE_ENGINE))
            cells = [NONE] * 5 + [cell(runs, BARE_ENGINE, name), of_it, NONE]
            lines.append(["… and an engine’s work (bare+)", *cells])
    return markdown(HEADS, lines)


def against_table(runs: Runs, sizes: Sizes) -> str:
    """Every figure of ours beside that of another checkout; empty if none was measured."""
    lines = [
        [
            _named(name, sizes),
            SUBJECTS[who].label,
            cell(runs, f"{who}{BEFORE}", name),
            cell(runs, who, name),
            of_before(runs, who, name),
        ]
        for who in CHANGEABLE
        for name in runs.get(f"{who}{BEFORE}", {})
        if name in runs.get(who, {})
    ]
    return markdown(AGAINST_HEADS, lines)


def _named(name: str, sizes: Sizes) -> str:
    return EVERY[name].label.format(**asdict(sizes)) if name in EVERY else name


def of_before(runs: Runs, who: str, name: str) -> str:
    """How much better a figure is than in the other checkout, and whether that is enough; below 1 it is worse."""
    before, now = median(runs[f"{who}{BEFORE}"][name]), median(runs[who][name])
    if name in EVERY and EVERY[name].less_is_better:
        before, now = now, before
    if before <= 0.0:
        return NONE
    return f"{now / before:.2f} {'✓' if now / before >= LEAST_OF_BEFORE else '✗'}"


def peers_table(runs: Runs, sizes: Sizes) -> str:
    """Every figure of every peer."""
    peers = [peer for peer in PEERS if peer in runs]
    names = [name for name in FIGURES if any(name in runs[peer] for peer in peers)]
    lines = [
        [FIGURES[name].label.format(**asdict(sizes)), *(cell(runs, peer, name) for peer in peers)] for name in names
    ]
    return markdown(["every peer", *(SUBJECTS[peer].label for peer in peers)], lines)


def costs_table(runs: Runs) -> str:
    """The cost of one job that is drained, of every subject."""
    measured = [name for name in COSTS if any(name in figures for figures in runs.values())]
    lines = [
        [SUBJECTS[who].label, *(cell(runs, who, name) for name in measured)]
        for who in SUBJECTS
        if any(name in runs.get(who, {}) for name in measured)
    ]
    return markdown(["cost of a job, drained", *(COSTS[name].label for name in measured)], lines)


def depth_table(runs: Runs, sizes: Sizes) -> str:
    """Every rate beside a crowd, and which share it is of the rate without the crowd."""
    return markdown(DEPTH_HEADS, depth_lines(runs, sizes))


def depth_lines(runs: Runs, sizes: Sizes) -> list[list[str]]:
    """The lines of that table."""
    return [
        [MEASURES[what].label.format(**asdict(sizes)), SUBJECTS[who].label, *_beside(runs[who], what, who)]
        for what in DEPTHS
        for who in SUBJECTS
        if f"{what}/drain/beside" in runs.get(who, {})
    ]


def _beside(figures: Mapping[str, list[float]], what: str, who: str) -> Iterator[str]:
    for rate in RATES:
        alone, beside = (median(figures[f"{what}/{rate}/{when}"]) for when in ("plain", "beside"))
        share = beside / alone
        verdict = "" if who != OURS else " ✓" if share >= LEAST_BESIDE else " ✗"
        yield f"{beside:,.0f}"
        yield f"{share:.2f}{verdict}"


def flows_table(runs: Runs) -> str:
    """Plain jobs, and as many jobs of flows."""
    return markdown(FLOW_HEADS, flow_lines(runs))


def flow_lines(runs: Runs) -> list[list[str]]:
    """The lines of that table."""
    return [
        ["plain jobs" if who == OURS else SUBJECTS[who].label, rate, _of_plain(runs, who), *costs]
        for who in (OURS, *SHAPES)
        if "flow/drain" in runs.get(who, {})
        for rate, *costs in [[cell(runs, who, name) for name in FLOW_FIGURES]]
    ]


def _of_plain(runs: Runs, who: str) -> str:
    plain = runs.get(OURS, {}).get("flow/drain")
    if who == OURS or plain is None:
        return NONE
    share = median(runs[who]["flow/drain"]) / median(plain)
    return f"{share:.2f} {'✓' if share >= LEAST_IN_FLOWS else '✗'}"


def steps_table(runs: Runs) -> str:
    """The rates of steps."""
    return markdown(STEP_HEADS, step_lines(runs))


def step_lines(runs: Runs) -> list[list[str]]:
    """The lines of that table."""
    return [
        [SUBJECTS[who].label, *(cell(runs, who, name) for name in STEP_FIGURES)]
        for who in SUBJECTS
        if "steps" in runs.get(who, {})
    ]


def legend(measured: Collection[str], versions: Mapping[str, str]) -> str:
    """What the tables mean, and the settings of every subject."""
    settings = [
        f"- {about.label}{' ' + versions[who] if who in versions else ''}: {about.settings}"
        for who, about in SUBJECTS.items()
        if who in measured
    ]
    meaning = (
        "± is half the distance between the lowest and the highest repeat, as a share of the median. × peer: how many"
        " times better than the best peer. ✗ marks a missed goal; the goals are those of one process, or of `shiftwork"
        " run` where only that is measured. A job counts when its function runs; no results are kept."
    )
    return "\n".join([meaning, "", *settings])


def markdown(heads: Sequence[str], lines: list[list[str]]) -> str:
    """A table; empty if it has no lines."""
    if not lines:
        return ""
    widths = [max(len(line[column]) for line in [heads, *lines]) for column in range(len(heads))]
    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    return "\n".join([_line(heads, widths), f"|{rule}|", *(_line(line, widths) for line in lines)])


def _line(cells: Sequence[str], widths: list[int]) -> str:
    padded = [
        cells[0].ljust(widths[0]),
        *(cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)),
    ]
    return f"| {' | '.join(padded)} |"


def cell(runs: Runs, who: str, name: str) -> str:
    """The median of a figure, with its unit and the spread."""
    values = runs.get(who, {}).get(name)
    if not values:
        return NONE
    figure = EVERY.get(name, Figure(name, "/s"))
    said = f"{median(values):,.{figure.digits}f} {figure.unit}".strip()
    middle = abs(median(values))
    spread = (max(values) - min(values)) / 2 / middle if middle else 0.0
    return f"{said} ± {spread:.0%}" if len(values) > 1 else said


def times(medians: Medians, who: str, peer: str | None, name: str) -> str:
    """How many times better than a peer."""
    mine = medians.get(who, {}).get(name)
    if peer is None or not mine:
        return NONE
    other = medians[peer][name]
    ratio = other / mine if FIGURES[name].less_is_better else mine / other
    return f"{ratio:.{1 if ratio >= 10 else 2}f} ×"


def of_bare(found: Comparison | None) -> str:
    """Which share of the bare server's rate, or how many times its time."""
    if found is None:
        return NONE
    return f"{found.ratio:.2f} ×" if found.at_most else f"{found.ratio:.0%}"


def aim(found: Comparison) -> str:
    """A goal, and whether it is reached."""
    goal, most = found.goal or 0.0, "≤ " if found.at_most else ""
    shown = {
        Than.PEER: f"{goal:g} × peer",
        Than.BARE: f"{most}{goal:g} × bare",
        Than.BARE_ENGINE: f"{most}{goal:g} × bare+",
        Than.ONE_PROCESS: f"{goal:g} × 1 process",
        Than.ITSELF: f"{most}{goal:,g}",
    }[found.than]
    return f"{shown} {'✓' if found.met else '✗'}"
