"""Run storms by hand: `python -m tests.storms --store redis --seed 7 --seconds 120 --report build/storms`.

What was found is kept in the folder of the report, so storms that are run one after the other add up on one page.
"""

import argparse
import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tests.storms.moving_storm import MOVING, storm_of
from tests.storms.places import STORM_PLACES
from tests.storms.report import markdown, read_storm, write_report
from tests.storms.storm import StormPlan, StormResult

KINDS = (*STORM_PLACES, *MOVING)


def main() -> int:
    """Run the storms, print the verdicts, and write a page. Returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.storms", description=__doc__)
    parser.add_argument("--store", action="append", choices=[*KINDS], help="by default each of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--storms", type=int, default=1, help="how many, each with the next seed; 0 only draws")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long clients add jobs")
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--bulk", type=int, default=20, help="jobs that do nothing, a client, four times a second")
    parser.add_argument("--fronts", type=int, default=2, help="how many faults are under way at a time")
    parser.add_argument("--report", type=Path, help="the folder of the page; histories are kept there, too")
    said = parser.parse_args()
    folder = said.report or Path(tempfile.mkdtemp(prefix="shiftwork-storms-"))
    good = True
    for seed in range(said.seed, said.seed + said.storms):
        for store in said.store or KINDS:
            plan = StormPlan(store, seed, said.seconds, nodes=said.nodes, bulk=said.bulk, fronts=said.fronts)
            good &= _run(plan, folder)
    every = _results(folder)
    results = _last(every)
    failed_before = sum(not one.holds for one in every if one not in results)
    write_report(results, folder / "index.html", failed_before=failed_before)
    _say(markdown([read_storm(result, folder) for result in results]), f"» {folder / 'index.html'}")
    return 0 if good else 1


def _run(plan: StormPlan, folder: Path) -> bool:
    own = folder / f"{plan.store}-{plan.seed}".replace(" ", "-")
    shutil.rmtree(own, ignore_errors=True)
    result = asyncio.run(storm_of(plan, own).rage())
    with (folder / "storms.jsonl").open("ab") as file:
        file.write(msgspec.json.encode(result) + b"\n")
    _say(f"» {plan.store}, seed {plan.seed}: {result.faults} faults", result.judgement.text(), *result.surprises[:3])
    return result.holds


def _results(folder: Path) -> list[StormResult]:
    """Return every result so far, also of storms that were run again."""
    file = folder / "storms.jsonl"
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=StormResult) for line in lines]


def _last(results: Iterable[StormResult]) -> list[StormResult]:
    """Return the last result of each store and seed."""
    places = [*KINDS]
    kept = {(places.index(one.plan.store), one.plan.seed): one for one in results}
    return [kept[one] for one in sorted(kept)]


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
