"""An app with a pool of each kind, each with one slot, whose jobs note their start and wait until they may end.

Every run notes its start in a file: `<monotonic ns> <pid> <worker> <number> start`.
"""

import asyncio
import os
import time
from pathlib import Path

from shiftwork import WorkerOrchestrator

log = os.open(os.environ["MILL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
allowed = Path(os.environ["MILL_LOG"]).with_suffix(".allowed")
"""A folder: a job may end when a file with its number is in it, and every job when "all" is."""

app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=float(os.environ.get("MILL_LEASE", "15")))
app.register_pool("process", kind="process", min_workers=1, max_workers=1, cpu=0.1)
app.register_pool("thread", kind="thread", min_workers=1, max_workers=1, cpu=0.1)
app.register_pool("async", kind="async", min_workers=1, max_workers=1, cpu=0.1)


def note(worker: str, number: int) -> None:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} {worker} {number} start\n".encode())


def may_end(number: int) -> bool:
    return (allowed / str(number)).exists() or (allowed / "all").exists()


@app.task(pool="process", timeout_seconds=None)
def stand_in_process(number: int) -> None:
    note("stand_in_process", number)
    while not may_end(number):
        time.sleep(0.01)


@app.task(pool="thread", timeout_seconds=None)
def stand_in_thread(number: int) -> None:
    note("stand_in_thread", number)
    while not may_end(number):
        time.sleep(0.01)


@app.task(pool="async", timeout_seconds=None)
async def stand_in_async(number: int) -> None:
    note("stand_in_async", number)
    while not may_end(number):
        await asyncio.sleep(0.01)
