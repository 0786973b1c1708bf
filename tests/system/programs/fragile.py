"""An app that can be described, but not always be imported by the processes of one of its pools.

What the file named by FRAGILE says is done in every process but the first, which describes the app.
"""

import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from shiftwork import Context, WorkerOrchestrator
from shiftwork.core.model.event import Event

folder = Path(os.environ["MILL_LOG"]).parent
log = os.open(os.environ["MILL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
described = folder / "described"
orders = folder / "orders"

app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=float(os.environ["MILL_LEASE"]), tick_interval=0.5)
app.register_pool("brittle", kind="process", min_workers=2, max_workers=2, cpu=0.1)
app.register_pool("sound", kind="async", min_workers=1, max_workers=1)

first = not described.exists()
if "shiftwork.serve.spawned" in sys.argv[0] or sys.argv[0].endswith("spawned.py"):
    described.touch()
    order = orders.read_text() if orders.exists() and not first else ""
    if order == "abort":
        os.abort()


def note(what: str, did: str) -> None:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} {what} 0 {did}\n".encode())


@app.lifespan
def lifespan() -> Iterator[int]:
    """Yield something that only this process has."""
    if orders.exists() and orders.read_text() == "refuse":
        message = "the licence server is away"
        raise RuntimeError(message)
    note("lifespan", "start")
    yield os.getpid()
    note("lifespan", "end")


@app.around_job
async def around(ctx: Context) -> AsyncIterator[None]:
    """Note the run, where it takes place."""
    if ctx.state == os.getpid():
        note(ctx.worker.name, "around")
    yield


@app.task(pool="brittle")
def crack(number: int) -> int:
    return number


@app.task(pool="sound")
async def ring(number: int) -> int:
    return number


@app.task(pool="sound")
async def chain(ctx: Context, number: int) -> str:
    """Enqueue another job, from inside a process that the node has started."""
    ctx.progress(number, 10, "linking")
    job = await crack.enqueue(number=number + 1)
    return job.id


@app.on("job.completed")
@app.on("*")
def heard(event: Event) -> None:
    note(event.name, "heard")
    order = orders.read_text() if orders.exists() else ""
    if order == "block hooks":
        time.sleep(600)
    if order == "kill hooks":
        os.abort()
