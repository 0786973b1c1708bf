"""One day: a node, the jobs as they arrive, and how each ended. Everything is read from the store."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import reload
from pathlib import Path
from statistics import quantiles
from types import ModuleType
from typing import Any, Final, Literal

from benchmarks.morning import app as application
from shiftwork import JobStatus

Pools = Literal["fixed", "elastic"]

KINDS: Final[Mapping[str, tuple[float, float]]] = {
    # kind: (jobs a second at the peak, seconds each takes)
    "email": (60.0, 0.05),
    "webhook": (40.0, 0.15),
    "export": (8.0, 0.4),
    "image_resize": (6.0, 0.05),
    "pdf": (2.0, 0.1),
}
TARGETS: Final = {"email": 1.0, "webhook": 2.0, "export": 4.0, "image_resize": 10.0, "pdf": 10.0}
NIGHT: Final = 0.05
"""The load at night, as a share of the peak."""
STEP_SECONDS: Final = 0.1
LEAST_FOR_P99: Final = 2


@dataclass
class Sample:
    """The state at one moment."""

    at: float
    queued: dict[str, int]
    workers: dict[str, int]


@dataclass
class Day:
    """The results of a day."""

    pools: Pools
    waits: dict[str, list[float]] = field(default_factory=dict)
    """The wait of each job, by kind."""
    samples: list[Sample] = field(default_factory=list)
    unfinished: int = 0
    interrupted: int = 0
    """Jobs that took more than one attempt, or crashed."""
    drained_after: float | None = None
    """Seconds from the end of the peak until nothing was queued."""
    at_minimum_after: float | None = None
    """Seconds from the end of the peak until every pool was back at its minimum."""
    scaled: list[str] = field(default_factory=list)

    def p99(self, kind: str) -> float:
        """The wait that one job in a hundred exceeds."""
        waits = self.waits.get(kind, [0.0, 0.0])
        return quantiles(waits, n=100)[98] if len(waits) >= LEAST_FOR_P99 else waits[0]

    def most(self, kind: str) -> float:
        """The longest wait."""
        return max(self.waits.get(kind, [0.0]))


@asynccontextmanager
async def serving(pools: Pools) -> AsyncIterator[tuple[ModuleType, int]]:
    """A node with these pools on a new store: the app as its callers see it, and the node's pid."""
    with tempfile.TemporaryDirectory(prefix="shiftwork-morning-") as folder:
        os.environ["MORNING_STORE"] = f"sqlite:///{folder}/morning.db"
        os.environ["MORNING_POOLS"] = pools
        made = reload(application)
        command = [sys.executable, "-m", "shiftwork", "run", "benchmarks.morning.app:app", "--log-level", "warning"]
        with (Path(folder) / "log").open("w") as log:
            node = subprocess.Popen(command, stderr=log)  # noqa: ASYNC220 - nothing else goes on yet
        try:
            await _until_served(made, node)
            yield made, node.pid
        finally:
            node.send_signal(signal.SIGTERM)
            node.wait(60)
            await made.app.close()


async def _until_served(made: ModuleType, node: subprocess.Popen[bytes]) -> None:
    while node.poll() is None:
        board = await made.app.get_pool_dashboard()
        if board and all(pool["workers"] for pool in board.values()):
            return
        await asyncio.sleep(0.2)
    message = "the node did not start"
    raise RuntimeError(message)


async def live(
    made: ModuleType,
    pools: Pools,
    *,
    night: float,
    peak: float,
    evening: float,
    only: Sequence[str] = tuple(KINDS),
    full_night: bool = False,
) -> Day:
    """Run a day; the evening ends early once all jobs are done and every pool is back at its minimum.

    A full night is as busy as the peak, and does not count.
    """
    day = Day(pools)
    dice = random.Random(7)
    began = time.monotonic()
    peak_over = night + peak
    owed = dict.fromkeys(only, 0.0)
    while (now := time.monotonic() - began) < peak_over + evening:
        busy = night <= now < peak_over
        calls = []
        for kind in only:
            rate, seconds = KINDS[kind]
            owed[kind] += rate * (1.0 if busy or full_night else NIGHT) * STEP_SECONDS
            while owed[kind] >= 1:
                owed[kind] -= 1
                calls.append(getattr(made, kind).call(seconds=seconds * dice.uniform(0.5, 1.5)))
        if calls:
            await made.app.enqueue_many(calls)
        await _look(made, day, now)
        if now > peak_over and _is_over(made, day, now - peak_over):
            break
        await asyncio.sleep(max(0.0, began + now + STEP_SECONDS - time.monotonic()))
    await _count(made, day, since=made.app.control.now() - now + night if full_night else 0.0)
    return day


async def _look(made: ModuleType, day: Day, now: float) -> None:
    seen = await made.app.control.system.overview()
    day.samples.append(
        Sample(now, {pool.name: pool.stats.queued for pool in seen.pools}, {p.name: p.workers for p in seen.pools})
    )


def _is_over(made: ModuleType, day: Day, since: float) -> bool:
    last = day.samples[-1]
    least = {name: pool.min_workers for name, pool in made.app.registered()[1].items()}
    if day.drained_after is None and sum(last.queued.values()) <= LEAST_FOR_P99:
        day.drained_after = since
    at_minimum = all(last.workers.get(name, 0) <= n for name, n in least.items())
    if day.drained_after is not None and at_minimum and day.at_minimum_after is None:
        day.at_minimum_after = since
    return day.at_minimum_after is not None


async def _count(made: ModuleType, day: Day, *, since: float) -> None:
    after: dict[str, Any] = {}
    while page := await made.app.find_jobs(limit=1000, created_after=since, **after):
        for job in page:
            if job.status is not JobStatus.COMPLETED or job.record.started_at is None:
                day.unfinished += 1
                continue
            day.waits.setdefault(job.worker, []).append(job.record.started_at - job.record.created_at)
            day.interrupted += job.attempt > 1 or job.crashes > 0
        after = {"after": page[-1].id}
    day.scaled = [event.message for event in await made.app.events(limit=1000) if event.name == "pool.scaled"]
