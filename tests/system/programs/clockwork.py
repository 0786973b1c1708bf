"""An app with a schedule, each of whose runs notes its job."""

import os
import time

from shiftwork import Context, WorkerOrchestrator

log = os.open(os.environ["MILL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=float(os.environ["MILL_LEASE"]))
app.register_pool("coroutines", kind="async", min_workers=4, max_workers=4)


@app.worker(pool="coroutines", interval_seconds=0.2)
async def tick(ctx: Context) -> None:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} {ctx.job_id} {ctx.attempt} start\n".encode())
