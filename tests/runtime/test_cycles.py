"""Jobs leave nothing to the cycle collector: it would cost a third of a busy worker's time."""

import asyncio
import gc
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from shiftwork import Context, JobFailedError, WorkerOrchestrator
from tests.runtime.stage import DEADLINE

JOBS = 200


def divide(n: int) -> int:
    return 1 // (n % 4)


async def divide_later(n: int) -> int:
    return 1 // (n % 4)


def divide_in_two_steps(n: int) -> Any:
    return divide_later(n)


async def divide_in_a_step(ctx: Context, n: int) -> int:
    ctx.sleep(1).close()
    asyncio.create_task(ctx.sleep(1)).cancel()
    return await ctx.step("divide", divide, n)


FUNCTIONS: dict[str, Any] = {
    "async": divide_later,
    "thread": divide,
    "rest": divide_in_two_steps,
    "durable": divide_in_a_step,
}


def plain_manager(_ctx: Context) -> Iterator[None]:
    yield


async def async_manager(_ctx: Context) -> AsyncIterator[None]:
    yield


@pytest.fixture
def kept_garbage() -> Iterator[None]:
    """Keep what only the cycle collector would free, in `gc.garbage`."""
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.usefixtures("kept_garbage")
@pytest.mark.parametrize("kind", ["async", "thread", "rest", "durable"])
@pytest.mark.parametrize("managers", [(), (plain_manager, async_manager)], ids=["alone", "surrounded"])
async def test_jobs_leave_no_reference_cycles(kind: str, managers: tuple[Any, ...]) -> None:
    app = WorkerOrchestrator("memory://")
    for manager in managers:
        app.around_job(manager)
    app.register_pool("p", kind="thread" if kind in {"thread", "rest"} else "async", min_workers=10, max_workers=10)

    act: Any = app.task(pool="p", max_retries=0)(FUNCTIONS[kind])

    async def live() -> None:
        for job in [await act.enqueue(n=n) for n in range(JOBS)]:
            try:
                await job.result(DEADLINE)
            except JobFailedError:
                continue

    await app.start()
    await live()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    await live()
    gc.collect()
    found = Counter(type(thing).__qualname__ for thing in gc.garbage)
    gc.set_debug(0)
    await app.stop()
    assert found.total() < JOBS / 10, found


async def test_a_call_and_its_job_are_two_objects_for_the_cycle_collector(tmp_path: Path) -> None:
    """Each object that it visits makes adding many jobs slower: seven for a job took a quarter of the time."""
    async with WorkerOrchestrator(f"sqlite:///{tmp_path / 'jobs.db'}") as app:
        act = app.task(divide_later)
        await app.enqueue_many([act.call(n=1)])
        gc.collect()
        before = len(gc.get_objects())
        calls = [act.call(n=n) for n in range(1_000)]
        jobs = await app.enqueue_many(calls)
        gc.collect()
        made = len(gc.get_objects()) - before
        assert made / len(jobs) < 2.5
