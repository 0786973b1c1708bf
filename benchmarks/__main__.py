"""Measure shiftwork, its peers and the bare server side by side, and print tables for each store, in Markdown.

Absolute figures depend on the machine; the ratios within one run are what counts. Every measurement has its own process
and an empty store; subjects take turns, and the median of the repeats counts.
"""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.child import loop_name
from benchmarks.dashboard.report import table as dashboard_table
from benchmarks.page import Found, write
from benchmarks.places import PLACES, MissingServerError, Place
from benchmarks.plan import CHANGEABLE, DEPTHS, EVERY, MEASURES, ONLY, OURS, PEERS, QUICK, STORES, SUBJECTS, Sizes
from benchmarks.report import (
    BEFORE,
    Runs,
    against_table,
    comparisons,
    costs_table,
    depth_table,
    flows_table,
    legend,
    peers_table,
    steps_table,
    table,
)
from benchmarks.subjects import exists

CHECKOUT: Final = Path(__file__).parent.parent
CHILD_SECONDS: Final = 300.0
LONG_SECONDS: Final = 1_800.0
PEERS_PYTHON: Final = CHECKOUT / "build" / "peers-{}.{}".format(*sys.version_info) / "bin" / "python"


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"{', '.join(STORES)}; all by default")
    parser.add_argument("--only", action="append", choices=MEASURES, help="measure only this; may be repeated")
    parser.add_argument(
        "--subject", action="append", choices=SUBJECTS, help="measure only this subject; may be repeated"
    )
    parser.add_argument("--long", action="store_true", help=f"also measure {', '.join(_long())}: minutes more")
    parser.add_argument("--repeat", type=int, help="runs of each measurement (3)")
    parser.add_argument("--deep", type=int, help=f"jobs in a deep backlog ({Sizes.deep})")
    parser.add_argument("--watch", type=float, help=f"seconds that the dashboard is watched ({Sizes.watch_seconds:g})")
    parser.add_argument("--quick", action="store_true", help="a little of everything, once, to see whether it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to this file")
    parser.add_argument("--from", dest="found", type=Path, metavar="FILE", help="measure nothing: show this --json")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="also write the tables into this page (docs/speed.md)"
    )
    parser.add_argument(
        "--against",
        type=Path,
        metavar="CHECKOUT",
        help="take turns with another checkout of shiftwork, in which `make ui` has run, and print the ratios",
    )
    parser.add_argument(
        "--peers",
        type=Path,
        metavar="PYTHON",
        default=PEERS_PYTHON,
        help="the Python that has the peers (build/peers-…)",
    )
    said = parser.parse_args()
    unknown = set(said.stores) - set(STORES)
    if unknown:
        parser.error(f"unknown store {', '.join(sorted(unknown))}; choose from {', '.join(STORES)}")
    said.stores = said.stores or list(STORES)
    said.repeat = said.repeat or (1 if said.quick else 3)
    said.sizes = QUICK if said.quick else Sizes()
    if said.deep is not None and said.deep < said.sizes.drain:
        parser.error(f"--deep must be at least {said.sizes.drain}, the number of jobs that are drained")
    if said.deep:
        said.sizes = replace(said.sizes, deep=said.deep)
    if said.watch:
        said.sizes = replace(said.sizes, watch_seconds=said.watch)
    if said.against and not (said.against / ".venv" / "bin" / "python").exists():
        parser.error(f"{said.against} has no .venv: run `make ui` there")
    said.versions = {} if said.against else versions(said.peers)
    return said


def _long() -> list[str]:
    return [what for what, measured in MEASURES.items() if measured.long]


def versions(python: Path) -> dict[str, str]:
    """The versions of the peers that this Python has; empty if they are not installed."""
    if not python.exists():
        return {}
    packages = [peer.package for peer in PEERS.values()]
    answer = subprocess.run(
        [python, "-m", "benchmarks.child", "versions", *packages], cwd=CHECKOUT, capture_output=True, check=False
    )
    if answer.returncode:
        return {}
    found: dict[str, str] = json.loads(answer.stdout)
    return {name: found[peer.package] for name, peer in PEERS.items()}


def schedule(store: str, said: argparse.Namespace) -> list[tuple[str, str]]:
    """The measurements on a store, in order: the subjects take turns, and each repeat begins with another one."""
    return [
        (what, subject)
        for turn in range(said.repeat)
        for what, measured in MEASURES.items()
        if _wanted(what, said) and store in measured.stores and not (measured.once and turn)
        for subject in _rotated(measured.subjects, turn)
        if _fits(store, what, subject, said)
    ]


def _rotated(subjects: tuple[str, ...], turn: int) -> tuple[str, ...]:
    begin = turn % len(subjects)
    return subjects[begin:] + subjects[:begin]


def _wanted(what: str, said: argparse.Namespace) -> bool:
    measured = MEASURES[what]
    if said.only:
        return what in said.only or (said.long and measured.long)
    return not measured.named and (said.long or not measured.long)


def _fits(store: str, what: str, subject: str, said: argparse.Namespace) -> bool:
    if said.subject and subject not in said.subject:
        return False
    if said.against and subject not in CHANGEABLE:
        return False
    if subject in PEERS and subject not in said.versions:
        return False
    return exists(subject, store) and what in ONLY.get((subject, store), MEASURES)


def sides(number: int, subject: str, said: argparse.Namespace) -> list[tuple[str, Path]]:
    """Under which names a subject is measured, and in which checkouts; the order changes every time."""
    both = [(subject, CHECKOUT)]
    if said.against:
        both.append((f"{subject}{BEFORE}", said.against))
    return both[:: 1 if number % 2 else -1]


