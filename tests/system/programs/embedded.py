"""A program with a process pool, to be run as a file, as a module, or imported by another one: `embedded.py URL`."""

import asyncio
import os
import sys
from dataclasses import dataclass

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator(os.environ["MILL_STORE"])
app.register_pool("apart", kind="process", min_workers=1, max_workers=1, cpu=0.1)


@dataclass
class Box:
    width: int
    label: str = "box"


@app.task(pool="apart", max_retries=0)
def measure(box: Box) -> tuple[int, int]:
    return box.width * 2, os.getpid()


@app.task(max_retries=0)
async def here() -> int:
    return os.getpid()


async def main() -> None:
    await app.start()
    job, other = await measure.enqueue(box=Box(21)), await here.enqueue()
    width, pid = await job.result(timeout_seconds=40)
    print(width, pid != os.getpid(), await other.result(timeout_seconds=40) == os.getpid())
    await app.stop()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
