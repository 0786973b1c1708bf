"""Running one function: how it may be made, how it may end, and that a bad one harms itself only."""

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from shiftwork import Context, JobCancelledError, JobStatus, WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, Hatch, Stage, deadlines_of, node_of, status, statuses

# ── what a function may be ───────────────────────────────────────────────────────────────────────────────────────────


class AsyncObject:
    async def __call__(self, ctx: Context) -> str:
        return f"async object {ctx.name}"


class PlainObject:
    def __call__(self, ctx: Context) -> str:
        return f"plain object {ctx.name}"

    def method(self, ctx: Context) -> str:
        return f"method {ctx.name}"


async def coroutine_function(ctx: Context) -> str:
    return f"async {ctx.name}"


def plain_function(ctx: Context) -> str:
    return f"plain {ctx.name}"


async def with_prefix(prefix: str, ctx: Context) -> str:
    return f"{prefix} {ctx.name}"


def with_suffix(ctx: Context, suffix: str) -> str:
    return f"{ctx.name} {suffix}"


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "async def": (coroutine_function, "async w"),
    "def": (plain_function, "plain w"),
    "partial of async def": (functools.partial(with_prefix, "partial"), "partial w"),
    "partial of def": (functools.partial(with_suffix, suffix="partial"), "w partial"),
    "async callable object": (AsyncObject(), "async object w"),
    "callable object": (PlainObject(), "plain object w"),
    "bound method": (PlainObject().method, "method w"),
    "lambda": (lambda ctx: f"lambda {ctx.name}", "lambda w"),
    "lambda that returns a coroutine": (lambda ctx: coroutine_function(ctx), "async w"),  # noqa: PLW0108
    "nothing": (lambda: "nothing", "nothing"),
    "a default": (lambda ctx=None: f"default {ctx.name}", "default w"),
    "any number of arguments": (lambda *args: f"args {len(args)} {args[0].name}", "args 1 w"),
}


@pytest.mark.parametrize("kind", FUNCTIONS)
@pytest.mark.parametrize("mode", ["scheduled", "continuous"])
async def test_every_kind_of_function_runs(stage: Stage, kind: str, mode: Any) -> None:
    function, expected = FUNCTIONS[kind]
    app = stage.app()
    options = {} if mode == "continuous" else {"interval_seconds": 9}
    app.register_worker("w", function, options, execution_mode=mode)
    await app.start()
    await until_idle()
    (job, *_) = await app.find_jobs(worker="w")
    assert await job.result(timeout_seconds=DEADLINE) == expected


@pytest.mark.parametrize("name", ["ctx", "config", "self", "anything", "cfg"])
async def test_the_one_argument_is_the_context_whatever_its_name_and_annotation(stage: Stage, name: str) -> None:
    seen: list[Any] = []
    space: dict[str, Any] = {"seen": seen}
    exec(f"def function({name}: 'NoSuchType') -> 'NorThis':\n    seen.append({name})", space)
    app = stage.app()
    app.register_worker("w", space["function"])
    await app.start()
    await until_idle()
    (job,) = await app.find_jobs(worker="w")
    await job.ended(DEADLINE)
    assert isinstance(seen[0], Context)
    assert seen[0].job_id == job.id


async def test_plain_functions_run_in_threads_and_coroutines_on_the_loop(stage: Stage) -> None:
    app = stage.app()
    threads: dict[str, int] = {}

    @app.task()
    def plain() -> None:
        threads["plain"] = threading.get_ident()

    @app.task()
    async def coroutine() -> None:
        threads["coroutine"] = threading.get_ident()

    @app.task()
    def mixed() -> Coroutine[Any, Any, None]:
        threads["mixed, before"] = threading.get_ident()
        return rest()

    async def rest() -> None:
        threads["mixed, after"] = threading.get_ident()

    await app.start()
    for job in [await plain.enqueue(), await coroutine.enqueue(), await mixed.enqueue()]:
        await job.result(DEADLINE)
    here = threading.get_ident()
    assert {name: thread == here for name, thread in threads.items()} == {
        "plain": False,
        "coroutine": True,
        "mixed, before": False,
        "mixed, after": True,
    }


