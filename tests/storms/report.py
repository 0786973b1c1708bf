"""Draws storms: one page, with what was done, how fast jobs ran again, a timeline of each storm, and the verdicts."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from statistics import median
from typing import Final

from shiftwork.core.words import counted
from shiftwork.history.lines import Began, Fault
from tests.storms.recoveries import Recovery, read_lines, recoveries
from tests.storms.storm import StormResult

STYLE: Final = (Path(__file__).parent / "report.css").read_text()
LANES: Final = ("kill", "oom kill", "memory", "freeze", "clock", "replace", "store")
"""The rows below a timeline. All that is done to a store is in one of them."""


@dataclass
class Drawn:
    """A storm, with what its history shows."""

    result: StormResult
    faults: list[Fault]
    began: list[float]
    recoveries: list[Recovery]

    @property
    def title(self) -> str:
        return f"{self.result.plan.store}, seed {self.result.plan.seed}"


def read_storm(result: StormResult, folder: Path) -> Drawn:
    """Read what the page needs of a storm's history."""
    history = folder / f"{result.plan.store}-{result.plan.seed}".replace(" ", "-") / "history"
    faults = [line for line in read_lines(history, "fault") if isinstance(line, Fault)]
    began = [line.at for line in read_lines(history, "began") if isinstance(line, Began)]
    return Drawn(result, sorted(faults, key=lambda fault: fault.at), began, recoveries(history))


def write_report(results: Sequence[StormResult], page: Path, *, failed_before: int = 0) -> None:
    """Write the page. It says how many storms had failed before they were run again."""
    page.parent.mkdir(parents=True, exist_ok=True)
    storms = [read_storm(result, page.parent) for result in results]
    parts = [_head(storms, failed_before), _stores(storms), _faults(storms), *map(_section, storms)]
    page.write_text(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Storms</title><style>{STYLE}</style>{''.join(parts)}"
    )


# ── all storms ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _head(storms: Sequence[Drawn], failed_before: int) -> str:
    broken = sum(not one.result.holds for one in storms)
    if broken:
        why = "a rule was refuted, or a node printed a traceback about no job"
        verdict = f'<p class="bad">{counted(broken, "storm")} failed: {why}.</p>'
    else:
        rules = max((len(one.result.judgement.rules) for one in storms), default=0)
        verdict = f'<p class="good">None of {rules} rules is refuted: nothing acknowledged was lost.</p>'
    if failed_before:
        verdict += f"<p>{counted(failed_before, 'earlier run')} of these storms had failed; each was run again.</p>"
    figures = {
        "storms": len(storms),
        "faults": sum(one.result.faults for one in storms),
        "jobs": sum(one.result.judgement.jobs for one in storms),
        "runs": sum(one.result.judgement.runs for one in storms),
        "recorded lines": sum(one.result.judgement.lines for one in storms),
    }
    tiles = "".join(f"<div><b>{number:,}</b>{name}</div>" for name, number in figures.items())
    return f'<h1>Storms</h1>{verdict}<div class="tiles">{tiles}</div>'


HEADINGS: Final = ("store", "storms", "faults", "jobs", "runs", "runs again after, median", "at most", "failed")


def rows(storms: Sequence[Drawn]) -> list[tuple[str, ...]]:
    """Return for each store, and for all, what was done and what came of it."""
    names = list(dict.fromkeys(one.result.plan.store for one in storms))
    groups = [(name, [one for one in storms if one.result.plan.store == name]) for name in names]
    return [_row(name, those) for name, those in [*groups, ("all", list(storms))]]


def _row(name: str, storms: Sequence[Drawn]) -> tuple[str, ...]:
    found = [one.result for one in storms]
    counts = [
        len(found),
        sum(one.faults for one in found),
        sum(one.judgement.jobs for one in found),
        sum(one.judgement.runs for one in found),
    ]
    back = [one.seconds for storm in storms for one in storm.recoveries]
    times = (f"{median(back):.1f} s", f"{max(back):.1f} s") if back else ("–", "–")
    return (name, *(f"{n:,}" for n in counts), *times, f"{sum(not one.holds for one in found)}")


