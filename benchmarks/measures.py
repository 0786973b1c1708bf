"""How each thing is measured, the same for every subject. Runs in a child process; returns figures by name."""

import asyncio
import mmap
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median, quantiles
from typing import Final

import psutil

from benchmarks.dashboard.measure import dashboard
from benchmarks.plan import PEER, Sizes
from benchmarks.subjects import subject as make
from benchmarks.subjects.subject import CALLERS, Subject

Figures = dict[str, float]
PATIENCE: Final = 120.0
WAIT_SECONDS: Final = 0.05
WAIT_SLOTS: Final = 100
SETTLE_SECONDS: Final = 1.5
PAUSE_SECONDS: Final = 0.002
CELL: Final = struct.calcsize("Q")


def _nothing() -> None:
    """The callback of jobs that are not counted."""


async def measure(what: str, name: str, url: str, sizes: Sizes) -> Figures:
    """Take one measurement of one subject."""
    return await MEASURING[what](name, url, sizes)


def _part(name: str, n: int, sizes: Sizes) -> int:
    return max(n // sizes.peer_part, CALLERS) if name == PEER else n


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


async def together(name: str, url: str, sizes: Sizes) -> Figures:
    subject, n = await _ready(name, url), _part(name, sizes.together, sizes)
    return {"together": await _rate(subject, n, subject.add_together(n))}


async def bulk(name: str, url: str, sizes: Sizes) -> Figures:
    subject, n = await _ready(name, url), sizes.bulk
    return {"bulk": await _rate(subject, n, subject.add_many(n))}


async def drain(name: str, url: str, sizes: Sizes) -> Figures:
    n = _part(name, sizes.drain, sizes)
    return {"drain": await _drain(name, url, processes=1, depth=n, n=n)}


async def drain_by_two(name: str, url: str, sizes: Sizes) -> Figures:
    n = 2 * _part(name, sizes.drain, sizes)
    return {"drain2": await _drain(name, url, processes=2, depth=n, n=n)}


async def drain_deep(name: str, url: str, sizes: Sizes) -> Figures:
    return {"deep": await _drain(name, url, processes=1, depth=sizes.deep, n=sizes.drain)}


async def _drain(name: str, url: str, *, processes: int, depth: int, n: int) -> float:
    """Jobs per second, from the first jobs that have run until `n` have."""
    filling = make(name, url)
    await filling.open()
    await filling.add_many(depth)
    await filling.close()
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shiftwork-bench-"))) / "counts"
        path.write_bytes(bytes(CELL * processes))
        serving = [_serving(stack, name, url, path, number) for number in range(processes)]
        for process in serving:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n", f"a process of {name} did not start"
        for process in serving:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        return _watch(path, processes, n)


def _serving(stack: ExitStack, name: str, url: str, path: Path, number: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmarks.child", "serve", name, url, str(path), str(number)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    stack.callback(process.wait)
    stack.callback(process.kill)  # the place is thrown away: there is nothing to put in order
    return process


def _watch(path: Path, processes: int, n: int) -> float:
    deadline = time.perf_counter() + PATIENCE
    first: tuple[float, int] | None = None

    def look() -> list[int]:
        return list(struct.unpack(f"{processes}Q", path.read_bytes()))

    while True:
        seen, now = look(), time.perf_counter()
        if sum(seen) >= n:
            break
        if first is None and any(seen):
            first = now, sum(seen)
        if now > deadline:
            raise TimeoutError(f"{sum(seen)} of {n} jobs ran in {PATIENCE:g} s")
        time.sleep(PAUSE_SECONDS)
    if first is None:
        raise TimeoutError("it was over before it could be watched; measure more jobs")
    return (sum(seen) - first[1]) / (now - first[0])


async def serve(name: str, url: str, path: str, number: int) -> None:
    """Run jobs after the start signal, and count them where `_watch` reads, until killed."""
    cells = _cells(path)
    subject = make(name, url)
    await subject.open()

    def ran() -> None:
        cells[number] += 1

    print("ready", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    await subject.start(ran)
    await asyncio.Event().wait()


def _cells(path: str) -> memoryview:
    with Path(path).open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")


async def latency(name: str, url: str, sizes: Sizes) -> Figures:
    """Time from the call of enqueue to the first line of the job, in an otherwise idle process."""
    loop, ran, started = asyncio.get_running_loop(), asyncio.Event(), [0.0]
    subject = make(name, url)
    await subject.open()

    def stamp() -> None:
        started[0] = time.perf_counter()
        loop.call_soon_threadsafe(ran.set)

    await subject.start(stamp)
    waits: list[float] = []
    for _ in range(sizes.samples):
        ran.clear()
        await asyncio.sleep(PAUSE_SECONDS)
        begun = time.perf_counter()
        await subject.add()
        await ran.wait()
        waits.append((started[0] - begun) * 1000)
    await subject.close()
    return {"p50": median(waits), "p99": quantiles(waits, n=100)[-1]}


async def waits(name: str, url: str, sizes: Sizes) -> Figures:
    """Jobs of 50 ms of I/O on 100 slots: the share of the ideal rate, from the first end to the last."""
    from benchmarks.subjects.shiftwork import Shiftwork  # noqa: PLC0415 - only where it is measured

    assert name == "shiftwork"
    subject, ends, over = Shiftwork(url, slots=WAIT_SLOTS, seconds=WAIT_SECONDS), list[float](), asyncio.Event()
    await subject.open()
    await subject.add_many(sizes.waits)

    def ran() -> None:
        ends.append(time.perf_counter())
        if len(ends) == sizes.waits:
            over.set()

    await subject.start(ran)
    await over.wait()
    await subject.close()
    taken = ends[-1] - ends[0] + WAIT_SECONDS
    return {"waits": sizes.waits * WAIT_SECONDS / WAIT_SLOTS / taken}


async def idle(name: str, url: str, sizes: Sizes) -> Figures:
    """The cost of an idle process."""
    subject = make(name, url)
    await subject.open()
    await subject.start(_nothing)
    await asyncio.sleep(SETTLE_SECONDS)
    begun, used = time.perf_counter(), time.process_time()
    await asyncio.sleep(sizes.idle_seconds)
    share = (time.process_time() - used) / (time.perf_counter() - begun)
    memory = psutil.Process().memory_full_info()
    await subject.close()
    return {"idle_cpu": share * 100, "idle_memory": getattr(memory, "pss", memory.uss) / 1e6}


MEASURING: Final[dict[str, Callable[[str, str, Sizes], Awaitable[Figures]]]] = {
    "enqueue": enqueue,
    "together": together,
    "bulk": bulk,
    "drain": drain,
    "drain2": drain_by_two,
    "deep": drain_deep,
    "latency": latency,
    "waits": waits,
    "idle": idle,
    "dashboard": dashboard,
}
