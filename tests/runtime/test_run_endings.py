"""A run ends once. Only what drains hands a job back, and a job that comes back over and over is stopped."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from shiftwork import Context, JobStatus, WorkerOrchestrator
from shiftwork.core.jobs.retry import HAND_BACK_LIMIT, End, EndKind
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.context.current_run import ContextServices
from shiftwork.runtime.running.job_run import Run
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, Stage, node_of, status, worker_of

if TYPE_CHECKING:
    from shiftwork.core.model.event import Event

# ── modes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [GeneratorExit, KeyboardInterrupt, SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("mode", ["scheduled", "continuous"])
@pytest.mark.parametrize("plain", [True, False], ids=["def", "async def"])
async def test_a_loop_or_a_schedule_that_raises_anything_is_stopped_by_its_failures(
    stage: Stage, clock: ManualClock, mode: Any, error: type[BaseException], *, plain: bool
) -> None:
    runs: list[int] = []

    def fail() -> None:
        runs.append(1)
        raise error

    async def fail_in_coroutine() -> None:
        fail()

    app = stage.app()
    options: dict[str, Any] = {"interval_seconds": 1} if mode == "scheduled" else {}
    function = fail if plain else fail_in_coroutine
    app.register_worker("w", function, execution_mode=mode, max_retries=0, max_consecutive_failures=3, **options)
    await app.start()

    async def disabled() -> bool:
        await clock.advance(0.5)
        return not app.get_status()["worker_states"]["w"]["enabled"]

    await eventually(disabled)
    assert len(runs) == 3
    assert [job.status for job in await app.find_jobs(worker="w", status="dead")] == [JobStatus.DEAD] * 3


# ── what our own code asks of the user's ─────────────────────────────────────────────────────────────────────────────


class Unreadable:
    """A payload's type that fails when the job runs, not when it is enqueued."""

    armed: type[BaseException] | None = None

    @classmethod
    def model_validate(cls, _value: Any) -> "Unreadable":
        if cls.armed is not None:
            raise cls.armed
        return cls()

    def model_dump(self, mode: str) -> str:
        return mode


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit, asyncio.CancelledError, RecursionError, ValueError])
@pytest.mark.parametrize("plain", [True, False], ids=["def", "async def"])
async def test_an_argument_that_cannot_be_made_ends_the_run(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], *, plain: bool
) -> None:
    app = stage.app(max_concurrent=1)

    def read(value: Unreadable) -> None: ...
    async def read_in_coroutine(value: Unreadable) -> None: ...

    worker = app.task(max_retries=0)(read if plain else read_in_coroutine)
    job = await worker.enqueue(Unreadable())
    monkeypatch.setattr(Unreadable, "armed", error)
    await app.start()
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert job.error
    assert job.attempt == 1
    assert app.get_status()["running"] == 0


