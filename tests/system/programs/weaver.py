"""An app of flows and durable functions, whose jobs note what they do: `<monotonic ns> <pid> <what> <number> <detail>`.

The effect of a step returns a token that no other run has, and notes it: so a test sees which run of the step was kept.
"""

import asyncio
import os
import time
from pathlib import Path
from uuid import uuid4

from shiftwork import Context, WorkerOrchestrator

LOG = os.environ["MILL_LOG"]
log = os.open(LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
NAP = float(os.environ.get("WEAVER_NAP", "0.02"))

app = WorkerOrchestrator(os.environ["MILL_STORE"], lease_seconds=float(os.environ.get("MILL_LEASE", "15")))
app.register_pool("coroutines", kind="async", min_workers=20, max_workers=20)
app.register_pool("threads", kind="thread", min_workers=8, max_workers=8)


def note(what: str, number: int, detail: str = "-") -> None:
    os.write(log, f"{time.monotonic_ns()} {os.getpid()} {what} {number} {detail}\n".encode())


# ── flows ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@app.task(pool="coroutines")
async def root(number: int) -> int:
    note("root", number)
    return number


@app.task(pool="coroutines")
async def leaf(base: int, number: int) -> int:
    note("leaf", number)
    await asyncio.sleep(NAP)
    return base + number


@app.task(pool="threads")
def link(before: int, number: int) -> int:
    note("link", number)
    time.sleep(NAP)
    return before + number


@app.task(pool="threads")
def crawl(ctx: Context, number: int, width: int, depth: int) -> None:
    time.sleep(NAP)
    if depth:
        pages = [crawl.call(number * width + n, width=width, depth=depth - 1) for n in range(1, width + 1)]
        ctx.blocking.enqueue_flow(*pages)
    note("crawl", number)


@app.task(pool="coroutines")
async def total(numbers: list[int]) -> int:
    note("total", len(numbers))
    return sum(numbers)


@app.task(pool="coroutines")
async def crawled() -> int:
    """Count the pages that were crawled before."""
    lines = (line.split() for line in Path(LOG).read_text().splitlines())
    return len({words[3] for words in lines if words[2] == "crawl"})


# ── durable functions ────────────────────────────────────────────────────────────────────────────────────────────────


def effect(what: str, number: int) -> str:
    token = uuid4().hex
    note(what, number, token)
    return token


@app.task(pool="coroutines")
async def order(ctx: Context, number: int, seconds: float) -> list[str]:
    charged = await ctx.step("charge", effect, "charge", number)
    note("sleeps", number)
    await ctx.sleep(seconds)
    note("slept", number)
    approval = await ctx.wait_for("approval")
    await asyncio.sleep(NAP)
    shipped = await ctx.step("ship", effect, "ship", number)
    return [charged, approval, shipped]


if __name__ == "__main__":  # one process does everything
    asyncio.run(app.run())
