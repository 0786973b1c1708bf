"""`python -m benchmarks.morning` runs the company's morning twice, and compares."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Final

from benchmarks.morning.day import KINDS, TARGETS, Day, Pools, live, serving
from benchmarks.morning.picture import draw
from benchmarks.morning.rest import Rest, rest

FLOOD: Final = 400
WARM_UP: Final = 4.0
"""Seconds of load before it counts, so that the pool has grown."""


async def lived(pools: Pools, said: argparse.Namespace) -> Day:
    """Run one morning."""
    print(f"» {pools} pools: night, {said.peak:g} s of peak, evening", file=sys.stderr)
    async with serving(pools) as (made, _):
        return await live(made, pools, night=said.night, peak=said.peak, evening=said.evening)


async def mail_waits(seconds: float, *, flood: bool) -> float:
    """The 99th percentile of how long e-mail waits, with or without a flood of pictures beside it."""
    print(f"» e-mail {'beside a flood of images' if flood else 'alone'}", file=sys.stderr)
    async with serving("elastic") as (made, _):
        if flood:
            await made.app.enqueue_many([made.image_resize.call(seconds=0.05) for _ in range(FLOOD)])
        day = await live(made, "elastic", night=WARM_UP, peak=seconds, evening=0, only=["email"], full_night=True)
        return day.p99("email")


async def rested(seconds: float) -> Rest:
    """Measure the cost of an idle node."""
    print("» idle", file=sys.stderr)
    async with serving("elastic") as (made, pid):
        await asyncio.sleep(WARM_UP)
        return await rest(made, pid, seconds)


def report(days: list[Day]) -> None:
    """Print how long each kind waited, and the totals."""
    print(f"{'':14}{'target':>8}" + "".join(f"{day.pools + ' p99':>14}{'longest':>10}" for day in days))
    for kind in KINDS:
        cells = "".join(f"{day.p99(kind):>12.2f} s{day.most(kind):>8.2f} s" for day in days)
        print(f"{kind:<14}{TARGETS[kind]:>6g} s{cells}")
    for day in days:
        jobs = sum(map(len, day.waits.values()))
        ends = "not within the evening" if day.at_minimum_after is None else f"{day.at_minimum_after:.0f} s later"
        drained = "not within the evening" if day.drained_after is None else f"{day.drained_after:.0f} s after the peak"
        print(
            f"{day.pools}: {jobs} jobs completed, {day.unfinished} not, {day.interrupted} interrupted; "
            f"queues empty {drained}, back at the minimum {ends}; {len(day.scaled)} scaling steps"
        )


async def main() -> int:
    """Run, compare, draw."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.morning", description=__doc__)
    parser.add_argument("--night", type=float, default=8)
    parser.add_argument("--peak", type=float, default=30)
    parser.add_argument("--evening", type=float, default=90)
    parser.add_argument("--rest", type=float, default=10, help="seconds to measure the idle node")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw both as SVG")
    said = parser.parse_args()
    days = [await lived("fixed", said), await lived("elastic", said)]
    alone, beside = await mail_waits(10, flood=False), await mail_waits(10, flood=True)
    report(days)
    print(f"e-mail, 99th percentile: {alone * 1000:.0f} ms alone, {beside * 1000:.0f} ms beside {FLOOD} images")
    idle = await rested(said.rest)
    print(
        f"at rest: {idle.cores:.2%} of a core and {idle.memory / 2**20:.0f} MB for {idle.processes} processes; "
        f"a new job starts within {idle.wake_p50 * 1000:.1f} ms, at the 99th percentile {idle.wake_p99 * 1000:.1f} ms"
    )
    if said.picture is not None:
        said.picture.write_text(draw(days))
    elastic = days[1]
    kept = all(elastic.most(kind) <= TARGETS[kind] for kind in KINDS)
    return 0 if kept and not elastic.interrupted and elastic.at_minimum_after is not None else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
