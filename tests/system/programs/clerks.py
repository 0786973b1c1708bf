"""An app of durable functions in every kind of pool, which note what they do: `<monotonic ns> <pid> <what> <number> -`.

None of them may fail once.
"""

import asyncio
import os
import time

from shiftwork import Context, WorkerOrchestrator

log = os.open(os.environ["MILL_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
NAP = 0.02
STEPS = 10

app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=float(os.environ.get("MILL_LEASE", "15")))
app.register_pool("coroutines", kind="async", min_workers=8, max_workers=8)
app.register_pool("threads", kind="thread", min_workers=4, max_workers=4)
app.register_pool("apart", kind="process", min_workers=2, max_workers=2, cpu=0.1)


def note(what: str, number: int) -> int:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} {what} {number} -\n".encode())
    return number


@app.task(pool="coroutines", max_retries=0)
async def child(number: int) -> int:
    return note("child", number)


async def work_async(ctx: Context, number: int) -> str:
    total = 0
    for step in range(STEPS):
        total += await ctx.step(f"step {step}", note, f"step-{step}", number)
        await asyncio.sleep(NAP)
    await ctx.enqueue_flow(child.call(number))
    await ctx.sleep(0.1)
    return f"{total} {await ctx.wait_for('approval')} {await ctx.step('last', note, 'last', number)}"


def work_plain(ctx: Context, number: int) -> str:
    total = 0
    for step in range(STEPS):
        total += ctx.blocking.step(f"step {step}", note, f"step-{step}", number)
        time.sleep(NAP)
    ctx.blocking.enqueue_flow(child.call(number))
    ctx.blocking.sleep(0.1)
    return f"{total} {ctx.blocking.wait_for('approval')} {ctx.blocking.step('last', note, 'last', number)}"


@app.task(pool="coroutines", max_retries=0)
async def coroutine(ctx: Context, number: int) -> str:
    return await work_async(ctx, number)


@app.task(pool="threads", max_retries=0)
def thread(ctx: Context, number: int) -> str:
    return work_plain(ctx, number)


@app.task(pool="apart", max_retries=0)
def apart(ctx: Context, number: int) -> str:
    return work_plain(ctx, number)


@app.task(pool="apart", max_retries=0)
async def apart_async(ctx: Context, number: int) -> str:
    return await work_async(ctx, number)
