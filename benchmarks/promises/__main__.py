"""`python -m benchmarks.promises` measures what each promise costs on PostgreSQL, by leaving it out."""

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from typing import TypeVar

from benchmarks.child import run
from benchmarks.places import PLACES, MissingServerError, Place
from benchmarks.promises.measure import drained, server_time
from benchmarks.promises.omissions import ALL, DISK, RARE, Omission

T = TypeVar("T")
ALONE = tuple((one,) for one in ALL if one is not DISK)
OFTEN = tuple(one for one in ALL if one is not RARE)
IN_A_DRAIN = (*((one,) for one in OFTEN), tuple(one for one in OFTEN if one is not DISK), OFTEN)


def label(omissions: Sequence[Omission]) -> str:
    """How a table names what is left out."""
    if len(omissions) > 1:
        return "all of this" if DISK in omissions else "all of this but the disk"
    return omissions[0].name if omissions else "nothing"


async def repeated(
    place: Place,
    rows: Sequence[Sequence[Omission]],
    measure: Callable[[Place, Sequence[Omission]], Awaitable[T]],
    times: int,
) -> dict[str, list[T]]:
    """Measure each row this many times, in turns."""
    found: dict[str, list[T]] = {}
    for turn in range(times):
        for omissions in ((), *rows):
            print(f"» {turn + 1} of {times}: without {label(omissions)}", file=sys.stderr)
            found.setdefault(label(omissions), []).append(await measure(place, omissions))
    return found


async def report(place: Place, times: int) -> None:
    """Print both tables."""
    spent = await repeated(place, ALONE, server_time, times)
    print(f"{place.heading}; µs of the server for a job, the lowest of {times} runs\n")
    print("| left out | claim | finish | add | log per job |\n|---|---|---|---|---|")
    for name, runs in spent.items():
        claim, finish, add, log = (min(values) for values in zip(*runs, strict=True))
        print(f"| {name} | {claim:.1f} | {finish:.1f} | {add:.1f} | {log:,.0f} B |")
    rates = await repeated(place, IN_A_DRAIN, drained, times)
    plain = median(rates[label(())])
    print(f"\njobs that one process drains, medians of {times} runs\n")
    print("| left out | drained, /s | of all |\n|---|---|---|")
    for name, some in rates.items():
        print(f"| {name} | {median(some):,.0f} | {median(some) / plain:.2f} |")


def main() -> int:
    """Measure on a server of our own."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.promises", description=__doc__)
    parser.add_argument("--times", type=int, default=3, help="how often to measure each; 3 by default")
    times: int = parser.parse_args().times
    try:
        with PLACES["postgresql"]() as place:
            run(report(place, times))
    except MissingServerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
