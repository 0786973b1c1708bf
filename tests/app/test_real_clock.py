"""The whole thing by the real clock: signals, SQLite over a restart, and several orchestrators on one store."""

import asyncio
import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from shiftwork import Context, JobStatus, StoreError, WorkerOrchestrator
from shiftwork.handles.worker import Worker
from shiftwork.store.memory import MemoryStore
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, started, worker_of

STORES = ["memory", "sqlite"]


@pytest.fixture
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of the kind under test, for this test alone."""
    return f"memory://{tmp_path.name}" if request.param == "memory" else f"sqlite:///{tmp_path}/shiftwork.db"


def store_threads() -> set[threading.Thread]:
    return {one for one in threading.enumerate() if one.name in {"shiftwork-reader", "shiftwork-writer"}}


async def test_a_with_block_opens_the_store_runs_nothing_and_closes_it(tmp_path: Path) -> None:
    of_other_tests = store_threads()
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shiftwork.db")

    @app.task
    async def double(n: int) -> int:
        return 2 * n

    with suppress(ZeroDivisionError):
        async with app as entered:
            assert entered is app
            assert store_threads() - of_other_tests
            job = await double.enqueue(n=4)
            raise ZeroDivisionError
    await eventually(lambda: store_threads() <= of_other_tests)  # however the block ended; threads end a little later
    async with app:
        assert (await app.get_job(job.id)).status == "queued"
        await app.start()
        assert await job.result(DEADLINE) == 8
    assert app.get_status()["state"] == "stopped"
    await eventually(lambda: store_threads() <= of_other_tests)
    with pytest.raises(StoreError, match="nowhere"):
        async with WorkerOrchestrator("sqlite:////nowhere/at/all.db"):
            raise AssertionError("a store that cannot be opened is found at once")


@pytest.mark.parametrize("url", STORES, indirect=True)
async def test_a_day_in_the_life(url: str) -> None:
    app = WorkerOrchestrator(url)
    seen: Counter[str] = Counter()
    all_seen = asyncio.Event()

    def note(name: str) -> None:
        seen[name] += 1
        if {"tick", "loop", "after"} <= seen.keys() and seen["loop"] >= 3:
            all_seen.set()

    @app.worker(interval_seconds=0.05)
    async def tick() -> None:
        note("tick")

    @app.worker(execution_mode="continuous")
    async def loop() -> None:
        note("loop")

    @app.worker(interval_seconds=0.05, depends_on=["tick"])
    async def after() -> None:
        note("after")

    @app.task()
    def double(n: int) -> int:
        return 2 * n

    @app.task(max_retries=0)
    async def bad() -> None:
        raise ValueError("no file \udcff.txt")

    async with started(app):
        jobs = await app.enqueue_many([double.call(n) for n in range(50)])
        assert [await job.result(DEADLINE) for job in jobs] == [2 * n for n in range(50)]
        dead = await bad.enqueue()
        assert await dead.ended(DEADLINE) is JobStatus.DEAD
        assert dead.error == "ValueError: no file \\udcff.txt"
        async with asyncio.timeout(DEADLINE):
            await all_seen.wait()
        later = await double.with_options(delay_seconds=0.1).enqueue(4)
        assert await later.result(DEADLINE) == 8
    assert app.get_status()["state"] == "stopped"


@pytest.mark.parametrize("url", STORES, indirect=True)
async def test_a_restart_forgets_nothing(url: str) -> None:
    def make() -> WorkerOrchestrator:
        app = WorkerOrchestrator(url)
        app.register_worker("work", lambda: "done", execution_mode="triggered")
        app.register_worker("other", lambda: None, execution_mode="triggered")
        return app

    first = make()
    job = await worker_of(first, "work").enqueue()
    await first.disable_worker("other", "for good")
    await first.close()
    second = make()
    async with started(second):
        assert await (await second.get_job(job.id)).result(DEADLINE) == "done"
        assert second.get_status()["worker_states"]["other"]["enabled"] is False


@pytest.mark.parametrize("url", STORES, indirect=True)
async def test_what_was_running_at_a_stop_runs_again_after_it(url: str) -> None:
    act = Act()

    def make() -> WorkerOrchestrator:
        app = WorkerOrchestrator(url)
        app.register_worker("act", act, execution_mode="triggered")
        return app

    first = make()
    async with started(first):
        job = await worker_of(first, "act").enqueue()
        await eventually(lambda: act.running == 1)
    assert act.cancelled == 1
    second = make()
    async with started(second):
        await eventually(lambda: act.running == 1)
        await act.finish("second time")
        assert await (await second.get_job(job.id)).result(DEADLINE) == "second time"


async def test_namespaces_do_not_meet(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shiftwork.db"
    apps = [WorkerOrchestrator(url, namespace=name) for name in ("a", "b")]
    tasks = [app.task(name="work")(lambda: None) for app in apps]
    await tasks[0].enqueue()
    assert [len(await app.find_jobs()) for app in apps] == [1, 0]
    for app in apps:
        await app.close()


async def test_three_orchestrators_share_the_work_and_each_job_runs_once() -> None:
    store = MemoryStore()
    runs: Counter[int] = Counter()
    apps = [WorkerOrchestrator(store, max_concurrent=3) for _ in range(3)]

    async def work(n: int) -> None:
        runs[n] += 1
        await asyncio.sleep(0)

    tasks = [app.task()(work) for app in apps]
    async with started(*apps):
        jobs = await apps[0].enqueue_many([tasks[0].call(n) for n in range(300)])
        for job in jobs:
            await job.result(DEADLINE)
    assert set(runs.values()) == {1}
    assert len(runs) == 300


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_stops_it_gracefully(number: signal.Signals) -> None:
    app = WorkerOrchestrator("memory://")
    ended: list[str] = []

    @app.task()
    async def work(ctx: Context) -> str:
        await eventually(lambda: ctx.stopping)
        ended.append("well")
        return "finished"

    job = await work.enqueue()
    running = asyncio.create_task(app.run())
    await eventually(lambda: app.get_status()["running"] == 1)
    os.kill(os.getpid(), number)
    async with asyncio.timeout(DEADLINE):
        await running
    assert ended == ["well"]
    assert (await job.refresh()).status is JobStatus.COMPLETED
    assert asyncio.get_running_loop().remove_signal_handler(number) is False


async def test_a_second_signal_means_now() -> None:
    app = WorkerOrchestrator("memory://")
    act = Act()
    worker = app.register_worker("act", act, execution_mode="triggered")
    job = await worker.enqueue()
    running = asyncio.create_task(app.run(stop_timeout_seconds=1000))
    await eventually(lambda: act.running == 1)
    os.kill(os.getpid(), signal.SIGTERM)
    await eventually(lambda: app.get_status()["state"] == "stopping")
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(DEADLINE):
        await running
    assert act.cancelled == 1
    assert (await job.refresh()).status is JobStatus.QUEUED


async def test_nothing_is_left_running_after_a_stop() -> None:
    before = {thread.name for thread in threading.enumerate()}
    tasks = asyncio.all_tasks()
    app = WorkerOrchestrator("memory://")

    @app.task()
    def plain() -> None: ...

    async with started(app):
        await (await plain.enqueue()).result(DEADLINE)
    assert asyncio.all_tasks() == tasks
    await eventually(lambda: {t.name for t in threading.enumerate()} - before <= {"asyncio_0", "asyncio_1"})


@pytest.mark.parametrize("url", STORES, indirect=True)
def test_one_orchestrator_may_live_on_several_loops_one_after_the_other(url: str) -> None:
    app = WorkerOrchestrator(url)

    @app.task()
    async def double(n: int) -> int:
        return 2 * n

    async def once(n: int) -> int:
        await app.start()
        job = await double.enqueue(n)
        result = await job.result(DEADLINE)
        await app.stop()
        return result

    async def between() -> int:
        jobs = await app.find_jobs()
        await app.close()
        return len(jobs)

    assert asyncio.run(once(1)) == 2
    assert double.enqueue_blocking(5).status is JobStatus.QUEUED
    assert asyncio.run(once(2)) == 4
    assert asyncio.run(between()) == 3


@pytest.mark.parametrize("url", STORES, indirect=True)
async def test_a_job_may_enqueue_others_and_wait_for_them(url: str) -> None:
    app = WorkerOrchestrator(url)

    @app.task()
    async def child(n: int) -> int:
        return n * n

    @app.task()
    async def parent(n: int) -> int:
        jobs = await app.enqueue_many([child.call(i) for i in range(n)])
        return sum([await job.result(DEADLINE) for job in jobs])

    async with started(app):
        assert await (await parent.enqueue(4)).result(DEADLINE) == 14


@pytest.mark.parametrize("url", STORES, indirect=True)
async def test_a_stop_right_after_a_start_and_an_enqueue_loses_nothing(url: str) -> None:
    runs: Counter[int] = Counter()

    def make() -> tuple[WorkerOrchestrator, Worker[[int], None]]:
        app = WorkerOrchestrator(url)

        @app.task()
        async def work(n: int) -> None:
            await asyncio.sleep(0)
            runs[n] += 1

        return app, work

    for n in range(10):
        app, work = make()
        await app.start()
        await work.enqueue(n)
        await app.stop(0)
        await app.close()
    app, work = make()
    async with started(app):
        for job in await app.find_jobs(worker="work"):
            assert await job.ended(DEADLINE) is JobStatus.COMPLETED
            assert job.attempt == 1
    assert len(runs) == 10
