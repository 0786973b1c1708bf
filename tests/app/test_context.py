"""The context: what a running function may know and say."""

import logging
import threading
from typing import Any

import pytest

from shiftwork import Context, JobPriority, JobStatus, WorkerConfig
from shiftwork.handles.job import JobProgress
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, Hatch, Stage, status


async def running_context(stage: Stage, act: Act, **options: Any) -> Context:
    app = stage.app()
    app.register_worker("fetch-data", act, **options)
    await app.start()
    await until_idle()
    return act.contexts[0]


async def test_it_knows_its_job_and_its_worker(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    ctx = await running_context(stage, act, interval_seconds=60, timeout_seconds=30, priority=JobPriority.HIGH)
    assert ctx.job_id == "fetch-data@first"
    assert (ctx.attempt, ctx.cancelled, ctx.stopping) == (1, False, False)
    assert ctx.deadline == clock.now() + 30
    assert isinstance(ctx.worker, WorkerConfig)
    assert ctx.worker.name == "fetch-data"
    assert repr(ctx) == "<Context of job fetch-data@first, attempt 1 of worker fetch-data>"


async def test_it_has_every_field_of_the_configuration(stage: Stage) -> None:
    act = Act()
    ctx = await running_context(stage, act, interval_seconds=60, timeout_seconds=30, depends_on=[])
    for field in WorkerConfig.__struct_fields__:
        assert getattr(ctx, field) == getattr(ctx.worker, field)
    assert (ctx.name, ctx.timeout_seconds, ctx.interval_seconds) == ("fetch-data", 30, 60)
    with pytest.raises(AttributeError, match="Context has no attribute 'nmae'"):
        _ = ctx.nmae


async def test_the_fence_only_grows(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=2)
    await app.start()
    await worker.enqueue()
    await until_idle()
    await act.fail()
    await clock.advance(10)
    await act.fail()
    await worker.enqueue()
    await clock.advance(20)
    fences = [ctx.fence for ctx in act.contexts]
    assert len(fences) == 4
    assert fences == sorted(set(fences))
    assert [ctx.attempt for ctx in act.contexts if ctx.job_id == act.contexts[0].job_id] == [1, 2, 3]


async def test_progress_is_kept_newest_first_a_few_times_a_second(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.faulty_app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    for done in range(100):
        act.contexts[0].progress(done, 100, f"{done} of 100")
    await clock.advance(0.15)
    assert (await job.refresh()).progress is None
    await clock.advance(0.05)
    assert (await job.refresh()).progress == JobProgress(99, 100, "99 of 100", clock.now() - 0.2)
    assert stage.faults.calls["note"] == 1
    act.contexts[0].progress(100)
    await clock.advance(0.2)
    progress = (await job.refresh()).progress
    assert progress is not None
    assert (progress.done, progress.total, progress.message) == (100, None, None)
    await act.finish()


async def test_the_last_progress_before_the_end_is_kept(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0)
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    act.contexts[0].progress(7, 10, "then it broke")
    await act.fail()
    await clock.advance(1)
    progress = (await job.refresh()).progress
    assert progress is not None
    assert progress.message == "then it broke"


async def test_progress_may_come_from_a_thread(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    hatch = Hatch()

    @app.task()
    def work(ctx: Context) -> None:
        ctx.progress(1, 2)
        hatch.wait()

    await app.start()
    job = await work.enqueue()
    await hatch.reached()
    await clock.advance(0.5)
    assert (await job.refresh()).progress is not None
    hatch.open()
    await job.result(DEADLINE)


@pytest.mark.parametrize("bad", ["half", None, [1]])
async def test_progress_that_is_not_a_number_is_the_functions_own_error(stage: Stage, bad: Any) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def work(ctx: Context) -> None:
        ctx.progress(bad)

    await app.start()
    job = await work.enqueue()
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert (job.error or "").startswith(("TypeError", "ValueError"))


async def test_a_heartbeat_says_nothing_until_it_is_told_to_stop(stage: Stage) -> None:
    act = Act()
    ctx = await running_context(stage, act)
    ctx.heartbeat()
    await stage.apps[0].cancel_job(ctx.job_id)
    await until_idle()
    with pytest.raises(Exception, match="job fetch-data@first of fetch-data was told to stop"):
        ctx.heartbeat()


async def test_its_logger_carries_the_job(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    act = Act()
    ctx = await running_context(stage, act)
    with caplog.at_level(logging.INFO):
        ctx.logger.info("resizing")
    record = caplog.records[-1]
    assert (record.name, record.getMessage()) == ("shiftwork.worker.fetch-data", "resizing")
    assert vars(record)["job_id"] == "fetch-data@first"
    assert (vars(record)["worker"], vars(record)["attempt"]) == ("fetch-data", 1)


async def test_a_stopping_process_says_so_to_threads_too(stage: Stage) -> None:
    app = stage.app()
    begun, ended = threading.Event(), []

    @app.task(timeout_seconds=None)
    def until_stopping(ctx: Context) -> str:
        begun.set()
        waited = threading.Event()
        while not ctx.stopping:
            waited.wait(0.001)
        ended.append(ctx.cancelled)
        return "ended early and well"

    await app.start()
    job = await until_stopping.enqueue()
    await eventually(begun.is_set)
    await app.stop()
    assert ended == [False]
    assert await status(job) is JobStatus.COMPLETED
