"""`python -m benchmarks.recovery` kills nodes under load on each store, and prints how soon their jobs run again."""

import argparse
import sys
from statistics import median

from benchmarks.places import PLACES, MissingServerError, Place
from benchmarks.recovery.measure import JOBS, Recovered, recover


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recovery", description=__doc__)
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"some of {', '.join(PLACES)}; all by default")
    parser.add_argument("--times", type=int, default=10, help="how often to kill a node; 10 by default")
    parser.add_argument("--lease", type=float, default=15.0, help="lease_seconds of the app; 15 by default")
    said = parser.parse_args()
    unknown = [store for store in said.stores if store not in PLACES]
    if unknown:
        parser.error(f"no such store: {', '.join(unknown)}; use {', '.join(PLACES)}")
    return said


def measure(store: str, place: Place, said: argparse.Namespace, *, survivor: bool) -> list[Recovered]:
    """Kill as many nodes as were asked for, each on an empty store."""
    times = []
    for turn in range(said.times):
        print(f"» {store}: {turn + 1} of {said.times}", file=sys.stderr)
        with place.fresh() as url:
            times.append(recover(url, survivor=survivor, lease=said.lease))
    return times


def main() -> int:
    """Measure, and print a line for each store and situation."""
    said = options()
    print(f"kill -9 of a node with {JOBS} running jobs, started again at once: seconds after the restart")
    print(f"{'':34}{'the node runs':>18}{'all jobs run':>18}")
    print(f"{'store':<12}{'another node':<16}{'times':>6}{'median':>9}{'worst':>9}{'median':>9}{'worst':>9}")
    for store in said.stores or PLACES:
        try:
            with PLACES[store]() as place:
                for survivor in (False, True):
                    times = measure(store, place, said, survivor=survivor)
                    cells = "".join(f"{median(some):>9.2f}{max(some):>9.2f}" for some in zip(*times, strict=True))
                    print(f"{store:<12}{'survives' if survivor else 'none':<16}{len(times):>6}{cells}", flush=True)
        except MissingServerError as error:
            print(f"{store:<12}{error}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
