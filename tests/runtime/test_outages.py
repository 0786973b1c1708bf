"""Durable functions while the store is away: they wait, and neither fail nor do anything twice."""

import asyncio
import logging
import threading
from typing import Any

import pytest

from shiftwork import Context, Job, JobStatus, StoreBusyError, StoreFullError, StoreUnavailableError, WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Hatch, Kind, Stage

CALLS = ["get", "keep_step", "extend"]
"""What a durable function calls of the store."""


class Order:
    """A durable function that uses all of its context, and what it has done."""

    def __init__(self, app: WorkerOrchestrator, *, plain: bool) -> None:
        self.done: list[str] = []
        self.packed = app.register_worker("pack", self.pack, execution_mode="triggered")
        self.worker = app.register_worker(
            "order",
            self.plainly if plain else self.awaited,
            execution_mode="triggered",
            timeout_seconds=None,
            max_retries=0,
        )

    async def pack(self, n: int) -> None:
        self.done.append(f"pack {n}")

    def note(self, what: str) -> str:
        self.done.append(what)
        return what.upper()

    async def awaited(self, ctx: Context) -> str:
        charged = await ctx.step("charge", self.note, "charge")
        await ctx.sleep(5)
        approvals = [await ctx.wait_for("approval") for _ in range(2)]
        await ctx.enqueue_flow(self.packed.call(n=1))
        await ctx.enqueue_flow(self.packed.call(n=1))
        return f"{charged} {approvals} {await ctx.step('ship', self.note, 'ship')}"

    def plainly(self, ctx: Context) -> str:
        charged = ctx.blocking.step("charge", self.note, "charge")
        ctx.blocking.sleep(5)
        approvals = [ctx.blocking.wait_for("approval") for _ in range(2)]
        ctx.blocking.enqueue_flow(self.packed.call(n=1))
        ctx.blocking.enqueue_flow(self.packed.call(n=1))
        return f"{charged} {approvals} {ctx.blocking.step('ship', self.note, 'ship')}"


async def over(stage: Stage, job: Job[Any], *, advance: float = 0.0) -> Job[Any]:
    """Wait until a job has ended, as a healthy process sees it, while the clock advances by itself."""

    async def ended() -> bool:
        await stage.clock.advance(advance)
        [record] = await stage.store.get([job.id])
        return record is None or not record.status.live

    await eventually(ended)
    return await job.refresh()


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("kind", ["before", "after"])
async def test_an_outage_costs_a_durable_function_nothing(stage: Stage, kind: Kind, *, plain: bool) -> None:
    app = stage.faulty_app(tick_interval=0.5)
    order = Order(app, plain=plain)
    await app.start()
    job = await order.worker.enqueue()
    for value in ("ann", "bob"):
        await app.send(job.id, "approval", value)
    for call in CALLS:
        for error in (StoreUnavailableError, StoreBusyError, StoreFullError):
            stage.faults.fail(call, kind=kind, error=error("away, says the test"), times=1)
    ended = await over(stage, job, advance=1.0)
    assert (ended.status, ended.attempt, ended.record.attempts) == (JobStatus.COMPLETED, 1, ())
    assert await ended.result(DEADLINE) == "CHARGE ['ann', 'bob'] SHIP"
    await eventually(lambda: order.done.count("pack 1") == 2, "both calls of the flow")
    assert sorted(order.done) == ["charge", "pack 1", "pack 1", "ship"]
    assert all(stage.faults.failed[call] == 3 for call in CALLS)


async def test_equal_calls_that_are_added_at_once_are_two_jobs(stage: Stage) -> None:
    app = stage.faulty_app()
    done: list[int] = []

    @app.task
    async def child(n: int) -> None:
        done.append(n)

    @app.task(max_retries=0)
    async def parent(ctx: Context) -> list[str]:
        added = await asyncio.gather(*(ctx.enqueue_flow(child.call(n=n)) for n in (1, 1, 2)))
        return [id for ids in added for id in ids]

    await app.start()
    reply = stage.faults.hold("extend")
    job = await parent.enqueue()
    await eventually(lambda: stage.faults.calls["extend"] >= 1, "the first call")
    reply.set()
    assert len(set(await (await over(stage, job, advance=1.0)).result(DEADLINE))) == 3
    await eventually(lambda: len(done) >= 3, "the children")
    assert sorted(done) == [1, 1, 2]
    assert len(await app.find_jobs()) == 4


async def test_a_sleep_ends_when_it_should_although_the_store_was_away_when_it_began(stage: Stage) -> None:
    app = stage.faulty_app()

    @app.task(max_retries=0, timeout_seconds=None)
    async def work(ctx: Context) -> None:
        await ctx.sleep(100)

    await app.start()
    began = stage.clock.now()
    stage.faults.fail("keep_step")
    job = await work.enqueue()
    await eventually(lambda: stage.faults.failed["keep_step"] >= 2, "a second try")
    await stage.clock.advance(8)
    stage.faults.clear()

    async def handed_back() -> bool:
        await stage.clock.advance(0.0)
        return (await job.refresh()).status is JobStatus.SCHEDULED

    await eventually(handed_back)
    assert job.run_at <= began + 101


