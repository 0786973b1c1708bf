"""Measure shiftwork, a peer and the bare server side by side, and print a table for each store.

Absolute figures depend on the machine; the ratios within one run are what counts. Every measurement has its own process
and an empty store; subjects take turns, and the median of the repeats counts.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.child import loop_name
from benchmarks.dashboard.report import table as dashboard_table
from benchmarks.places import PLACES, MissingServerError, Place
from benchmarks.plan import FIGURES, MEASURES, OURS, PEER, QUICK, STORES, SUBJECTS, UNFIT, Sizes
from benchmarks.report import comparisons, table

CHILD_SECONDS: Final = 600.0
PEER_NEEDS: Final = {"sqlite": "huey", "redis": "redis", "postgresql": "psycopg"}
BARE_IS: Final = "Bare: the minimum that a correct durable queue needs, one process, batches of 100."

Runs = dict[str, dict[str, list[float]]]
"""The results of each run, by subject and figure."""


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"{', '.join(STORES)}; all by default")
    only = f"measure only this; may be repeated. Only measured on request: {', '.join(_asked())}"
    parser.add_argument("--only", action="append", choices=MEASURES, help=only)
    parser.add_argument(
        "--subject", action="append", choices=SUBJECTS, help="measure only this subject; may be repeated"
    )
    parser.add_argument("--repeat", type=int, help="runs of each measurement (3)")
    parser.add_argument("--deep", type=int, help=f"jobs in a deep backlog ({Sizes.deep})")
    parser.add_argument("--watch", type=float, help=f"seconds that the dashboard is watched ({Sizes.watch_seconds:g})")
    parser.add_argument("--quick", action="store_true", help="a little of everything, once, to see whether it works")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to this file")
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
    return said


def _asked() -> list[str]:
    return [what for what, measured in MEASURES.items() if measured.asked]


def schedule(store: str, said: argparse.Namespace) -> list[tuple[str, str]]:
    """The measurements on a store, in order: the subjects take turns."""
    return [
        (what, subject)
        for turn in range(said.repeat)
        for what, measured in MEASURES.items()
        if (what in said.only if said.only else not measured.asked) and not (measured.once and turn)
        for subject in measured.subjects
        if (not said.subject or subject in said.subject) and (store, what, subject) not in UNFIT
        if subject != PEER or find_spec(PEER_NEEDS[store])
    ]


def measure(what: str, subject: str, place: Place, sizes: Sizes) -> dict[str, float]:
    """Run one measurement, in its own process."""
    with place.fresh() as url:
        command = [sys.executable, "-m", "benchmarks.child", "measure", what, subject, url, json.dumps(asdict(sizes))]
        answer = subprocess.run(command, capture_output=True, check=False, text=True, timeout=CHILD_SECONDS)
    if answer.returncode:
        raise subprocess.SubprocessError(answer.stderr.strip())
    figures: dict[str, float] = json.loads(answer.stdout.splitlines()[-1])
    return figures


def run(store: str, place: Place, said: argparse.Namespace) -> tuple[Runs, list[str]]:
    """Run all measurements on one store and print a line for each; returns the results and the failures."""
    runs: Runs = defaultdict(lambda: defaultdict(list))
    failed: list[str] = []
    planned = schedule(store, said)
    for number, (what, subject) in enumerate(planned, 1):
        name, begun = f"{store}, {MEASURES[what].label}, {subject}", time.monotonic()
        try:
            figures = measure(what, subject, place, said.sizes)
        except subprocess.SubprocessError as error:
            failed.append(f"{name}: {str(error).splitlines()[-1]}")
            _say(f"» {number}/{len(planned)} {name}: failed\n{error}")
            continue
        for figure, value in figures.items():
            runs[subject][figure].append(value)
        shown = ", ".join(_shown(*found) for found in figures.items() if found[0] in FIGURES)
        _say(f"» {number}/{len(planned)} {name}: {shown} ({time.monotonic() - begun:.1f} s)")
    return runs, failed


def _shown(figure: str, value: float) -> str:
    row = FIGURES[figure]
    return f"{value:,.{row.digits}f} {row.unit}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def on_store(store: str, said: argparse.Namespace) -> tuple[dict[str, Any], list[str]]:
    """Measure one store; returns everything found, and what failed."""
    with PLACES[store]() as place:
        _say(f"» {place.heading}")
        runs, failed = run(store, place, said)
    warnings = [place.warning] if place.warning else []
    if not find_spec(PEER_NEEDS[store]):
        warnings.append(f"{PEER} is skipped: it needs the package {PEER_NEEDS[store]}")
    medians = {who: {name: median(values) for name, values in figures.items()} for who, figures in runs.items()}
    compared = [asdict(found) | {"met": found.met} for found in comparisons(store, medians)]
    found = {"heading": place.heading, "warnings": warnings, "runs": runs, "medians": medians, "comparisons": compared}
    return found, failed


def main() -> int:
    """Measure, print, and return the exit code."""
    said, begun = options(), time.monotonic()
    stores: dict[str, dict[str, Any]] = {}
    failed: list[str] = []
    for store in said.stores:
        try:
            stores[store], wrong = on_store(store, said)
        except MissingServerError as missing:
            wrong = [f"{store}: {missing}"]
        failed += wrong
    machine = f"{os.cpu_count()} cores, Python {platform.python_version()}, {loop_name()}"
    print(f"{machine}; medians of {said.repeat}; {time.monotonic() - begun:.0f} s")
    for store, found in stores.items():
        warnings = [f"\nwarning: {warning}" for warning in found["warnings"]]
        tables = [table(store, found["medians"], said.sizes), dashboard_table(found["medians"].get(OURS, {}))]
        print("\n\n".join([f"\n{found['heading']}{''.join(warnings)}", *filter(None, tables)]))
    print(f"\n✗ marks a missed goal. {BARE_IS}")
    if said.json:
        written = {"machine": machine, "repeat": said.repeat, "sizes": asdict(said.sizes), "stores": stores}
        said.json.write_text(json.dumps(written, indent=2) + "\n")
    for line in failed:
        _say(f"failed: {line}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
