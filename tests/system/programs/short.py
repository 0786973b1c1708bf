"""An app whose jobs are short, have no retry, and note each start in a file: `<worker> <number>`."""

import asyncio
import os
import time

from shiftwork import WorkerOrchestrator

log = os.open(os.environ["MILL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

app = WorkerOrchestrator(os.environ["MILL_STORE"])
app.register_pool("apart", kind="process", min_workers=2, max_workers=2, cpu=0.1)
app.register_pool("threads", kind="thread", min_workers=4, max_workers=4, heartbeat_interval=2)
app.register_pool("coroutines", kind="async", min_workers=20, max_workers=20, heartbeat_interval=2)


def note(worker: str, number: int) -> None:
    os.write(log, f"{worker} {number}\n".encode())


@app.task(pool="apart", max_retries=0, keep_completed_seconds=0.0)
def short_apart(number: int, seconds: float) -> None:
    note("short_apart", number)
    time.sleep(seconds)


@app.task(pool="threads", max_retries=0, timeout_seconds=1.0, keep_completed_seconds=0.0)
def short_in_a_thread(number: int, seconds: float) -> None:
    note("short_in_a_thread", number)
    time.sleep(seconds)


@app.task(pool="coroutines", max_retries=0, timeout_seconds=1.0, keep_completed_seconds=0.0)
async def short_in_a_coroutine(number: int, seconds: float) -> None:
    note("short_in_a_coroutine", number)
    await asyncio.sleep(seconds)
