"""How each thing is measured, the same for every subject. Runs in a child process; returns figures by name."""

import asyncio
import os
import random
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from benchmarks.counts import Counter
from benchmarks.depth import depth
from benchmarks.draining import drain, drain_by_two, flows, history, memory, part, pool, steps, waits
from benchmarks.plan import DEPTHS, RUN, Sizes
from benchmarks.serving import crew
from benchmarks.subjects import subject as make
from benchmarks.subjects.subject import Subject
from benchmarks.wire import wire

Figures = dict[str, float]
PATIENCE: Final = 120.0
SETTLE_SECONDS: Final = 3.0
WARM_CALLS: Final = 20
"""Blocking calls after which what is done once is done."""
PAUSES: Final = (0.001, 0.009)
"""The shortest and the longest pause between two samples. A fixed one would meet a poller at the same moment of its
round each time: Huey, which polls a file every 1 to 5 ms, would seem to need 0.25 ms."""
LOOK_SECONDS: Final = 0.002
"""How often to look whether a job has run in another process, which notes the time itself. Half a millisecond would be
none: uvloop rounds it down, so the loop would keep a core busy, and what it measures would wait for that core."""


async def measure(what: str, name: str, url: str, sizes: Sizes) -> Figures:
    """Take one measurement of one subject."""
    return await MEASURING[what](name, url, sizes)


async def serve(name: str, url: str, folder: str, *, seconds: float, workers: int) -> None:
    """Run jobs after the start signal, and count them where `Crew` reads, until killed."""
    counter = Counter(Path(folder))
    subject = make(name, url, seconds=seconds, workers=workers)
    await subject.open()
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, sys.stdin.readline)
    await subject.start(counter.ran)
    await loop.run_in_executor(None, sys.stdin.read)  # the end of the measuring process is the end of this one
    os._exit(1)


async def _rate(subject: Subject, n: int, add: Awaitable[None]) -> float:
    begun = time.perf_counter()
    await add
    taken = time.perf_counter() - begun
    await subject.close()
    return n / taken


async def _ready(name: str, url: str) -> Subject:
    subject = make(name, url)
    await subject.open()
    await subject.add()  # what is done once is done
    return subject


async def enqueue(name: str, url: str, sizes: Sizes) -> Figures:
    subject, n = await _ready(name, url), sizes.single

    async def add() -> None:
        for _ in range(n):
            await subject.add()

    return {"enqueue": await _rate(subject, n, add())}


async def blocking(name: str, url: str, sizes: Sizes) -> Figures:
    """One caller in a thread that runs no event loop."""
    subject, n = await _ready(name, url), sizes.single

    def add(times: int) -> None:
        for _ in range(times):
            subject.add_blocking()

    await asyncio.to_thread(add, WARM_CALLS)
    return {"blocking": await _rate(subject, n, asyncio.to_thread(add, n))}


async def together(name: str, url: str, sizes: Sizes) -> Figures:
    subject, n = await _ready(name, url), part(name, sizes.together)
    return {"together": await _rate(subject, n, subject.add_together(n))}


async def bulk(name: str, url: str, sizes: Sizes) -> Figures:
    subject, n = await _ready(name, url), sizes.bulk
    return {"bulk": await _rate(subject, n, subject.add_many(n))}


async def latency(name: str, url: str, sizes: Sizes) -> Figures:
    """Time from the call of enqueue to the first line of the job, in an otherwise idle process or node."""
    found = await (_of_a_node(name, url, sizes.samples) if name == RUN else _of_a_process(name, url, sizes.samples))
    return {"p50": median(found), "p99": quantiles(found, n=100)[-1]}


async def _of_a_process(name: str, url: str, samples: int) -> list[float]:
    loop, ran, started = asyncio.get_running_loop(), asyncio.Event(), [0.0]
    subject = make(name, url)
    await subject.open()

    def stamp() -> None:
        started[0] = time.monotonic()
        loop.call_soon_threadsafe(ran.set)

    async def sample() -> float:
        ran.clear()
        begun = time.monotonic()
        await subject.add()
        async with asyncio.timeout(PATIENCE):
            await ran.wait()
        return (started[0] - begun) * 1000

    await subject.start(stamp)
    await sample()  # what is done once is done
    found, pause = list[float](), random.Random(7)
    for _ in range(samples):
        await asyncio.sleep(pause.uniform(*PAUSES))
        found.append(await sample())
    return found


async def _of_a_node(name: str, url: str, samples: int) -> list[float]:
    """Adds in this process, and runs in another; both have the same monotonic clock."""
    subject = await _ready(name, url)
    found, pause = list[float](), random.Random(7)
    with crew(name, url) as running:
        running.until(lambda seen: seen.n == 1)
        for number in range(2, samples + 2):
            await asyncio.sleep(pause.uniform(*PAUSES))
            begun = time.monotonic()
            await subject.add()
            async with asyncio.timeout(PATIENCE):
                while (seen := running.look()).n < number:  # noqa: ASYNC110 - another process counts
                    await asyncio.sleep(LOOK_SECONDS)
            found.append((seen.last - begun) * 1000)
    await subject.close()
    return found


async def idle(name: str, url: str, sizes: Sizes) -> Figures:
    """The cost of an idle node, after its first job."""
    subject = await _ready(name, url)
    await subject.close()
    with crew(name, url) as running:
        running.until(lambda seen: seen.n == 1)
        await asyncio.sleep(SETTLE_SECONDS)
        begun, used = time.monotonic(), running.cpu_seconds()
        await asyncio.sleep(sizes.idle_seconds)
        share = (running.cpu_seconds() - used) / (time.monotonic() - begun)
        return {"idle_cpu": share * 100, "idle_memory": running.memory()}


async def dashboard(name: str, url: str, sizes: Sizes) -> Figures:
    from benchmarks.dashboard.measure import dashboard as measured  # noqa: PLC0415 - a peer's environment lacks what it needs

    return await measured(name, url, sizes)


MEASURING: Final[dict[str, Callable[[str, str, Sizes], Awaitable[Figures]]]] = {
    "enqueue": enqueue,
    "blocking": blocking,
    "together": together,
    "bulk": bulk,
    "drain": drain,
    "drain2": drain_by_two,
    "pool": pool,
    "history": history,
    "latency": latency,
    "waits": waits,
    "flows": flows,
    "steps": steps,
    "wire": wire,
    "idle": idle,
    "memory": memory,
    "dashboard": dashboard,
    **{what: partial(depth, what) for what in DEPTHS},
}
