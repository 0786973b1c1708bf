"""The testing kit: an app on an empty store and a clock of its own, whose jobs run when the test says so."""

import asyncio
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pytest_shiftwork import shiftwork_test
from shiftwork import (
    Context,
    FlowFailure,
    JobFailedError,
    JobStateError,
    JobStatus,
    LifecycleError,
    Retry,
    WorkerOrchestrator,
)
from shiftwork.testing import Bench, make_context

__all__ = ["shiftwork_test"]


@pytest.fixture
def app(tmp_path: Path) -> WorkerOrchestrator:
    """An app whose own store nothing may touch: it cannot even be opened."""
    return WorkerOrchestrator(f"sqlite:///{tmp_path / 'no such folder' / 'shop.db'}")


# ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_handles_of_an_app_under_test_use_an_empty_store_that_is_gone_afterwards(
    app: WorkerOrchestrator,
) -> None:
    @app.task
    async def double(n: int) -> int:
        return 2 * n

    urgent = double.with_options(unique_key="one")
    real = app.control
    async with app.testing() as test:
        first = await double.enqueue(n=2)
        await urgent.enqueue(n=3)
        assert [(run.worker, run.result, run.status) for run in await test.run_pending()] == [
            ("double", 4, JobStatus.COMPLETED),
            ("double", 6, JobStatus.COMPLETED),
        ]
        assert await first.result(0) == 4
        assert await test.run_pending() == []
        assert app.get_status()["worker_states"]["double"]["last_success"] == test.clock.now()
    async with app.testing():
        assert await app.find_jobs() == []
    assert app.control is real
    assert app.get_status()["worker_states"]["double"]["last_success"] is None


@pytest.mark.parametrize("kind", ["async", "thread", "process"])
async def test_jobs_of_every_kind_of_pool_run_here(app: WorkerOrchestrator, kind: Any) -> None:
    app.register_pool("p", kind=kind, min_workers=0, max_workers=3)

    def where(n: int) -> str:
        return f"{n} {threading.current_thread() is threading.main_thread()}"

    task = app.task(name="where", pool="p")(where)
    async with app.testing() as test:
        await app.enqueue_many([task.call(n=n) for n in range(5)])
        assert sorted(run.result for run in await test.run_pending()) == [f"{n} False" for n in range(5)]


async def test_jobs_that_jobs_enqueue_run_too(app: WorkerOrchestrator) -> None:
    @app.task
    async def count_down(n: int) -> int:
        if n:
            await count_down.enqueue(n=n - 1)
        return n

    async with app.testing() as test:
        await count_down.enqueue(n=3)
        assert [run.result for run in await test.run_pending()] == [3, 2, 1, 0]