async def test_threads_see_the_context_variables_of_the_loop_and_are_used_again(stage: Stage) -> None:
    app = stage.app(max_concurrent=1)
    idents: list[str] = []

    @app.task()
    def plain() -> None:
        idents.append(threading.current_thread().name)

    await app.start()
    for _ in range(3):
        await (await plain.enqueue()).result(DEADLINE)
    assert set(idents) == {"shiftwork worker"}
    await eventually(lambda: threading.active_count() < 20)


async def test_no_more_than_max_concurrent_run_at_once(stage: Stage) -> None:
    act = Act()
    app = stage.app(max_concurrent=3)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(10)])
    await until_idle()
    assert act.running == 3
    await act.finish()
    assert (act.running, act.started) == (3, 4)
    for _ in range(9):
        await act.finish()
    assert (act.started, act.most) == (10, 3)


# ── how it may end ───────────────────────────────────────────────────────────────────────────────────────────────────


class BrokenError(Exception):
    def __str__(self) -> str:
        raise ValueError("not even this works")


class UnusualError(BaseException):
    pass


ENDINGS: dict[str, tuple[BaseException, str]] = {
    "an exception": (ValueError("wrong"), "ValueError: wrong"),
    "one without words": (ValueError(), "ValueError"),
    "one that cannot be shown": (BrokenError(), "BrokenError"),
    "sys.exit": (SystemExit(3), "SystemExit: 3"),
    "no Exception at all": (UnusualError("odd"), "UnusualError: odd"),
    "text that no store can keep": (OSError("no file \udcff.txt"), "OSError: no file \\udcff.txt"),
    "cancelled from inside": (asyncio.CancelledError(), "the function was cancelled from inside"),
    "another job's cancellation": (JobCancelledError("job x was cancelled"), "JobCancelledError: job x was cancelled"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("how", ["async def", "def", "def that returns a coroutine"])
async def test_whatever_is_raised_fails_the_job_and_frees_its_place(stage: Stage, ending: str, how: str) -> None:
    error, text = ENDINGS[ending]
    app = stage.app(max_concurrent=1)

    async def raise_in_coroutine() -> None:
        raise error

    def raise_in_thread() -> None:
        raise error

    functions: dict[str, Callable[..., Any]] = {
        "async def": raise_in_coroutine,
        "def": raise_in_thread,
        "def that returns a coroutine": lambda: raise_in_coroutine(),  # noqa: PLW0108
    }
    bad = app.register_worker("bad", functions[how], execution_mode="triggered", max_retries=0)

    @app.task()
    async def good() -> int:
        return 7

    await app.start()
    job, next_one = await app.enqueue_many([bad.call(), good.call()])
    assert await job.ended(DEADLINE) is JobStatus.DEAD
    assert job.error is not None
    assert job.error.removeprefix("CancelledError: ").startswith(text) or job.error == "CancelledError"
    job.error.encode()
    assert await next_one.result(DEADLINE) == 7
    assert app.get_status()["running"] == 0


async def test_an_attempt_keeps_error_and_traceback_from_the_users_function_on(
    stage: Stage, clock: ManualClock
) -> None:
    app = stage.app()

    def deep() -> None:
        raise KeyError("missing")

    @app.task(max_retries=1)
    async def outer() -> None:
        deep()

    await app.start()
    job = await outer.enqueue()
    await clock.advance(20)
    assert await status(job) is JobStatus.DEAD
    first, second = job.history
    assert (first.number, second.number) == (1, 2)
    assert (first.kind, first.error) == ("raised", "KeyError: 'missing'")
    assert first.traceback is not None
    assert "in outer" in first.traceback
    assert "in deep" in first.traceback
    assert "shiftwork/runtime" not in first.traceback
    assert first.instance is not None
    assert second.started_at > first.ended_at


async def test_an_endless_error_is_cut(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def talker() -> None:
        raise ValueError("x" * 1_000_000)

    await app.start()
    job = await talker.enqueue()
    await job.ended(DEADLINE)
    assert job.error is not None
    assert len(job.error) <= 1_000
    assert len(job.history[0].traceback or "") < 30_000


# ── timeouts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_coroutine_is_cancelled_at_its_timeout_exactly(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=30, max_retries=0)
    await app.start()
    job = await worker.enqueue()
    await clock.advance(29.999)
    assert act.running == 1
    assert act.contexts[0].deadline == pytest.approx(clock.now() + 0.001)
    await clock.advance(0.001)
    assert (act.running, act.cancelled) == (0, 1)
    assert await status(job) is JobStatus.DEAD
    assert job.error == "timed out after 30 s"
    assert [attempt.kind for attempt in job.history] == ["timed_out"]


async def test_a_timeout_is_retried_like_any_failure(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=30, max_retries=1)
    await app.start()
    job = await worker.enqueue()
    await clock.advance(30)
    assert await status(job) is JobStatus.FAILED
    await clock.advance(6)
    assert act.running == 1
    await act.finish()
    assert await status(job) is JobStatus.COMPLETED


async def test_a_coroutine_that_swallows_its_cancellation_is_given_up_on(stage: Stage, clock: ManualClock) -> None:
    app = stage.app(max_concurrent=1)
    let_go = asyncio.Event()

    @app.task(timeout_seconds=10, max_retries=0)
    async def stubborn() -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    @app.task()
    async def other() -> int:
        return 7

    await app.start()
    job, next_one = await app.enqueue_many([stubborn.call(), other.call()])
    await clock.advance(10)
    assert await statuses([job, next_one]) == ["processing", "queued"]
    await clock.advance(5)
    assert await statuses([job, next_one]) == ["dead", "completed"]
    assert "swallowed" in (job.error or "")
    problems = (await app.get_health())["problems"]
    assert [problem["code"] for problem in problems] == ["thread_stuck", "dead_letters"]
    assert clock.now() - 6 <= problems[0]["since"] <= clock.now()
    let_go.set()
    await until_idle()
    assert await status(job) is JobStatus.DEAD
    assert [problem["code"] for problem in (await app.get_health())["problems"]] == ["dead_letters"]


async def test_a_coroutine_that_ends_well_after_its_timeout_has_timed_out_all_the_same(
    stage: Stage, clock: ManualClock
) -> None:
    app = stage.app()

    @app.task(timeout_seconds=10, max_retries=0)
    async def tidy() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "tidied up"
        return "never"

    await app.start()
    job = await tidy.enqueue()
    await clock.advance(10)
    assert await status(job) is JobStatus.DEAD
    assert job.error == "timed out after 10 s"


async def test_a_thread_is_failed_at_once_at_its_timeout_and_others_continue(stage: Stage, clock: ManualClock) -> None:
    app = stage.app(max_concurrent=2)
    hatch, seen = Hatch(), []

    @app.task(timeout_seconds=10, max_retries=0)
    def stuck(ctx: Context) -> str:
        hatch.wait()
        seen.append(ctx.cancelled)
        return "too late"

    @app.task()
    def other(n: int) -> int:
        return n

    await app.start()
    job = await stuck.enqueue()
    await hatch.reached()
    await clock.advance(10)
    assert await status(job) is JobStatus.DEAD
    assert "thread cannot be stopped" in (job.error or "")
    for n in range(3):
        assert await (await other.enqueue(n)).result(DEADLINE) == n
    assert {problem["code"] for problem in (await app.get_health())["problems"]} == {"dead_letters", "thread_stuck"}
    hatch.open()
    await eventually(lambda: seen == [True])
    await until_idle()
    assert await status(job) is JobStatus.DEAD


async def test_a_worker_without_a_timeout_may_run_for_long(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app(tick_interval=360, lease_seconds=720)
    worker = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    job = await worker.enqueue()
    await clock.advance(700)
    assert act.running == 1
    assert act.contexts[0].deadline is None
    await act.finish("done")
    assert await job.result(DEADLINE) == "done"


async def test_deadlines_hold_among_thousands_of_runs_that_ended_in_time(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app(max_concurrent=50)
    slow = app.register_worker("act", act, execution_mode="triggered", timeout_seconds=30, max_retries=0)

    @app.task(timeout_seconds=3600)
    async def quick() -> None: ...

    await app.start()
    job = await slow.enqueue()
    for _ in range(60):
        await app.enqueue_many([quick.call() for _ in range(49)])
        await clock.advance(0.1)
    assert (await app.get_pool_dashboard())["default"]["completed"] >= 2000
    (instance,) = node_of(app).instances
    assert deadlines_of(instance) == 1, "what has ended is forgotten"
    await clock.advance(30 - 6 + 0.001)
    assert await status(job) is JobStatus.DEAD


async def test_a_pools_timeout_is_that_of_workers_that_name_none(stage: Stage) -> None:
    app = stage.app()
    app.register_pool("mail", job_timeout=7)
    own = app.register_worker("own", lambda: None, pool="mail", timeout_seconds=99)
    none = app.register_worker("none", lambda: None, pool="mail")
    await app.start()
    assert (own.config.timeout_seconds, none.config.timeout_seconds) == (99, 7)


# ── cancelling ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_running_coroutine_is_cancelled_by_a_person(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=5)
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    assert (await app.cancel_job(job.id)).record.cancelling
    await until_idle()
    assert (act.cancelled, act.running) == (1, 0)
    assert await status(job) is JobStatus.CANCELLED
    assert job.error == "cancelled"
    with pytest.raises(JobCancelledError, match=job.id):
        await job.result(DEADLINE)


async def test_a_running_thread_sees_the_flag_and_its_heartbeat_raises(stage: Stage) -> None:
    app = stage.app()
    hatch, seen = Hatch(), []

    @app.task(max_retries=5)
    def looping(ctx: Context) -> None:
        ctx.heartbeat()
        hatch.wait()
        seen.append(ctx.cancelled)
        ctx.heartbeat()
        seen.append(False)

    await app.start()
    job = await looping.enqueue()
    await hatch.reached()
    await app.cancel_job(job.id)
    await until_idle()
    hatch.open()
    assert await job.ended(DEADLINE) is JobStatus.CANCELLED
    assert seen == [True]


async def test_a_thread_that_does_not_look_is_given_up_on_after_five_seconds(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    hatch = Hatch()

    @app.task()
    def deaf() -> None:
        hatch.wait()

    await app.start()
    job = await deaf.enqueue()
    await hatch.reached()
    await app.cancel_job(job.id)
    await clock.advance(4.9)
    assert await status(job) is JobStatus.PROCESSING
    await clock.advance(0.1)
    assert await status(job) is JobStatus.CANCELLED
    hatch.open()


async def test_a_cancelled_thread_does_not_begin_the_coroutine_it_returns(stage: Stage) -> None:
    app = stage.app()
    hatch, began = Hatch(), []

    async def rest() -> None:
        began.append(1)

    def mixed() -> Coroutine[Any, Any, None]:
        hatch.wait()
        return rest()

    worker = app.register_worker("mixed", mixed, execution_mode="triggered")
    await app.start()
    job = await worker.enqueue()
    await hatch.reached()
    await app.cancel_job(job.id)
    await until_idle()
    hatch.open()
    assert await job.ended(DEADLINE) is JobStatus.CANCELLED
    assert began == []


async def test_a_waiting_job_is_cancelled_at_once(stage: Stage) -> None:
    act = Act()
    app = stage.app(max_concurrent=1)
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    running, queued = await app.enqueue_many([worker.call(), worker.call()])
    later = await worker.with_options(delay_seconds=60).enqueue()
    await until_idle()
    for job in (queued, later):
        assert (await app.cancel_job(job.id)).status is JobStatus.CANCELLED
    await act.finish()
    await stage.clock.advance(120)
    assert await statuses([running, queued, later]) == ["completed", "cancelled", "cancelled"]
    assert act.started == 1


async def test_a_cancelled_run_is_not_a_failure_of_its_worker(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_consecutive_failures=1)
    await app.start()
    job = await worker.enqueue()
    await until_idle()
    await app.cancel_job(job.id)
    await until_idle()
    state = app.get_status()["worker_states"]["act"]
    assert (state["failures"], state["enabled"]) == (0, True)


# ── payloads that do not fit ─────────────────────────────────────────────────────────────────────────────────────────


async def test_bytes_that_do_not_fit_go_to_the_dead_letters_and_stop_nothing_else(
    stage: Stage, clock: ManualClock
) -> None:
    app = stage.app(max_concurrent=1)

    @app.task(max_consecutive_failures=1)
    async def resize(width: int) -> int:
        return width

    other = WorkerOrchestrator(stage.store, clock=clock)

    @other.task(name="resize")
    async def old_resize(size: str) -> None: ...

    garbage = await old_resize.enqueue("big")
    good = await resize.enqueue(3)
    await app.start()
    assert await garbage.ended(DEADLINE) is JobStatus.DEAD
    assert "does not fit resize" in (garbage.error or "")
    assert await good.result(DEADLINE) == 3
    assert garbage.history[0].kind == "undecodable"
    assert app.get_status()["worker_states"]["resize"]["enabled"]
