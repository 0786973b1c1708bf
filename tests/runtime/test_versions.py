"""Nodes of two versions of an app side by side: each job runs where its payload fits."""

from shiftwork import Context, JobStatus, WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import Act, Stage, status, worker_of


def old_version(stage: Stage) -> WorkerOrchestrator:
    app = stage.app(max_concurrent=2)

    @app.task
    async def resize(width: int) -> int:
        return width

    @app.task
    async def mail() -> str:
        return "sent"

    return app


def new_version(stage: Stage, act: Act) -> WorkerOrchestrator:
    """It has a worker that can keep its slot busy."""
    app = stage.app(max_concurrent=2)

    @app.task
    async def resize(width: int, *, crop: bool = False) -> int:
        return -width if crop else width

    @app.task(timeout_seconds=None)
    async def hold(ctx: Context) -> None:
        await act(ctx)

    return app


async def test_a_payload_of_the_new_version_waits_for_a_node_of_it(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    old, new = old_version(stage), new_version(stage, act)
    await old.start()
    await new.start()
    await worker_of(new, "hold").enqueue()
    await clock.advance(2)  # the plan gives each node a slot
    assert act.started == 1
    job = await worker_of(new, "resize").enqueue(width=3, crop=True)
    await until_idle()
    assert await status(job) is JobStatus.SCHEDULED
    plain = await worker_of(old, "resize").enqueue(width=5)
    mail = await worker_of(old, "mail").enqueue()
    await clock.advance(5)
    assert await status(job) is JobStatus.QUEUED  # the old node leaves it alone
    assert await status(mail) is JobStatus.COMPLETED  # and only this worker
    await clock.advance(60)
    assert await status(plain) is JobStatus.COMPLETED  # but not for long
    assert await status(job) in {JobStatus.SCHEDULED, JobStatus.QUEUED}
    assert [attempt.kind for attempt in job.history] == ["undecodable"]
    await act.finish()
    await clock.advance(40)
    assert await status(job) is JobStatus.COMPLETED
    assert (await job.result(1), job.attempt) == (-3, 1)


async def test_a_payload_that_fits_no_version_is_dead_once_each_has_refused_it(
    stage: Stage, clock: ManualClock
) -> None:
    old, new = old_version(stage), new_version(stage, Act())
    other = WorkerOrchestrator(stage.store, clock=clock)

    @other.task
    async def resize(size: str) -> None: ...

    await old.start()
    await new.start()
    job = await resize.enqueue("big")
    for _ in range(20):
        await clock.advance(1)
    assert await status(job) is JobStatus.DEAD
    assert "no live node has another version of the app" in (job.error or "")
    assert [attempt.kind for attempt in job.history] == ["undecodable", "undecodable"]


async def test_a_node_that_is_the_only_version_left_refuses_for_good(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    old, new = old_version(stage), new_version(stage, act)
    await old.start()
    await new.start()
    await worker_of(new, "hold").enqueue()
    await clock.advance(2)
    job = await worker_of(new, "resize").enqueue(width=3, crop=True)
    await clock.advance(1)
    assert await status(job) is not JobStatus.DEAD
    await stage.stop(new)
    await clock.advance(60)
    assert await status(job) is JobStatus.DEAD
    assert "unknown field" in (job.error or "")


async def test_a_job_that_no_version_could_begin_is_dead_at_once(stage: Stage, clock: ManualClock) -> None:
    old, new = old_version(stage), new_version(stage, Act())
    await old.start()
    await new.start()
    resize = worker_of(new, "resize")
    needed = resize.call(width=3)
    flow = await new.enqueue_flow(resize.with_options(delay_seconds=60).call(width=needed.output))
    await clock.advance(30)
    await new.discard_job(flow.jobs[0].id)
    await clock.advance(31)
    job = flow.jobs[1]
    assert await status(job) is JobStatus.DEAD
    assert (job.error or "").endswith("which it needs, is gone: enqueue the flow again")