class FullDisk(logging.Handler):
    """A log handler of the user's that does not catch its own errors."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.asked = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.asked += 1
        message = "the disk of the log is full, says the test"
        raise OSError(message)


async def test_a_log_handler_that_raises_loses_no_outcome(stage: Stage, tolerated: list[str]) -> None:
    tolerated.append("")  # which lines there are is not the point
    app = stage.app(max_concurrent=1)

    @app.task(max_retries=0)
    async def fail() -> None:
        raise ValueError("wrong")

    await app.start()
    logger, handler = logging.getLogger("shiftwork"), FullDisk()
    logger.addHandler(handler)
    try:
        first, second = await app.enqueue_many([fail.call(), fail.call()])
        assert await first.ended(DEADLINE) is JobStatus.DEAD
        assert await second.ended(DEADLINE) is JobStatus.DEAD
        await until_idle()
        assert handler.asked
        assert node_of(app).reporter.rejected == 0, "nothing is written twice"
    finally:
        logger.removeHandler(handler)


async def test_an_exception_that_is_set_on_a_thread_from_outside_costs_no_slot(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tolerated: list[str]
) -> None:
    """As `PyThreadState_SetAsyncExc` does, at a moment when our own code runs in the thread."""
    tolerated.append("went on after an exception that is not its own")
    app = stage.app(max_concurrent=1)

    @app.task(max_retries=0)
    def work() -> int:
        return 7

    def interrupted(_run: Run, _services: ContextServices) -> End:
        raise SystemExit

    await app.start()
    with monkeypatch.context() as patch:
        patch.setattr("shiftwork.runtime.running.local_runner.run_sync", interrupted)
        job = await work.enqueue()
        assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert job.error == "SystemExit"
    assert await (await work.enqueue()).result(DEADLINE) == 7


# ── handing back ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def drained(_run: Run, _services: ContextServices) -> End:
    return End(EndKind.DRAINED)


async def test_a_job_that_comes_back_over_and_over_is_stopped_and_says_why(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftwork.runtime.running.local_runner.run_async", counting := Counting(drained))
    heard: list[Event] = []
    app = stage.app()
    app.on("job.dead", heard.append)
    worker = app.register_worker("w", Act(), execution_mode="triggered", max_consecutive_failures=1)
    await app.start()
    job = await worker.enqueue()
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert counting.calls == HAND_BACK_LIMIT + 1
    assert job.error is not None
    assert job.error.startswith("stopped: it started 11 times within a minute and was handed back each time")
    assert "then retry the job" in job.error
    assert job.attempt == 0
    await until_idle()
    assert [event.subject for event in heard] == [job.id]
    assert app.get_status()["worker_states"]["w"]["enabled"], "the worker may be innocent"


class Counting:
    """Counts the calls of a function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.calls = 0
        self._function = function

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        return self._function(*args)


async def test_a_job_that_comes_back_now_and_then_continues(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slowly(run: Run, services: ContextServices) -> End:
        slept = asyncio.Event()
        clock.call_in(7, slept.set)
        await slept.wait()
        return await drained(run, services)

    monkeypatch.setattr("shiftwork.runtime.running.local_runner.run_async", counting := Counting(slowly))
    app = stage.app()
    worker = app.register_worker("w", Act(), execution_mode="triggered", timeout_seconds=None)
    await app.start()
    job = await worker.enqueue()
    for _ in range(60):
        await clock.advance(3.5)
    assert counting.calls > 2 * HAND_BACK_LIMIT
    assert (await status(job)).live


async def test_a_deploy_that_moves_a_job_from_node_to_node_stops_nothing(stage: Stage, clock: ManualClock) -> None:
    act = Act()

    def make() -> WorkerOrchestrator:
        app = stage.app()
        app.register_worker("w", act, execution_mode="triggered")
        return app

    nodes = [make() for _ in range(HAND_BACK_LIMIT + 3)]
    job = await worker_of(nodes[0], "w").enqueue()
    began = clock.now()
    for number, node in enumerate(nodes, 1):
        await node.start()
        await eventually(lambda number=number: act.started == number)  # type: ignore[misc]
        await stage.stop(node)
    assert clock.now() - began < 60
    assert await status(job) is JobStatus.QUEUED
    assert job.attempt == 0


async def test_a_lease_that_is_lost_again_and_again_stops_nothing(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("w", act, execution_mode="triggered")
    await app.start()
    (instance,) = node_of(app).instances
    job = await worker.enqueue()
    for number in range(1, HAND_BACK_LIMIT + 4):
        await eventually(lambda number=number: act.started == number)  # type: ignore[misc]
        instance.step_down(lost=False)
        await until_idle()
        instance.renewed(1e9)
    assert (await status(job)).live
    assert job.error is None


@pytest.mark.parametrize("returns", [True, False], ids=["and returns", "and waits"])
async def test_a_function_that_cancels_its_own_task_has_failed(stage: Stage, *, returns: bool) -> None:
    runs: list[int] = []
    app = stage.app(max_concurrent=1)

    @app.task(max_retries=0)
    async def give_up(ctx: Context) -> None:
        runs.append(ctx.attempt)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        if not returns:
            await asyncio.Event().wait()

    await app.start()
    job = await give_up.enqueue()
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert job.error == "the function was cancelled from inside"
    assert runs == [1]
