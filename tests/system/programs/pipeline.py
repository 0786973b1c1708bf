"""Three workers of DESIGN 3 with random durations, to be run in several processes on one store.

Every run appends its start and end to a file, by a clock that all processes of the machine share.
"""

import asyncio
import os
import random
import sys
import time
from pathlib import Path

from shiftwork import WorkerOrchestrator

url, log_path, wanted = sys.argv[1], sys.argv[2], int(sys.argv[3])
log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
dice = random.Random(os.getpid())


def note(worker: str, what: str) -> None:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} {worker} {what}\n".encode())


def runs_ended() -> int:
    """How many runs all processes have ended so far."""
    return Path(log_path).read_bytes().count(b" end\n")


async def fetch_data() -> None:
    note("fetch-data", "start")
    await asyncio.sleep(dice.random() * 0.004)
    note("fetch-data", "end")


async def process_data() -> None:
    note("process-data", "start")
    await asyncio.sleep(dice.random() * 0.006)
    note("process-data", "end")


def cleanup() -> None:
    note("cleanup", "start")
    time.sleep(dice.random() * 0.006)
    note("cleanup", "end")


async def main() -> None:
    orchestrator = WorkerOrchestrator(url, lease_seconds=5)
    orchestrator.register_worker("fetch-data", fetch_data, interval_seconds=0.004)
    orchestrator.register_worker("process-data", process_data, interval_seconds=0.002, depends_on=["fetch-data"])
    orchestrator.register_worker("cleanup", cleanup, interval_seconds=0.003, blocks=["process-data"])
    await orchestrator.start()
    print("ready", flush=True)
    while runs_ended() < wanted:
        await asyncio.sleep(0.05)
    await orchestrator.stop()


asyncio.run(main())