def markdown(storms: Sequence[Drawn]) -> str:
    """Return the same as a table for the docs, and what was done in one sentence."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *rows(storms)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return f"{table}\n\n{', '.join(f'{kind} {number}' for kind, number in kinds(storms))}"


def _stores(storms: Sequence[Drawn]) -> str:
    head = "".join(f"<th>{name}</th>" for name in HEADINGS)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>" for cells in rows(storms))
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def kinds(storms: Iterable[Drawn]) -> list[tuple[str, int]]:
    """Return how often each kind of fault was done."""
    return Counter(_kind(fault) for storm in storms for fault in storm.faults).most_common()


def _kind(fault: Fault) -> str:
    if fault.what == "store":
        return f"store: {fault.kind}"
    return f"kill a {fault.what.split()[0]}" if fault.kind == "kill" else fault.kind


def _faults(storms: Sequence[Drawn]) -> str:
    counts = kinds(storms)
    most = max((number for _, number in counts), default=1)
    lines = (
        f'<dt>{kind}</dt><dd><i class="{"store" if kind.startswith("store") else _css(kind.split(" a ")[0])}" '
        f'style="width:{70 * number / most:.1f}%"></i> {number}</dd>'
        for kind, number in counts
    )
    return f"<h2>What was done</h2><dl>{''.join(lines)}</dl>"


# ── one storm ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _section(storm: Drawn) -> str:
    result = storm.result
    said = escape("\n".join([result.judgement.text(), *result.surprises]))
    doing = f"{counted(result.faults, 'fault')} in {result.plan.seconds:g} s of work"
    return f"<section><h2>{storm.title}: {doing}</h2>{_timeline(storm)}<pre>{said}</pre></section>"


def _timeline(storm: Drawn) -> str:
    """Draw how many runs began in each second, and below it what was done."""
    if not storm.began:
        return ""
    first, last = min(storm.began), max([*storm.began, *(fault.at for fault in storm.faults)]) + 1
    counts = Counter(int(at - first) for at in storm.began)
    length, most = int(last - first) + 1, max(counts.values())
    points = " ".join(f"{second},{100 - counts[second] / most * 80:.1f}" for second in range(length))
    plot = (
        f'<div class="plot"><svg viewBox="0 0 {length - 1} 100" preserveAspectRatio="none" role="img" '
        f'aria-label="runs over time"><polygon points="0,100 {points} {length - 1},100"/></svg>'
        f"<small>{most:,} runs a second at most</small><small>{length - 1} s</small></div>"
    )
    return plot + "".join(_lane(storm, lane, first, last - first) for lane in LANES)


def _lane(storm: Drawn, lane: str, first: float, length: float) -> str:
    own = [fault for fault in storm.faults if lane == ("store" if fault.what == "store" else fault.kind)]
    marks = "".join(_mark(fault.at - first, fault.seconds or 0.0, length, _words(fault)) for fault in own)
    tails = ""
    if lane == "kill":
        tails = "".join(
            _mark(one.at - first, one.seconds, length, f"{counted(one.jobs, 'job')}: {one.seconds:.1f} s", "s")
            for one in storm.recoveries
        )
    return f'<div class="lane {_css(lane)}"><b>{lane}</b><div>{tails}{marks}</div></div>' if own else ""


def _mark(at: float, seconds: float, length: float, words: str, tag: str = "i") -> str:
    place = f"left:{100 * at / length:.2f}%;width:{100 * seconds / length:.2f}%"
    return f'<{tag} style="{place}" title="{escape(words)}"></{tag}>'


def _words(fault: Fault) -> str:
    return f"{fault.kind} {fault.what}" + (f" for {fault.seconds:g} s" if fault.seconds else "")


def _css(kind: str) -> str:
    return kind.replace(" ", "-")
