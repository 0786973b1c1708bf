"""Run storms by hand: `python -m tests.storms --store redis --seed 7 --seconds 120 --report build/storms`."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.storms.places import STORM_PLACES
from tests.storms.report import write_report
from tests.storms.storm import Storm, StormPlan


def main() -> int:
    """Run the storms, print the verdicts, and write a page. Returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("--store", action="append", choices=[*STORM_PLACES], help="by default each of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storms", type=int, default=1, help="how many, each with the next seed")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long clients add jobs")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--bulk", type=int, default=20, help="jobs that do nothing, a client, four times a second")
    parser.add_argument("--fronts", type=int, default=2, help="how many faults are under way at a time")
    parser.add_argument("--report", type=Path, help="the folder of the page; histories of failed storms are kept there")
    said = parser.parse_args()
    folder = said.report or Path(tempfile.mkdtemp(prefix="shiftwork-storms-"))
    results = []
    for seed in range(said.seed, said.seed + said.storms):
        for store in said.store or STORM_PLACES:
            plan = StormPlan(store, seed, said.seconds, nodes=said.nodes, bulk=said.bulk, fronts=said.fronts)
            result = asyncio.run(Storm(plan, folder / f"{store}-{seed}").rage())
            results.append(result)
            _say(f"» {store}, seed {seed}: {result.faults} faults", result.judgement.text(), *result.surprises[:3])
    write_report(results, folder / "index.html")
    _say(f"» {folder / 'index.html'}")
    return 0 if all(result.judgement.holds and not result.surprises for result in results) else 1


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
