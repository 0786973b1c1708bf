"""An app whose only pool is spread over two processes, with jobs that each wait for a file."""

import asyncio
import os
import time
from pathlib import Path

from shiftwork import WorkerOrchestrator

log = os.open(os.environ["MILL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
folder = Path(os.environ["MILL_LOG"]).parent

app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=float(os.environ["MILL_LEASE"]), max_concurrent=1)
app.register_pool("mail", min_workers=4, max_workers=4, processes=2)


@app.task(pool="mail")
async def send(number: int) -> int:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} send {number} start\n".encode())
    while not (folder / f"open-{number}").exists():
        await asyncio.sleep(0.01)
    return os.getpid()
