"""A small app with something of everything, run on a recorded store in memory: a legal history, as lines."""

import time
from typing import Any

from shiftwork import Context, Retry, Worker, WorkerOrchestrator
from shiftwork.history.lines import VERSION, AnyLine, Expected, Opened, decode
from shiftwork.history.recorded_store import RecordedStore
from shiftwork.history.recorder import HistoryRecorder, KeptLines
from shiftwork.store.memory import MemoryStore
from tests.polling import pass_time

JOBS = 8
SCHEDULED = ("fetch", "process")
"""How many jobs of each kind."""


async def nothing() -> None:
    """Do nothing."""


async def short(n: int) -> int:
    await pass_time(0.001)
    return n


async def keyed(key: str) -> None:
    await pass_time(0.001)


async def flaky(ctx: Context, n: int) -> None:
    if ctx.attempt == 1:
        raise ValueError


async def total(values: list[int]) -> int:
    return sum(values)


async def saga(ctx: Context) -> None:
    await ctx.step("first", lambda: 1)
    await ctx.wait_for("go", timeout_seconds=20)
    await ctx.step("second", lambda: 2)


def tasks(app: WorkerOrchestrator) -> dict[str, Worker[..., Any]]:
    """Register something of everything."""
    app.register_worker("fetch", nothing, interval_seconds=0.05)
    app.register_worker("process", nothing, interval_seconds=0.05, depends_on={"fetch": "fresh"})
    return {
        "one": app.task(name="one", blocks=["other"])(short),
        "other": app.task(name="other")(short),
        "alone": app.task(name="alone", max_running=1)(short),
        "keyed": app.task(name="keyed", concurrency_key="key")(keyed),
        "rated": app.task(name="rated", rate_limit="8/s")(short),
        "flaky": app.task(name="flaky", retry=Retry(delays=(0.01,)), max_retries=1)(flaky),
        "total": app.task(name="total")(total),
        "saga": app.task(name="saga")(saga),
        "plain": app.task(name="plain")(short),
    }


async def recorded_lines() -> list[AnyLine]:
    """Run the app until its jobs have ended, and return what was recorded."""
    kept = KeptLines()
    opened = Opened(time.monotonic(), VERSION, "app", 1, time.time())
    recorder = HistoryRecorder(kept)
    app = WorkerOrchestrator(store=RecordedStore(MemoryStore(), recorder), tick_interval=0.05)
    known = tasks(app)
    await app.start()
    await work(app, known)
    await disable_both(app)
    await app.stop()
    recorder.flush()
    lines = [decode(line) for text in kept.texts for line in text.splitlines()]
    return [opened, *lines, Expected(time.monotonic(), at_rest=True, until=time.time())]


async def disable_both(app: WorkerOrchestrator) -> None:
    """Disable the workers with a schedule, at a moment at which none of their jobs is left waiting."""
    while True:
        for name in SCHEDULED:
            await app.disable_worker(name)
        left = [job for name in SCHEDULED for job in await app.find_jobs(worker=name) if not job.over]
        if not left:
            return
        for name in SCHEDULED:
            await app.enable_worker(name)
        for job in left:
            await job.ended(30)


async def work(app: WorkerOrchestrator, known: dict[str, Worker[..., Any]]) -> None:
    """Add jobs of every kind, and wait until they have ended."""
    calls = [known["plain"].call(n=n) for n in range(3)]
    flow = await app.enqueue_flow(*calls, known["total"].call(values=[call.output for call in calls]))
    sagas = [await known["saga"].enqueue() for _ in range(2)]
    jobs = [
        await known[name].with_options(unique_key=f"{name}{n}").enqueue(n=n)
        for n in range(JOBS)
        for name in ("one", "other", "alone", "rated", "flaky")
    ]
    jobs += [await known["keyed"].enqueue(key=str(n % 2)) for n in range(JOBS)]
    for job in sagas:
        await app.send(job.id, "go", 1)
    for job in [*jobs, *sagas]:
        await job.ended(30)
    await flow.result(30)
