"""The app of the storms: every kind of pool, and every rule whose promise a storm might break."""

import asyncio
import os
import random
import time
from typing import Any

from shiftwork import Context, JobPriority, Retry, WorkerOrchestrator

app = WorkerOrchestrator(
    os.environ["STORM_STORE"],
    lease_seconds=float(os.environ.get("STORM_LEASE", "5")),
    tick_interval=1.0,
)
app.register_pool("quick", kind="async", min_workers=20, max_workers=40, heartbeat_interval=1)
app.register_pool("threads", kind="thread", min_workers=4, max_workers=4, heartbeat_interval=1)
app.register_pool("apart", kind="process", min_workers=1, max_workers=2, cpu=0.1, heartbeat_interval=1)

app.register_pool("aside", kind="async", min_workers=4, max_workers=4, heartbeat_interval=1)

VERSION = int(os.environ.get("STORM_VERSION", "1"))
AGAIN = Retry(delays=(0.2, 0.5, 1.0))


class FailedOnceError(Exception):
    """A task fails on purpose."""


@app.task(pool="quick", keep_completed_seconds=0)
async def touch(number: int) -> None:
    """Do nothing: most jobs are of this kind."""


@app.task(pool="quick", retry=AGAIN)
async def stumble(ctx: Context, number: int) -> int:
    """Fail at the first attempt of every third job."""
    await asyncio.sleep(0.01)
    if number % 3 == 0 and ctx.attempt == 1:
        raise FailedOnceError(number)
    return number


@app.task(pool="threads")
def fetch(number: int) -> int:
    time.sleep(0.02)
    return number


@app.task(pool="apart", max_retries=5, retry=AGAIN)
def think(number: int, seconds: float) -> int:
    time.sleep(seconds)
    return number


@app.task(pool="quick", max_running=1)
async def left(number: int) -> None:
    await asyncio.sleep(0.02)


@app.task(pool="threads", blocks=["left"], max_running=1)
def right(number: int) -> None:
    time.sleep(0.02)


@app.task(pool="quick", max_running=2, concurrency_key="{tenant}")
async def serve_tenant(tenant: str, number: int) -> None:
    await asyncio.sleep(0.02)


@app.task(pool="quick", rate_limit="30/s")
async def call_partner(number: int) -> None:
    await asyncio.sleep(0.005)


@app.task(pool="quick", max_retries=0, keep_completed_seconds=0)
async def give_up(number: int) -> None:
    """Fail for good every other time, so that a person runs it again."""
    if random.random() < 0.5:
        raise FailedOnceError(number)


@app.task(pool="quick")
async def linger(seconds: float) -> None:
    """Run for long enough to be interrupted."""
    await asyncio.sleep(seconds)


@app.task(pool="quick")
async def bother(number: int) -> None:
    """Be disabled and enabled by a person."""


@app.task(pool="aside")
async def wait_aside(number: int) -> None:
    """Wait while a person has paused the pool."""


@app.task(pool="apart", max_retries=5, retry=AGAIN)
def gorge(megabytes: int) -> int:
    """Take memory, and give it back."""
    taken = b"x" * (megabytes * 2**20)
    time.sleep(0.05)
    return len(taken)


if VERSION == 1:

    @app.task(pool="quick", retry=AGAIN)
    async def greet(number: int) -> int:
        """Know one parameter."""
        return number

else:

    @app.task(pool="quick", retry=AGAIN)
    async def greet(number: int, loudly: bool = False) -> int:  # noqa: FBT001, FBT002 - jobs have names
        """Know one more than the version before."""
        return number + loudly


@app.task(pool="quick")
async def count(numbers: list[int]) -> int:
    return sum(numbers)


@app.task(pool="threads")
def one(number: int) -> int:
    return number


@app.task(pool="quick", max_retries=10, timeout_seconds=60, retry=AGAIN)
async def order(ctx: Context, number: int) -> str:
    """Reserve, rest, wait for the payment, ship."""
    reserved = await ctx.step("reserve", _reserve, number)
    await ctx.sleep(seconds=0.5)
    paid = await ctx.wait_for("paid", timeout_seconds=600)
    return await ctx.step("ship", _ship, reserved, paid)


async def _reserve(number: int) -> int:
    await asyncio.sleep(0.01)
    return number


async def _ship(number: int, paid: Any) -> str:
    await asyncio.sleep(0.01)
    return f"{number} {paid}"


@app.worker(interval_seconds=2, pool="quick", priority=JobPriority.HIGH)
async def tick() -> None:
    await asyncio.sleep(0.01)


@app.worker(interval_seconds=3, pool="threads", depends_on=["tick"])
def after_tick() -> None:
    time.sleep(0.01)


@app.worker(interval_seconds=5, pool="quick", catch_up="all", overlap="queue")
async def five() -> None:
    """Fire every five seconds."""
