"""Run every subject in a process of its own, a few times in turn, and print the medians side by side.

Absolute figures move with the machine; what counts is a ratio within one run.
"""

import argparse
import json
import os
import subprocess
import sys
from statistics import median

SUBJECTS = ("windlass_sqlite", "huey_sqlite", "bare_sqlite")
ROWS = {
    "enqueue": ("enqueue, one at a time", "/s", 0),
    "together": ("enqueue, 100 callers at once", "/s", 0),
    "bulk": ("enqueue, in bulk", "/s", 0),
    "drain": ("drain, no-op jobs, one process", "/s", 0),
    "latency_p50": ("enqueue to start, median", "ms", 2),
    "latency_p99": ("enqueue to start, 99 of 100", "ms", 2),
}

Figures = dict[str, float]


def measure(subject: str, jobs: int) -> Figures:
    """One run of one subject."""
    command = [sys.executable, "-m", f"benchmarks.{subject}", str(jobs)]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    figures: Figures = json.loads(answer.stdout.splitlines()[-1])
    return figures


def medians(runs: list[Figures]) -> Figures:
    """The median of each figure."""
    return {name: median(run[name] for run in runs) for name in runs[0]}


def table(results: dict[str, Figures]) -> str:
    """All figures, a column for each subject, then what windlass is against the others."""
    ours, peer, bare = (results[subject] for subject in SUBJECTS)
    heads = ["", *(subject.replace("_", " ") for subject in SUBJECTS), "vs huey", "of bare"]
    lines = [heads]
    for name, (label, unit, digits) in ROWS.items():
        cells = [f"{run[name]:,.{digits}f} {unit}" if name in run else "–" for run in (ours, peer, bare)]
        lines.append([label, *cells, _ratio(name, ours, peer, "×"), _ratio(name, ours, bare, "%")])
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def _ratio(name: str, ours: Figures, other: Figures, unit: str) -> str:
    if name not in other or name not in ours:
        return "–"
    ratio = ours[name] / other[name]
    if name.startswith("latency"):
        ratio = 1 / ratio
    return f"{ratio:.0%}" if unit == "%" else f"{ratio:.1f} ×"


def main() -> None:
    """Measure, with a progress line for each run, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=20_000, help="no-op jobs to drain")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each subject; the median counts")
    said = parser.parse_args()
    runs: dict[str, list[Figures]] = {subject: [] for subject in SUBJECTS}
    for turn in range(said.repeats):
        for subject in SUBJECTS:
            print(f"» {subject}, run {turn + 1} of {said.repeats}", file=sys.stderr, flush=True)
            runs[subject].append(measure(subject, said.jobs))
    print(f"\n{said.jobs:,} jobs, {os.cpu_count()} cores, Python {sys.version.split()[0]}, medians of {said.repeats}\n")
    print(table({subject: medians(taken) for subject, taken in runs.items()}))


if __name__ == "__main__":
    main()
