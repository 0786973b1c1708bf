"""Stopping is graceful: running work finishes, what is left is handed back, and a second order means now."""

import asyncio

import pytest

from shiftwork import Context, JobStatus, LifecycleError, StoreUnavailableError
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.node import stopping as store_patience
from shiftwork.runtime.node.stopping import StopBudget
from tests.runtime.stage import DEADLINE, Act, Hatch, Stage, node_of, status, statuses


async def test_running_work_finishes_within_the_grace(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app(max_concurrent=1)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    running, waiting = await app.enqueue_many([worker.call(), worker.call()])
    await until_idle()
    ctx = act.contexts[0]
    assert (ctx.stopping, ctx.cancelled) == (False, False)
    stopping = asyncio.create_task(app.stop())
    await clock.advance(20)
    assert app.get_status()["state"] == "stopping"
    assert (ctx.stopping, ctx.cancelled) == (True, False)
    await act.finish("well done")
    await stopping
    assert app.get_status()["state"] == "stopped"
    assert await running.result(DEADLINE) == "well done"
    assert await status(waiting) is JobStatus.QUEUED
    assert act.started == 1


async def test_the_grace_is_thirty_seconds_by_default(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    await worker.enqueue()
    await until_idle()
    stopping = asyncio.create_task(app.stop())
    await clock.advance(29.9)
    assert act.running == 1
    await clock.advance(0.1)
    assert act.cancelled == 1
    await stopping


async def test_after_the_grace_a_job_is_handed_back_uncounted(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    first, second = stage.app(), stage.app()
    worker = first.register_worker("act", act, execution_mode="triggered")
    second.register_worker("act", act, execution_mode="triggered")
    await first.start()
    job = await worker.enqueue()
    await until_idle()
    fence = act.contexts[0].fence
    await stage.stop(first, grace=2)
    assert await status(job) is JobStatus.QUEUED
    assert (job.attempt, job.crashes, job.history) == (0, 0, ())
    await second.start()
    await until_idle()
    assert (act.contexts[1].attempt, act.contexts[1].job_id) == (1, job.id)
    assert act.contexts[1].fence > fence
    await act.finish()
    assert await status(job) is JobStatus.COMPLETED


async def test_a_thread_is_handed_back_after_the_grace_and_delays_nothing_else(
    stage: Stage, clock: ManualClock
) -> None:
    app = stage.app()
    hatch = Hatch()

    @app.task(timeout_seconds=None)
    def long(ctx: Context) -> str:
        hatch.wait()
        return "nobody wants it any more"

    await app.start()
    job = await long.enqueue()
    await hatch.reached()
    await stage.stop(app, grace=2)
    assert await status(job) is JobStatus.QUEUED
    assert job.attempt == 0
    hatch.open()


async def test_a_thread_that_finishes_within_the_grace_has_finished(stage: Stage) -> None:
    app = stage.app()
    hatch = Hatch()

    @app.task()
    def long(ctx: Context) -> bool:
        hatch.wait()
        return ctx.stopping

    await app.start()
    job = await long.enqueue()
    await hatch.reached()
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    hatch.open()
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert await job.result(DEADLINE) is True


async def test_a_second_stop_means_now(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    stopping = asyncio.create_task(app.stop(1000))
    await until_idle()
    assert act.running == 1
    await app.stop()
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert act.cancelled == 1
    assert await status(job) is JobStatus.QUEUED


async def test_a_second_signal_that_comes_before_the_stop_has_begun_means_now_too(
    stage: Stage, clock: ManualClock
) -> None:
    """Both may wait for a busy event loop, which then handles them at once."""
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    node_of(app).hurry()
    job = await worker.enqueue()
    await until_idle()
    assert act.running == 1
    async with asyncio.timeout(DEADLINE):
        await app.stop(1000)
    assert act.cancelled == 1
    assert await status(job) is JobStatus.QUEUED


async def test_a_coroutine_that_does_not_listen_delays_a_stop_by_five_seconds(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    let_go = asyncio.Event()

    @app.task()
    async def stubborn() -> None:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue

    await app.start()
    job = await stubborn.enqueue()
    await until_idle()
    stopping = asyncio.create_task(app.stop(0))
    await clock.advance(4.9)
    assert not stopping.done()
    await clock.advance(0.1)
    await stopping
    assert await status(job) is JobStatus.QUEUED
    let_go.set()


async def test_what_a_claim_brings_while_stopping_is_handed_back_unstarted(stage: Stage) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await until_idle()
    answer = stage.faults.hold("claim")
    job = await worker.enqueue()
    await until_idle()
    assert await status(job) is JobStatus.PROCESSING
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    answer.set()
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert act.started == 0
    assert await status(job) is JobStatus.QUEUED
    assert job.attempt == 0


async def test_a_stop_without_a_store_gives_up_after_ten_seconds_and_loses_nothing(
    stage: Stage, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    act = Act()
    app, other = stage.faulty_app(), stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0)
    other.register_worker("act", act, execution_mode="triggered", max_retries=0)
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    stage.faults.fail()
    await act.finish()
    stopping = asyncio.create_task(app.stop())
    await clock.advance(9.9)
    assert not stopping.done()
    await clock.advance(0.2)
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert "cannot write 1 outcome; the jobs will run again" in caplog.text
    await other.start()
    await clock.advance(30)
    assert act.running == 1
    await act.finish("again")
    assert await (await other.get_job(job.id)).result(DEADLINE) == "again"


async def test_a_hurried_stop_leaves_nothing_behind_that_writes_on(stage: Stage) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await worker.enqueue()
    await until_idle()
    stage.faults.fail()
    await act.finish()
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    await app.stop()
    async with asyncio.timeout(DEADLINE):
        await stopping
    await until_idle()
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "shiftwork outbox"]


async def test_the_store_has_one_deadline_for_everything_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call fails before it is given up; together they must not take longer than one may."""
    monkeypatch.setattr(store_patience, "LAST_SECONDS", 0.5)
    monkeypatch.setattr(store_patience, "HURRIED_SECONDS", 0.01)
    done: list[int] = []

    async def fail_late(n: int) -> None:
        await asyncio.sleep(0.3)
        done.append(n)

    patience = StopBudget(0.0)
    patience.begin()
    for n in range(20):
        await patience.wait(fail_late(n), "this")
    assert done in ([], [0])


@pytest.mark.parametrize("running", [True, False])
async def test_a_stop_while_the_store_is_silent_ends_soon_after_the_last_run(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, *, running: bool
) -> None:
    """Not after the grace period, nor after each call in turn has been waited for."""
    monkeypatch.setattr(store_patience, "LAST_SECONDS", 0.5)
    monkeypatch.setattr(store_patience, "HURRIED_SECONDS", 0.01)
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    if running:
        await worker.enqueue()
        await until_idle()
    replies = [stage.faults.hold(method) for method in ("finish", "claim", "beat", "find", "leave", "drop", "put")]
    await clock.advance(5)  # some of them are under way
    stopping = asyncio.create_task(app.stop(2 * DEADLINE))
    await until_idle()
    if running:
        await act.finish()
    await stage.during(stopping)
    for reply in replies:
        reply.set()


async def test_stopping_twice_or_before_starting_is_harmless(stage: Stage) -> None:
    app = stage.app()
    await app.stop()
    await app.start()
    await app.stop()
    await app.stop()
    names = [event.name for event in await app.events()]
    assert names == ["leader.elected", "node.started", "node.stopped"]


async def test_an_orchestrator_can_be_started_again(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def work() -> int:
        return 7

    for _ in range(3):
        await app.start()
        assert await (await work.enqueue()).result(DEADLINE) == 7
        await app.stop()


async def test_a_second_start_changes_nothing_even_at_the_same_time(stage: Stage) -> None:
    app = stage.app()
    await asyncio.gather(app.start(), app.start())
    (node,) = await app.nodes()
    await app.start()
    assert [one.name for one in await app.nodes()] == [node.name]
    assert app.get_status()["state"] == "running"


async def test_a_start_while_it_stops_is_refused(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await worker.enqueue()
    await until_idle()
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    with pytest.raises(LifecycleError, match="is stopping"):
        await app.start()
    await act.finish()
    await stopping


@pytest.mark.parametrize("method", ["open", "docs", "survey", "hold", "instances"])
async def test_a_start_that_fails_leaves_it_stopped_and_can_be_repeated(stage: Stage, method: str) -> None:
    app = stage.faulty_app()
    stage.faults.fail(method, times=1)

    @app.task()
    async def work() -> int:
        return 7

    with pytest.raises(StoreUnavailableError):
        await app.start()
    assert app.get_status()["state"] == "stopped"
    await app.start()
    assert await (await work.enqueue()).result(DEADLINE) == 7


async def test_registering_and_closing_wait_until_it_is_stopped(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act)
    await app.start()
    await until_idle()
    with pytest.raises(LifecycleError, match="stop it"):
        await app.close()
    stopping = asyncio.create_task(app.stop())
    await until_idle()
    with pytest.raises(LifecycleError, match="worker late cannot be registered while the orchestrator is stopping"):
        app.register_worker("late", lambda: None)
    with pytest.raises(LifecycleError, match="pool late"):
        app.register_pool("late")
    await act.finish()
    await stopping
    app.register_worker("late", lambda: None)


async def test_a_stop_without_patience_needs_no_time_to_pass(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act)
    await app.start()
    await until_idle()
    async with asyncio.timeout(DEADLINE):
        await app.stop(0)  # nothing moves the clock
    assert act.cancelled == 1
    assert [job.status for job in await app.find_jobs()] == [JobStatus.QUEUED]


async def test_nothing_is_left_behind_by_a_stop(stage: Stage) -> None:
    before = asyncio.all_tasks()
    app = stage.app()
    app.register_worker("w", lambda: None)
    await app.start()
    await until_idle()
    await app.stop()
    await until_idle()
    assert asyncio.all_tasks() == before
    assert await stage.store.instances() == []
    assert stage.topics() == []


async def test_several_jobs_at_once_are_all_given_their_time(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = await app.enqueue_many([worker.call() for _ in range(4)])
    await until_idle()
    stopping = asyncio.create_task(app.stop(10))
    await act.finish()
    await clock.advance(5)
    await act.finish()
    await clock.advance(5)
    async with asyncio.timeout(DEADLINE):
        await stopping
    assert sorted(await statuses(jobs)) == ["completed", "completed", "queued", "queued"]
