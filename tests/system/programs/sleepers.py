"""Runs a hundred slots of jobs that wait until there is a file, and notes every start and end."""

import asyncio
import os
import sys
from pathlib import Path

from shiftwork import Context, WorkerOrchestrator

url, log_path, gate, lease = sys.argv[1], sys.argv[2], Path(sys.argv[3]), float(sys.argv[4])
log = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

app = WorkerOrchestrator(url, max_concurrent=100, lease_seconds=lease)


@app.task(max_retries=0)
async def nap(ctx: Context, number: int) -> int:
    os.write(log, f"{os.getpid()} {number} {ctx.fence} start\n".encode())
    while not gate.exists():
        await asyncio.sleep(0.02)
    os.write(log, f"{os.getpid()} {number} {ctx.fence} end\n".encode())
    return number


if __name__ == "__main__":
    asyncio.run(app.run())