async def test_a_job_that_enqueues_itself_forever_is_named(
    app: WorkerOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftwork.app.testing.MOST_RUNS", 20)

    @app.task
    async def again() -> None:
        await again.enqueue()

    async with app.testing() as test:
        await again.enqueue()
        with pytest.raises(LifecycleError, match="the last of again: does a job enqueue itself"):
            await test.run_pending()


async def test_a_function_that_does_not_end_is_named_and_handed_back(
    app: WorkerOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftwork.app.testing.LONGEST_STEP_SECONDS", 0.3)

    @app.task
    async def hang() -> None:
        await asyncio.Event().wait()

    async with app.testing() as test:
        job = await hang.enqueue()
        with pytest.raises(LifecycleError, match=f"1 job did not end within 0.3 s.*{job.id} of hang"):
            await test.run_pending()
        assert (await job.refresh()).status is JobStatus.QUEUED


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_failing_job_shows_its_exception_and_is_retried_as_time_passes(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=2, retry=Retry(base_seconds=60, factor=2, jitter=0))
    def flaky(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ConnectionError(ctx.attempt)
        return ctx.attempt

    async with app.testing() as test:
        await flaky.enqueue()
        (run,) = await test.run_pending()
        assert (run.status, run.error) == (JobStatus.FAILED, "ConnectionError: 1")
        assert isinstance(run.exception, ConnectionError)
        assert await test.advance("59s") == []
        began = test.clock.now()
        runs = await test.advance(minutes=10)
        assert [(run.attempt, run.status, run.result) for run in runs] == [
            (2, JobStatus.FAILED, None),
            (3, JobStatus.COMPLETED, 3),
        ]
        assert [attempt.started_at - began for attempt in runs[1].job.history] == [-59, 1]
        assert test.clock.now() == began + 600


async def test_a_run_that_was_handed_back_is_a_run_of_its_own(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=0)
    async def nap(ctx: Context, *, fail: bool) -> str:
        await ctx.sleep(60)
        if fail:
            raise ValueError("badly slept")
        return "well slept"

    async with app.testing() as test:
        await nap.enqueue(fail=False)
        runs = await test.advance(minutes=1)
        assert [(run.attempt, run.status, run.result) for run in runs] == [
            (1, JobStatus.SCHEDULED, None),
            (1, JobStatus.COMPLETED, "well slept"),
        ]
        await nap.enqueue(fail=True)
        with pytest.raises(ValueError, match="badly slept"):
            await test.advance(minutes=1, raise_errors=True)


async def test_the_exceptions_of_jobs_can_be_raised(app: WorkerOrchestrator) -> None:
    @app.task
    async def divide(by: int) -> float:
        return 1 / by

    @app.task
    async def strange() -> object:
        return object()

    async with app.testing() as test:
        await divide.enqueue(by=0)
        with pytest.raises(ZeroDivisionError) as raised:
            await test.run_pending(raise_errors=True)
        assert raised.traceback[-1].name == "divide"
        await strange.enqueue()
        with pytest.raises(JobFailedError, match=r"strange: .*object"):
            await test.run_pending(raise_errors=True)
        await app.enqueue_many([divide.call(by=0)] * 2)
        with pytest.raises(ExceptionGroup, match="2 runs failed"):
            await test.run_pending(raise_errors=True)


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_day_passes_from_one_due_time_to_the_next(
    app: WorkerOrchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[float] = []
    seen: list[str] = []

    @app.worker(cron="0 3 * * *", timezone="Europe/Vienna")
    async def nightly() -> None:
        seen.append(f"nightly {datetime.fromtimestamp(test.clock.now(), UTC):%H:%M}")

    @app.worker(interval_seconds=6 * 3600)
    async def sweep() -> None:
        seen.append(f"sweep {datetime.fromtimestamp(test.clock.now(), UTC):%H:%M}")

    @app.task
    async def remind() -> None:
        seen.append(f"remind {datetime.fromtimestamp(test.clock.now(), UTC):%H:%M}")

    async with app.testing(now=datetime(2026, 6, 1, 12, tzinfo=UTC)) as test:
        jump = test.clock.jump

        def counted(seconds: float) -> None:
            steps.append(seconds)
            jump(seconds)

        monkeypatch.setattr(test.clock, "jump", counted)
        await remind.with_options(delay_seconds=5 * 3600).enqueue()
        await test.advance(hours=24)
        assert test.clock.now() == datetime(2026, 6, 2, 12, tzinfo=UTC).timestamp()
    assert seen == [
        *("sweep 12:00", "remind 17:00", "sweep 18:00", "sweep 00:00"),
        *("nightly 01:00", "sweep 06:00", "sweep 12:00"),
    ]
    assert len(steps) < 10, "idle time costs nothing"


async def test_a_loop_runs_one_round_at_a_time(app: WorkerOrchestrator) -> None:
    rounds: list[int] = []

    @app.worker(execution_mode="continuous")
    async def listen() -> None:
        rounds.append(1)

    async with app.testing() as test:
        for _ in range(3):
            await test.advance(hours=1)
    assert len(rounds) == 3


# ── what surrounds jobs ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_hooks_and_surroundings_take_part(app: WorkerOrchestrator) -> None:
    diary: list[str] = []

    @app.lifespan
    def lifespan() -> Iterator[str]:
        diary.append("enters")
        yield "state"
        diary.append("leaves")

    @app.around_job
    def around(ctx: Context) -> Iterator[None]:
        diary.append(f"around {ctx.state}")
        yield

    @app.on("job.completed")
    async def completed(_event: object) -> None:
        diary.append("completed")

    @app.task
    async def act() -> None:
        diary.append("acts")

    async with app.testing() as test:
        await act.enqueue()
        await test.run_pending()
        assert diary == ["enters", "around state", "acts", "completed", "leaves"]
        assert [event.name for event in await app.events()] == ["node.started", "node.stopped"]
        assert await app.trigger_worker("act")
        assert diary.count("acts") == 2


async def test_an_app_is_tested_once_at_a_time_and_does_not_start_meanwhile(app: WorkerOrchestrator) -> None:
    @app.task
    async def nested() -> None:
        await test.run_pending()

    async with app.testing() as test:
        with pytest.raises(LifecycleError, match="the app is being tested already"):
            app.testing().__enter__()
        with pytest.raises(LifecycleError, match="being tested: instead of start"):
            await app.start()
        await nested.enqueue()
        with pytest.raises(LifecycleError, match="one run_pending"):
            await test.run_pending(raise_errors=True)
    running = WorkerOrchestrator("memory://")
    await running.start()
    with pytest.raises(LifecycleError, match="the app is running"):
        running.testing().__enter__()
    await running.stop()


# ── without a loop, with pytest, without a job ───────────────────────────────────────────────────────────────────────


def test_a_plain_test_uses_the_blocking_form(app: WorkerOrchestrator) -> None:
    @app.task(max_retries=1, retry=Retry(base_seconds=10, jitter=0))
    def divide(by: int) -> float:
        return 1 / by

    with app.testing() as test:
        divide.enqueue_blocking(by=2)
        divide.enqueue_blocking(by=0)
        assert [run.status for run in test.blocking.run_pending()] == [JobStatus.COMPLETED, JobStatus.FAILED]
        with pytest.raises(ZeroDivisionError):
            test.blocking.advance(seconds=10, raise_errors=True)


async def test_the_fixture_puts_an_app_under_test(
    app: WorkerOrchestrator, shiftwork_test: Callable[..., Bench]
) -> None:
    @app.task
    async def act() -> int:
        return 1

    test = shiftwork_test(app, now=0.0)
    await act.enqueue()
    assert [run.result for run in await test.run_pending()] == [1]
    assert test.clock.now() == 0.0


def test_the_plugin_is_declared_and_imports_nothing(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"pytest_shiftwork": "pytest_shiftwork"}
    script = "import sys, pytest_shiftwork; sys.exit('shiftwork' in sys.modules)"
    subprocess.run([sys.executable, "-c", script], cwd=checkout / "src", check=True)


def test_a_context_for_a_function_that_is_called_directly(app: WorkerOrchestrator) -> None:
    @app.task(timeout_seconds=30)
    def act(ctx: Context, n: int) -> str:
        ctx.progress(n, 10, "half")
        ctx.logger.info("here")
        return f"{ctx.attempt} {ctx.state} {ctx.worker.name} {ctx.timeout_seconds} {ctx.last_error} {ctx.cancelled}"

    context = make_context(act, attempt=3, state="state", last_error="ValueError")
    assert act(context, n=5) == "3 state act 30.0 ValueError False"
    assert [(report.done, report.total, report.message) for report in context.reported] == [(5.0, 10.0, "half")]
    assert [line.message for line in context.logged] == ["here"]
    with pytest.raises(JobStateError, match="make_context"):
        context.transaction()


def test_a_made_context_has_the_failures_that_the_test_gives_it() -> None:
    failure = FlowFailure(worker="fetch", job_id="7", error="OSError: no route")
    assert make_context(flow_failures=[failure]).flow_failures == (failure,)
    assert make_context().flow_failures == ()


async def test_a_durable_function_is_called_with_a_made_context() -> None:
    app = WorkerOrchestrator("memory://")

    @app.task
    async def other(n: int) -> None: ...

    @app.task
    async def work(ctx: Context) -> list[Any]:
        got: list[Any] = [await ctx.step("double", lambda n: 2 * n, 4)]
        await ctx.sleep(days=3)
        got.append(await ctx.wait_for("approval"))
        await ctx.enqueue_flow(other.call(n=1), other.call(n=2))
        try:
            await ctx.wait_for("never", timeout_seconds=60)
        except TimeoutError:
            got.append("late")
        return got

    context = make_context(signals={"approval": {"by": "ann"}}, now=0)
    assert await work(context) == [8, {"by": "ann"}, "late"]
    assert context.steps == ["double", "sleep", "wait for approval", "wait for never"]
    assert [call.worker.name for call in context.calls] == ["other", "other"]
    with pytest.raises(JobStateError, match=r"waits for signal 'approval', for ever: make_context\(signals="):
        await work(make_context())

    @app.task
    def plain(ctx: Context) -> Any:
        ctx.blocking.sleep("1h")
        return ctx.blocking.step("one", lambda: ctx.blocking.wait_for("approval"))

    assert plain(make_context(signals={"approval": 1})) == 1
