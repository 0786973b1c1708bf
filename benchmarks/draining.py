"""How fast a backlog is drained, and what each job costs meanwhile."""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import harmonic_mean as mean
from typing import Final, NamedTuple, Self

from benchmarks.load import log_of, server_of, used_by
from benchmarks.plan import PEERS, RUN, Sizes
from benchmarks.serving import PATIENCE, Crew, crew
from benchmarks.subjects import subject as make
from benchmarks.subjects.subject import CALLERS

Figures = dict[str, float]
WAIT_SECONDS: Final = 0.05
WAIT_SLOTS: Final = 100
LONG: Final = 10 * PATIENCE
SETTLE_SECONDS: Final = 3.0
COUNTED: Final = ("drain", "worker_us")
"""What a recorded history may change."""
WARM: Final = 50
"""The memory after one job in so many is what a node begins with."""


def part(name: str, n: int) -> int:
    """The jobs of this subject, where others have `n`."""
    return max(n // PEERS[name].parts, CALLERS) if name in PEERS else n


async def fill(name: str, url: str, n: int) -> None:
    """Add a backlog."""
    filling = make(name, url)
    await filling.open()
    await filling.add_many(n)
    await filling.close()


async def drain(name: str, url: str, sizes: Sizes) -> Figures:
    """Jobs per second, from the first jobs that have run until all have; and the cost of a job."""
    n = part(name, sizes.drain)
    await fill(name, url, n)
    with crew(name, url) as running, Meter(url, running) as meter:
        begun = Rate.begin(running)
        before = meter.read()
        rate = begun.until(n)
        after = meter.read()
        return {"drain": rate, **before.per_job(after)}


async def history(name: str, url: str, sizes: Sizes) -> Figures:
    """The share of its rate that a drain keeps while it is recorded, and the CPU time that a job costs more."""
    found: dict[bool, list[Figures]] = {False: [], True: []}
    for turn, recorded in enumerate((False, True, True, False)):  # what changes with time, changes both alike
        with (
            tempfile.TemporaryDirectory(prefix="shiftwork-bench-") as folder,
            _environment(
                SHIFTWORK_HISTORY=folder if recorded else "",
                SHIFTWORK_NAMESPACE=f"drain-{turn}",  # what a drain leaves there, the next one has to look after
            ),
        ):
            found[recorded].append(await drain(name, url, sizes))
    without, within = ({figure: mean([run[figure] for run in found[each]]) for figure in COUNTED} for each in found)
    return {
        "history": within["drain"] / without["drain"],
        "history_us": within["worker_us"] - without["worker_us"],
    }


@contextmanager
def _environment(**changes: str) -> Iterator[None]:
    """Let this process, and those that it starts, have this environment meanwhile."""
    before = os.environ.copy()
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


async def flows(name: str, url: str, sizes: Sizes) -> Figures:
    """The same, of jobs of flows."""
    return {f"flow/{figure}": value for figure, value in (await drain(name, url, sizes)).items()}


async def steps(name: str, url: str, sizes: Sizes) -> Figures:
    """Steps per second when they run, and when a second run of the same jobs gets them back."""
    from benchmarks.subjects.flows import ASLEEP_SECONDS, STEPS  # noqa: PLC0415 - only where it is measured

    await fill(name, url, sizes.durable)
    with crew(name, url) as running:
        first = Rate.begin(running).until(sizes.durable)
        seen = running.look()
        if seen.last - seen.first > ASLEEP_SECONDS or seen.n > sizes.durable:
            raise TimeoutError("the second runs began before the first ones were over; measure fewer jobs")
        again = Rate.begin(running, sizes.durable).until(2 * sizes.durable)
    return {"steps": STEPS * first, "replayed": STEPS * again}


async def drain_by_two(name: str, url: str, sizes: Sizes) -> Figures:
    n = 2 * part(name, sizes.drain)
    await fill(name, url, n)
    with crew(name, url, processes=2) as running:
        return {"drain2": Rate.begin(running).until(n)}


async def pool(name: str, url: str, sizes: Sizes) -> Figures:
    """Through a pool of two processes."""
    from benchmarks.subjects.shiftwork import Shiftwork  # noqa: PLC0415 - only where it is measured

    assert name == RUN
    filling = Shiftwork(url, kind="process")
    await filling.add_many(sizes.pool)
    await filling.close()
    with crew(name, url, kind="process") as running:
        return {"pool": Rate.begin(running).until(sizes.pool)}


async def waits(name: str, url: str, sizes: Sizes) -> Figures:
    """Jobs of 50 ms of I/O on 100 slots: the share of the ideal rate, from the first start to the last end."""
    await fill(name, url, sizes.waits)
    with crew(name, url, seconds=WAIT_SECONDS) as running:
        seen = running.until(lambda seen: seen.n >= sizes.waits)
    taken = seen.last - seen.first + WAIT_SECONDS
    return {"waits": sizes.waits * WAIT_SECONDS / WAIT_SLOTS / taken}


async def memory(name: str, url: str, sizes: Sizes) -> Figures:
    """What a node has grown by, from the first fiftieth of many jobs to the last, and how fast it was all the while."""
    warm = sizes.deep // WARM
    with crew(name, url) as running:
        await fill(name, url, warm)
        running.until(lambda seen: seen.n >= warm)
        await asyncio.sleep(SETTLE_SECONDS)
        before, begun = running.memory(), time.monotonic()
        await fill(name, url, sizes.deep)
        seen = running.until(lambda seen: seen.n >= warm + sizes.deep, LONG)
        await asyncio.sleep(SETTLE_SECONDS)
        return {"growth": running.memory() - before, "all": sizes.deep / (seen.last - begun)}


class Rate:
    """A rate from the first jobs on, so that the start of the processes does not count."""

    def __init__(self, running: Crew, at: float, n: int) -> None:
        self._running = running
        self._at = at
        self._n = n

    @classmethod
    def begin(cls, running: Crew, after: int = 0) -> "Rate":
        """Begin when the first jobs have run, or more than this many."""
        seen = running.until(lambda seen: seen.n > after, LONG)
        return cls(running, time.monotonic(), seen.n)

    def until(self, n: int) -> float:
        """Jobs per second until this many have run."""
        if self._n >= n:
            raise TimeoutError("it was over before it could be watched; measure more jobs")
        seen = self._running.until(lambda seen: seen.n >= n, LONG)
        return (seen.n - self._n) / (seen.last - self._at)


class Reading(NamedTuple):
    """What has been used so far."""

    jobs: int
    worker: float
    server: float | None
    logged: float | None

    def per_job(self, after: "Reading") -> Figures:
        """The cost of each job since."""
        jobs = after.jobs - self.jobs
        if not jobs:
            return {}
        found = {"worker_us": (after.worker - self.worker) / jobs * 1e6}
        if self.server is not None and after.server is not None:
            found["server_us"] = (after.server - self.server) / jobs * 1e6
        if self.logged is not None and after.logged is not None:
            found["log_bytes"] = (after.logged - self.logged) / jobs
        return found


class Meter:
    """Reads the CPU time of workers and server, and the length of the server's log."""

    def __init__(self, url: str, running: Crew) -> None:
        server = server_of(url)
        self._running = running
        self._stack = ExitStack()
        self._server = used_by(server) if server else None
        self._logged = self._stack.enter_context(log_of(url, running.processes))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def read(self) -> Reading:
        """Read everything at this moment. The jobs are counted first: the rest is read as soon after as possible."""
        worker, jobs = self._running.cpu_seconds(), self._running.look().n
        return Reading(jobs, worker, self._server and self._server(), self._logged())