async def test_an_outage_of_many_runs_is_one_line_in_the_log(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    app = stage.faulty_app(max_concurrent=5)

    @app.task(max_retries=0)
    async def work(ctx: Context, n: int) -> int:
        return await ctx.step("step", lambda: n)

    caplog.set_level(logging.INFO, "shiftwork")
    await app.start()
    stage.faults.fail("keep_step", times=15)
    jobs = [await work.enqueue(n=n) for n in range(5)]
    assert [await (await over(stage, job)).result(DEADLINE) for job in jobs] == [0, 1, 2, 3, 4]
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("store: ")]
    assert len(lines) == 2, lines
    assert "unavailable: the store is away" in lines[0]
    assert "back" in lines[1]


def stubborn(app: WorkerOrchestrator, *, plain: bool, calls: str, done: list[str]) -> Any:
    """A durable function that catches everything, and returns."""

    async def awaited(ctx: Context) -> str:
        try:
            await (ctx.step("step", done.append, "step") if calls == "keep_step" else ctx.enqueue_flow(other.call()))
        except BaseException as error:  # noqa: BLE001 - for the sake of the test
            done.append(type(error).__name__)
        return "returned"

    def plainly(ctx: Context) -> str:
        try:
            if calls == "keep_step":
                ctx.blocking.step("step", done.append, "step")
            else:
                ctx.blocking.enqueue_flow(other.call())
        except BaseException as error:  # noqa: BLE001 - for the sake of the test
            done.append(type(error).__name__)
        return "returned"

    async def nothing() -> None: ...

    other = app.register_worker("other", nothing, execution_mode="triggered")
    function: Any = plainly if plain else awaited
    return app.register_worker("work", function, execution_mode="triggered", timeout_seconds=30, max_retries=0)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("calls", ["keep_step", "extend"])
async def test_a_stop_during_an_outage_hands_the_job_back_though_the_function_catches_everything(
    stage: Stage, calls: str, *, plain: bool
) -> None:
    done: list[str] = []
    app = stage.faulty_app()
    work = stubborn(app, plain=plain, calls=calls, done=done)
    await app.start()
    stage.faults.fail(calls)
    job = await work.enqueue()
    await eventually(lambda: stage.faults.failed[calls] >= 2, "a second try")
    await stage.stop(app)
    await eventually(lambda: done[-1:] in (["CancelledError"], ["JobCancelledError"]), "the end of the wait")
    [record] = await stage.store.get([job.id])
    assert record is not None
    assert (record.status, record.attempt, record.attempts) == (JobStatus.QUEUED, 0, ())


async def test_a_thread_that_waits_for_a_silent_store_ends_when_it_is_told_to_stop(stage: Stage) -> None:
    """It must be gone when the job runs elsewhere; in a process pool, its process would be killed."""
    done: list[str] = []
    app = stage.faulty_app()
    work = stubborn(app, plain=True, calls="keep_step", done=done)
    await app.start()
    reply = stage.faults.hold("keep_step")
    await work.enqueue()
    await eventually(lambda: stage.faults.calls["keep_step"] == 1, "the call")
    await stage.stop(app)
    await eventually(lambda: done[-1:] == ["JobCancelledError"], "the end of the wait")
    assert not reply.is_set()


@pytest.mark.parametrize("plain", [False, True])
async def test_a_timeout_ends_a_run_that_waits_for_the_store(stage: Stage, clock: ManualClock, *, plain: bool) -> None:
    done: list[str] = []
    app = stage.faulty_app()
    work = stubborn(app, plain=plain, calls="keep_step", done=done)
    await app.start()
    stage.faults.fail("keep_step")
    job = await work.enqueue()
    await eventually(lambda: stage.faults.failed["keep_step"] >= 2, "a second try")
    await clock.advance(31)
    ended = await over(stage, job)
    assert ended.status is JobStatus.DEAD
    assert "timed out after 30 s" in str(ended.error)
    await eventually(lambda: len(done) == 2, "the end of the wait")


async def test_a_run_that_waits_when_its_lease_is_in_danger_ends_uncounted(stage: Stage, clock: ManualClock) -> None:
    app = stage.faulty_app()
    begun, entered = threading.Event(), Hatch()

    def slow() -> None:
        begun.set()
        entered.wait()

    @app.task(max_retries=0)
    def work(ctx: Context) -> str:
        ctx.blocking.step("slow", slow)
        return "done"

    await app.start()
    job = await work.enqueue()
    await entered.reached()
    stage.faults.fail()
    entered.open()
    await eventually(lambda: stage.faults.failed["keep_step"] >= 2, "a second try")
    await clock.advance(60)  # the lease is over
    stage.faults.clear()
    ended = await over(stage, job, advance=1.0)
    assert (ended.status, ended.attempt, await ended.result(DEADLINE)) == (JobStatus.COMPLETED, 1, "done")
