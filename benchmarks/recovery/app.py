"""An app with a pool of each kind, whose jobs note their start and then take longer than anyone waits."""

import asyncio
import os
import time

from shiftwork import Context, WorkerOrchestrator

HOURS = 36_000.0

log = os.open(os.environ["RECOVERY_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
app = WorkerOrchestrator(os.environ["RECOVERY_STORE"], lease_seconds=float(os.environ["RECOVERY_LEASE"]))
app.register_pool("coroutines", kind="async", min_workers=20, max_workers=20)
app.register_pool("threads", kind="thread", min_workers=8, max_workers=8)
app.register_pool("processes", kind="process", min_workers=2, max_workers=2, cpu=0.1)


def note(ctx: Context) -> None:
    os.write(log, f"{time.monotonic_ns()} {ctx.job_id}\n".encode())


@app.task(pool="coroutines", timeout_seconds=None)
async def in_a_coroutine(ctx: Context) -> None:
    note(ctx)
    await asyncio.sleep(HOURS)


@app.task(pool="threads", timeout_seconds=None)
def in_a_thread(ctx: Context) -> None:
    note(ctx)
    time.sleep(HOURS)


@app.task(pool="processes", timeout_seconds=None)
def in_a_process(ctx: Context) -> None:
    note(ctx)
    time.sleep(HOURS)


JOBS = {in_a_coroutine: 20, in_a_thread: 8, in_a_process: 2}
"""As many jobs as each pool has slots."""
