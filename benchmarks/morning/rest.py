"""The cost of an idle node, and how fast it wakes up."""

import asyncio
import time
from dataclasses import dataclass
from statistics import quantiles
from types import ModuleType
from typing import Final

import psutil

WAKES: Final = 60
PAUSE_SECONDS: Final = 0.1


@dataclass
class Rest:
    """The cost of a node and all its processes."""

    processes: int
    cores: float
    """CPU use, as a share of a core."""
    memory: int
    """Memory in bytes; shared memory is divided among the processes that share it."""
    wake_p50: float
    wake_p99: float
    """Seconds from enqueueing to the start of the function."""


async def rest(made: ModuleType, pid: int, seconds: float) -> Rest:
    """Watch the idle node for a while, then wake it several times."""
    node = psutil.Process(pid)
    all_of_it = [node, *node.children(recursive=True)]
    before, began = _used(all_of_it), time.monotonic()
    await asyncio.sleep(seconds)
    cores = (_used(all_of_it) - before) / (time.monotonic() - began)
    memory = sum(process.memory_full_info().pss for process in all_of_it)
    waits = []
    for _ in range(WAKES):
        job = await made.email.enqueue(seconds=0)
        await job.ended(10)
        record = (await made.app.get_job(job.id)).record
        waits.append((record.started_at or 0) - record.created_at)
        await asyncio.sleep(PAUSE_SECONDS)
    hundredths = quantiles(waits, n=100)
    return Rest(len(all_of_it), cores, memory, hundredths[49], hundredths[98])


def _used(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
