"""Where lives cross: a stop that is cut off, a worker that moved, two who trigger at once, a store closed too early."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shiftwork import JobStatus, LifecycleError, WorkerOrchestrator
from shiftwork.core.model.event import Event
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.store.urls import open_store
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, Faults, FaultyStore, Stage, started, status, worker_of

# ── a stop that is cut off, or comes from an odd place ───────────────────────────────────────────────────────────────


async def test_a_stop_that_is_cancelled_still_hands_back_what_runs_and_leaves(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    stopping = asyncio.create_task(app.stop(30))
    await until_idle()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stage.during(stopping, longest=5)
    assert app.get_status()["state"] == "stopped"
    assert (act.cancelled, await stage.store.instances()) == (1, [])
    assert await status(job) is JobStatus.QUEUED
    await app.start()
    await until_idle()
    await act.finish("second life")
    assert await job.result(DEADLINE) == "second life"


async def test_a_stop_that_is_cancelled_while_the_store_closes_says_so(stage: Stage) -> None:
    app = stage.faulty_app()
    app.register_worker("act", Act(), execution_mode="triggered")
    await app.start()
    closed = stage.faults.hold("close")
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    assert stage.faults.calls["close"] == 1
    stopping.cancel()
    await until_idle()
    closed.set()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert app.get_status()["state"] == "stopped"


async def test_nothing_of_an_orchestrator_continues_after_a_cancelled_stop(tmp_path: Path) -> None:
    act = Act()
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shiftwork.db")
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    before = asyncio.all_tasks()
    await app.start()
    await worker.enqueue()
    await eventually(lambda: act.running == 1)
    stopping = asyncio.create_task(app.stop(30))
    await until_idle()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(DEADLINE):
            await stopping
    await until_idle()
    assert asyncio.all_tasks() == before
    assert await (await app.control.store.open()).instances() == []
    await app.close()


async def test_a_job_cannot_wait_for_the_stop_that_would_wait_for_it(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def leave() -> None:
        await app.stop(0.5)

    await app.start()
    job = await leave.enqueue()
    assert await stage.during(job.ended(DEADLINE)) is JobStatus.DEAD
    assert "stop() inside a job would deadlock" in (job.error or "")
    assert app.get_status()["state"] == "running"


async def test_a_job_may_start_a_stop_as_a_task_of_its_own(stage: Stage) -> None:
    app = stage.app()
    stops: list[asyncio.Task[None]] = []

    @app.task()
    async def leave() -> str:
        stops.append(asyncio.create_task(app.stop()))
        return "left"

    await app.start()
    job = await leave.enqueue()
    await until_idle()
    await stage.during(stops[0])
    assert app.get_status()["state"] == "stopped"
    assert await job.result(DEADLINE) == "left"


async def test_every_start_returns_when_it_runs_also_after_one_that_failed(stage: Stage) -> None:
    app = stage.faulty_app()
    app.register_worker("act", Act(), execution_mode="triggered")
    gate = stage.faults.hold("open")
    stage.faults.fail("docs", times=1, error=RuntimeError("no definitions"))
    starts = [asyncio.create_task(app.start()) for _ in range(3)]
    await until_idle()
    second = stage.faults.hold("server_time")
    gate.set()
    with pytest.raises(RuntimeError, match="no definitions"):
        await starts[0]
    await until_idle()
    assert [start.done() for start in starts[1:]] == [False, False]
    second.set()
    await stage.during(asyncio.gather(*starts[1:]))
    assert app.get_status()["state"] == "running"


def test_a_program_whose_event_loop_ends_while_the_app_runs_learns_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shop.db")
    app.register_worker("act", Act(), execution_mode="triggered")
    asyncio.run(app.start())
    (report,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "the event loop ends while the orchestrator runs" in report
    assert "await app.run()" in report
    with pytest.raises(LifecycleError, match=r"is closed, so nothing runs; await app\.stop\(\) first"):
        asyncio.run(app.start())
    asyncio.run(app.stop())
    caplog.clear()

    async def whole() -> None:
        await app.start()
        await app.stop()

    asyncio.run(whole())
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_stop_during_the_start_waits_for_it_and_then_stops(stage: Stage) -> None:
    app = stage.faulty_app()
    app.register_worker("act", Act(), execution_mode="triggered")
    gate = stage.faults.hold("server_time")
    starting = asyncio.create_task(app.start())
    await until_idle()
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    assert (starting.done(), stopping.done()) == (False, False)
    gate.set()
    await stage.during(asyncio.gather(starting, stopping))
    assert app.get_status()["state"] == "stopped"
    assert await stage.store.instances() == []


async def test_a_stop_during_a_start_that_fails_returns(stage: Stage) -> None:
    app = stage.faulty_app()
    app.register_worker("act", Act(), execution_mode="triggered")
    gate = stage.faults.hold("open")
    stage.faults.fail("docs", error=RuntimeError("no definitions"))
    starting = asyncio.create_task(app.start())
    await until_idle()
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    assert not stopping.done()
    gate.set()
    with pytest.raises(RuntimeError, match="no definitions"):
        await starting
    await stage.during(stopping)
    assert app.get_status()["state"] == "stopped"


async def test_a_hook_may_stop_the_orchestrator_that_calls_it(stage: Stage) -> None:
    app = stage.app()
    stopped: list[str] = []

    @app.task(max_retries=0, max_consecutive_failures=1)
    async def bad() -> None:
        raise ValueError("bad")

    @app.on("worker.disabled")
    async def give_up(event: Event) -> None:
        await app.stop(1)
        stopped.append(app.get_status()["state"])

    await app.start()
    await bad.enqueue()
    await until_idle()
    await stage.clock.advance(5)
    assert stopped == ["stopped"]


async def test_callers_that_wait_for_a_result_hear_when_the_store_is_closed(tmp_path: Path) -> None:
    faults = Faults()
    store: Any = FaultyStore(open_store(f"sqlite:///{tmp_path}/shiftwork.db", namespace="a"), faults)
    app = WorkerOrchestrator(store)

    @app.task()
    async def later() -> None: ...

    async with started(app):
        job = await later.with_options(delay_seconds=600).enqueue()
        waiting = asyncio.create_task(job.result())
        await eventually(lambda: faults.calls["get"] > 0)
    with pytest.raises(LifecycleError, match=f"the store was closed while waiting for job {job.id} of later"):
        async with asyncio.timeout(DEADLINE):
            await waiting


# ── a worker that moved to another pool ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("old", "new"), [("default", "mail"), ("mail", "default")])
async def test_jobs_left_in_the_pool_that_a_worker_has_moved_from_run(stage: Stage, old: str, new: str) -> None:
    def make(pool: str) -> WorkerOrchestrator:
        app = stage.app()
        if pool != "default":
            app.register_pool(pool)
        app.register_worker("send", lambda: None, execution_mode="triggered", pool=pool)
        app.register_worker("first", lambda: None, execution_mode="triggered", blocks=["send"])
        return app

    left = await worker_of(make(old), "send").enqueue()
    second = make(new)
    await second.start()
    first = await worker_of(second, "first").enqueue()
    sent = await worker_of(second, "send").enqueue()
    for job in (left, first, sent):
        assert await stage.during(job.ended(DEADLINE), longest=20) is JobStatus.COMPLETED
    assert ((await left.refresh()).pool, (await sent.refresh()).pool) == (old, new)


async def test_a_schedule_continues_in_the_pool_that_its_worker_has_moved_to(stage: Stage, clock: ManualClock) -> None:
    ran: list[str] = []

    def make(pool: str) -> WorkerOrchestrator:
        app = stage.app()
        app.register_pool("mail")
        app.register_worker("tick", lambda: ran.append(pool), interval_seconds=1, pool=pool)
        return app

    first = make("default")
    await first.start()
    await first.pause_pool("default")
    await clock.advance(3)
    await stage.stop(first)
    await first.resume_pool("default")
    ran.clear()
    second = make("mail")
    await second.start()

    async def thrice() -> None:
        await eventually(lambda: len(ran) >= 3, "the third run")

    await stage.during(thrice())
    assert set(ran) == {"mail"}
    assert {job.pool for job in await second.find_jobs(status=["queued", "scheduled"])} <= {"mail"}


# ── triggering ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_of_callers_that_trigger_a_worker_at_once_one_succeeds(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, cron="0 0 1 1 *")
    await app.start()
    triggered = asyncio.gather(*(app.trigger_worker("act") for _ in range(3)))
    await until_idle()
    assert (act.started, act.most) == (1, 1)
    await act.finish()
    async with asyncio.timeout(DEADLINE):
        assert await triggered == [True, False, False]
    again = asyncio.create_task(app.trigger_worker("act"))
    await until_idle()
    await act.finish()
    async with asyncio.timeout(DEADLINE):
        assert await again


async def test_a_worker_is_triggered_here_if_processes_that_serve_its_pool_do_not_know_it(stage: Stage) -> None:
    act = Act()
    there, here = stage.app(), stage.app()
    there.register_worker("other", Act(), execution_mode="triggered")
    here.register_worker("act", act, interval_seconds=9999)
    await there.start()
    triggered = asyncio.create_task(here.trigger_worker("act"))
    await until_idle()
    await stage.clock.advance(1)
    assert act.running == 1
    await act.finish()
    assert await stage.during(triggered) is True


async def test_a_job_whose_worker_is_unknown_there_is_unserved(stage: Stage) -> None:
    there, here = stage.app(), stage.app()
    there.register_worker("other", Act(), execution_mode="triggered")
    worker = here.register_worker("act", Act(), execution_mode="triggered")
    await there.start()
    job = await worker.enqueue()
    assert "no running process has worker act in pool default" in (await here.explain_job(job.id)).text


async def test_a_job_of_a_pool_at_zero_says_that_a_node_starts_a_slot(stage: Stage) -> None:
    app = stage.app()
    app.register_pool("seldom", min_workers=0)
    worker = app.register_worker("act", Act(), execution_mode="triggered", pool="seldom")
    await app.start()
    job = await worker.enqueue()
    assert "waits: pool seldom has no slots yet; a node starts one" in (await app.explain_job(job.id)).text
    await app.stop()
    assert "no running process has worker act in pool seldom" in (await app.explain_job(job.id)).text


# ── damage ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_schedule_survives_a_job_that_cannot_be_read(tmp_path: Path) -> None:
    ran: list[int] = []
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shiftwork.db")
    app.register_worker("tick", lambda: ran.append(1), interval_seconds=0.05)

    def damage() -> None:
        with closing(sqlite3.connect(tmp_path / "shiftwork.db", timeout=DEADLINE)) as database, database:
            assert database.execute("UPDATE jobs SET cause = x'00ff' WHERE status = 3").rowcount == 1

    async with started(app):
        await eventually(lambda: len(ran) > 0, "the first run")
        await app.pause_pool("default")
        async with asyncio.timeout(DEADLINE):
            while not await app.find_jobs(status="queued"):
                await until_idle()
        damage()
        ran.clear()
        await app.resume_pool("default")
        await eventually(lambda: len(ran) >= 3, "the third run")
        dead = await app.find_jobs(status="dead")
        assert [job.error for job in dead] == ["unreadable: text that is not valid UTF-8"]
