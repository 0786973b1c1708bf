"""Draws storms: one page, with a timeline of each, what was done to it, and what the checker says."""

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from shiftwork.core.words import counted
from shiftwork.history.lines import Fault, decode
from tests.storms.storm import StormResult

WIDTH: Final = 1000
HEIGHT: Final = 160
BAND: Final = 16
COLOURS: Final = {"kill": "#c6362c", "freeze": "#2b6cb0", "replace": "#6b8e23"}
OF_THE_STORE: Final = "#b7791f"
STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem }
:root { color-scheme: light dark }
svg { width: 100%; height: auto; background: #8881; border-radius: 6px }
.bad { color: #c6362c; font-weight: 600 }
pre { white-space: pre-wrap; font-size: 13px }
i { display: inline-block; width: .8em; height: .8em; border-radius: 2px }
"""


def write_report(results: Sequence[StormResult], page: Path) -> None:
    """Write the page."""
    runs = sum(result.judgement.runs for result in results)
    faults = sum(result.faults for result in results)
    broken = sum(not result.judgement.holds for result in results)
    verdict = (
        f'<p class="bad">A promise was broken in {counted(broken, "storm")}.</p>'
        if broken
        else ("<p>No rule of the history checker is refuted: nothing acknowledged was lost.</p>")
    )
    legend = " ".join(f'<i style="background:{colour}"></i> {kind}' for kind, colour in COLOURS.items())
    head = f"<h1>{counted(len(results), 'storm')}, {counted(faults, 'fault')}, {counted(runs, 'run')}</h1>{verdict}"
    legend += f' <i style="background:{OF_THE_STORE}"></i> the store'
    body = "".join(section(result, page.parent) for result in results)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(
        f"<!doctype html><meta charset=utf-8><title>Storms</title><style>{STYLE}</style>{head}{legend}{body}"
    )


def section(result: StormResult, folder: Path) -> str:
    """Return what the page says of one storm."""
    plan = result.plan
    history = folder / f"{plan.store}-{plan.seed}" / "history"
    said = escape("\n".join([result.judgement.text(), *result.surprises]))
    title = f"{plan.store}, seed {plan.seed}: {counted(result.faults, 'fault')} in {plan.seconds:g} s of work"
    return f"<h2>{title}</h2>{timeline(history)}<pre>{said}</pre>"


def timeline(history: Path) -> str:
    """Draw how many runs began in each second, and below it what was done."""
    began = Counter(int(at) for at in _times(history, b'["began",'))
    faults = [line for line in _lines(history / "storm.jsonl") if isinstance(line, Fault)]
    seconds = [*began, *(int(fault.at) for fault in faults)]
    if not seconds:
        return ""
    first, last = min(seconds), max(seconds) + 1
    most = max(began.values(), default=1)
    scale = WIDTH / (last - first)
    points = " ".join(
        f"{(second - first) * scale:.1f},{HEIGHT - began[second] / most * (HEIGHT - 12):.1f}"
        for second in range(first, last)
    )
    marks = "".join(_mark(fault, first, scale) for fault in faults)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT + 2 * BAND + 8}" role="img" aria-label="runs and faults over time">'
        f'<polygon points="0,{HEIGHT} {points} {WIDTH},{HEIGHT}" fill="#3182ce55" stroke="#3182ce"/>'
        f'<text x="4" y="14" font-size="12" fill="currentColor">{most:,} runs a second at most; {last - first} s</text>'
        f"{marks}</svg>"
    )


def _mark(fault: Fault, first: float, scale: float) -> str:
    of_store = fault.what == "store"
    colour = OF_THE_STORE if of_store else COLOURS.get(fault.kind, "#777")
    x, width = (fault.at - first) * scale, max(2.0, (fault.seconds or 0.0) * scale)
    y = HEIGHT + 4 + (BAND + 2) * of_store
    title = escape(f"{fault.kind} {fault.what}" + (f" for {fault.seconds:g} s" if fault.seconds else ""))
    return (
        f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAND}" fill="{colour}"><title>{title}</title></rect>'
    )


def _times(history: Path, kind: bytes) -> Iterator[float]:
    """Yield when the lines of a kind were written, without decoding the rest of them."""
    for path in history.glob("*.jsonl"):
        with path.open("rb") as file:
            for line in file:
                if line.startswith(kind):
                    yield float(line[len(kind) : line.index(b",", len(kind))])


def _lines(path: Path) -> Iterator[object]:
    with path.open("rb") as file:
        yield from (decode(line) for line in file)