def measure(what: str, subject: str, place: Place, checkout: Path, said: argparse.Namespace) -> dict[str, float]:
    """Run one measurement, in its own process."""
    python = said.peers if subject in PEERS else sys.executable
    if checkout != CHECKOUT:
        python = checkout / ".venv" / "bin" / "python"
    patience = LONG_SECONDS if MEASURES[what].long or MEASURES[what].named else CHILD_SECONDS
    with place.fresh() as url:
        command = [python, "-m", "benchmarks.child", "measure", what, subject, url, json.dumps(asdict(said.sizes))]
        code, printed, logged = _run(command, checkout, patience)
    if code:
        raise subprocess.SubprocessError(logged.strip() or f"exit code {code}")
    figures: dict[str, float] = json.loads(printed.splitlines()[-1])
    return figures


def _run(command: list[str | Path], checkout: Path, patience: float) -> tuple[int, str, str]:
    """Run a process; if it takes too long or we are interrupted, kill it with all processes that it has started."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=checkout, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
    try:
        printed, logged = process.communicate(timeout=patience)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    return process.returncode, printed, logged


def run(store: str, place: Place, said: argparse.Namespace) -> tuple[Runs, list[str]]:
    """Run all measurements on one store and print a line for each; returns the results and the failures."""
    runs: Runs = defaultdict(lambda: defaultdict(list))
    failed: list[str] = []
    planned = schedule(store, said)
    turns = [
        (what, subject, *side)
        for number, (what, subject) in enumerate(planned)
        for side in sides(number, subject, said)
    ]
    for number, (what, subject, shown_as, checkout) in enumerate(turns, 1):
        name, begun = f"{store}, {MEASURES[what].label.format(**asdict(said.sizes))}, {shown_as}", time.monotonic()
        try:
            figures = measure(what, subject, place, checkout, said)
        except subprocess.SubprocessError as error:
            failed.append(f"{name}: {str(error).splitlines()[-1]}")
            _say(f"» {number}/{len(turns)} {name}: failed\n{error}")
            continue
        for figure, value in figures.items():
            runs[shown_as][figure].append(value)
        shown = ", ".join(filter(None, (_shown(*found) for found in figures.items())))
        _say(f"» {number}/{len(turns)} {name}: {shown} ({time.monotonic() - begun:.1f} s)")
    return runs, failed


def _shown(figure: str, value: float) -> str:
    if row := EVERY.get(figure):
        return f"{value:,.{row.digits}f} {row.unit or row.label}"
    return f"{figure.partition('/')[2]} {value:,.0f}/s" if figure.startswith(DEPTHS) else ""


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def on_store(store: str, said: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Measure one store; returns everything found, and what failed."""
    with PLACES[store]() as place:
        _say(f"» {place.heading}")
        runs, failed = run(store, place, said)
    medians = {who: {name: median(values) for name, values in figures.items()} for who, figures in runs.items()}
    compared = [asdict(found) | {"met": found.met} for found in comparisons(store, medians)]
    warnings = [place.warning] if place.warning else []
    found = {"heading": place.heading, "warnings": warnings, "runs": runs, "medians": medians, "comparisons": compared}
    return found, failed


def show(store: str, found: Found, of: dict[str, Any]) -> str:
    """Everything that is printed about one store."""
    runs = of["runs"]
    parts = [
        f"### {of['heading']}",
        *[f"Warning: {warning}" for warning in of["warnings"]],
        against_table(runs, found.sizes),
        table(store, runs, found.sizes),
        peers_table(runs, found.sizes),
        flows_table(runs),
        steps_table(runs),
        depth_table(runs, found.sizes),
        costs_table(runs),
        dashboard_table(of["medians"].get(OURS, {})),
    ]
    return "\n\n".join(filter(None, parts))


def main() -> int:
    """Measure, print, and return the exit code."""
    said = options()
    found, failed = (json.loads(said.found.read_text()), []) if said.found else everything(said)
    told = Found(found)
    print(f"{found['machine']}; {found.get('seconds', 0):.0f} s\n")
    print("\n\n".join([show(store, told, of) for store, of in found["stores"].items()]))
    measured = {subject.removesuffix(BEFORE) for of in found["stores"].values() for subject in of["runs"]}
    print(f"\n{legend(measured, found['versions'])}")
    if said.json:
        said.json.write_text(json.dumps(found, indent=2) + "\n")
    if said.write:
        _say(f"» {said.write}: wrote {', '.join(write(said.write, told))}")
    for line in failed:
        _say(f"failed: {line}")
    return 1 if failed else 0


def everything(said: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Measure all stores; returns everything found, and what failed."""
    begun, stores, failed = time.monotonic(), {}, []
    if not said.versions and not said.against:
        _say("» the peers are left out: they are not installed. `make peers` installs them")
    for store in said.stores:
        try:
            stores[store], wrong = on_store(store, said)
        except MissingServerError as missing:
            wrong = [f"{store}: {missing}"]
        failed += wrong
    repeats = f"medians of {said.repeat} runs" if said.repeat > 1 else "one run"
    found = {
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}, {loop_name()}; {repeats}",
        "seconds": time.monotonic() - begun,
        "versions": said.versions,
        "repeat": said.repeat,
        "sizes": asdict(said.sizes),
        "stores": stores,
    }
    return found, failed


if __name__ == "__main__":
    sys.exit(main())
