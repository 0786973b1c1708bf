"""A program that was written for the pattern runs as it stands: functions that take their config, and small habits."""

import asyncio
import json
import logging
import os
import socket
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pytest

import shiftwork
from shiftwork import (
    ConfigurationError,
    Context,
    JobStatus,
    LifecycleError,
    NamespaceInUseError,
    PayloadTypeError,
    PoolConfig,
    ResultTimeoutError,
    Retry,
    UnknownStoreError,
    UnknownWorkerError,
    WorkerConfig,
    WorkerFn,
    WorkerOrchestrator,
)
from shiftwork.core.jobs.retry import End
from shiftwork.core.model.workers import RunState
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.processes.child_process import ChildProcess
from shiftwork.runtime.processes.handover import NodeEnd, ProcessEnd
from shiftwork.runtime.processes.messages import NodeFrame, Setup, Start
from shiftwork.runtime.processes.post_mortem import KilledJobs
from shiftwork.runtime.processes.remote_runner import RemoteRunner
from shiftwork.runtime.running.job_run import LocalRun
from shiftwork.store.memory import MemoryStore
from shiftwork.testing.contexts import MadeValues
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, Act, Stage, started
from tests.runtime.test_processes import claimed

# ── the function and its config ──────────────────────────────────────────────────────────────────────────────────────


async def test_fetch_since_the_last_success(stage: Stage, clock: ManualClock) -> None:
    asked_since: list[float] = []
    failures: list[tuple[int, str | None]] = []

    async def fetch_data(config):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        asked_since.append(config.last_success or 0.0)
        failures.append((config.consecutive_failures, config.last_error))
        if len(asked_since) == 2:
            raise RuntimeError("the source is away")

    orchestrator = WorkerOrchestrator(stage.store, tick_interval=5.0, max_concurrent=5, clock=clock)
    orchestrator.register_worker("fetch-data", fetch_data, {"interval_seconds": 60, "max_retries": 0})
    await orchestrator.start()
    await until_idle()
    begin = clock.now()
    for _ in range(3):
        await clock.advance(60)
    assert asked_since == [0.0, begin, begin, begin + 120]
    away = "RuntimeError: the source is away"
    assert failures == [(0, None), (0, None), (1, away), (0, away)]
    await stage.stop(orchestrator)


def unannotated(config):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
    return state_of(config)


def by_config(config: WorkerConfig) -> list[Any]:
    return state_of(config)


async def by_context(ctx: Context) -> list[Any]:
    return state_of(ctx)


async def optional(config: WorkerConfig | None = None) -> list[Any]:
    return state_of(config)


def state_of(config: Any) -> list[Any]:
    return [config.name, config.last_run, config.is_enabled, config.is_running, config.max_retries]


@pytest.mark.parametrize("mode", ["scheduled", "triggered", "continuous"])
@pytest.mark.parametrize("function", [unannotated, by_config, by_context, optional])
async def test_a_function_gets_its_config_in_every_mode(stage: Stage, mode: Any, function: WorkerFn) -> None:
    app = stage.app()
    app.register_worker("w", function, execution_mode=mode, max_retries=0)
    async with asyncio.timeout(DEADLINE):
        assert await app.trigger_worker("w")
        stage.clock.jump(1)
        assert await app.trigger_worker("w")
    second, first = await app.find_jobs(worker="w", status="completed")
    assert await first.result() == ["w", None, True, True, 0]
    assert (await second.result())[1] == first.started_at


async def test_a_run_learns_nothing_that_happens_after_its_start(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0)
    await app.start()
    await app.enqueue_many([worker.call(), worker.call()])
    await until_idle()
    await clock.advance(1)
    await act.fail()
    await worker.enqueue()
    await until_idle()
    assert [ctx.consecutive_failures for ctx in act.contexts] == [0, 0, 1]
    assert act.contexts[2].last_error == "RuntimeError: act failed"


class Witness(MadeValues):
    """A worker's function, as a process of a pool knows it."""

    config = WorkerConfig(name="nap")
    is_async = True
    retry_rule = None
    schema: bytes | None = None

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Context] = []

    async def function(self, ctx: Context) -> None:
        self.seen.append(ctx)

    def bind(self, _payload: bytes, context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (context,), {}

    def encode_result(self, _value: Any) -> bytes | None:
        return None

    def discreet(self, _payload: bytes, text: str, _values: object = ()) -> str:
        return text


async def test_the_state_travels_to_other_processes_with_the_run() -> None:
    theirs, ours = socket.socketpair()
    runs = NodeEnd()
    instance, witness = ChildProcess(ours, ProcessEnd(runs.tokens, runs.page)), Witness()
    runs.close_page()

    async def store() -> MemoryStore:
        return MemoryStore()

    instance.serve({"nap": witness}, store, Middleware(), alone=False)
    state = RunState(failures=2, last_started=7.0, last_success=5.0, last_error="ValueError: no")
    body = msgspec.msgpack.encode(NodeFrame([Start(claimed(), *runs.give(), state)]))
    runs.write()
    theirs.send(len(body).to_bytes(4, "little") + body)
    await eventually(lambda: bool(witness.seen))
    (ctx,) = witness.seen
    assert (ctx.consecutive_failures, ctx.last_run, ctx.last_success, ctx.last_error) == (2, 7.0, 5.0, "ValueError: no")
    instance.link.close()
    theirs.close()
    runs.close()


class Mailbox:
    """The process of a runner, which only keeps what it is sent."""

    pid = os.getpid()

    def __init__(self, **_callbacks: Any) -> None:
        self.sent: list[Any] = []
        self.send = self.sent.append
        self.runs = NodeEnd()


async def test_a_node_sends_the_state_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    mailbox = Mailbox()
    monkeypatch.setattr("shiftwork.runtime.processes.remote_runner.StartedProcess", lambda **_more: mailbox)
    setup = Setup(app="shop:app", role="alone")
    runner = RemoteRunner(setup, ManualClock(), report=lambda _job, _progress: None, kills=KilledJobs())
    state = RunState(last_success=5.0)
    runner.start(LocalRun(claimed(), WorkerConfig(name="nap"), 0.0, Owner(), state))
    assert mailbox.sent[-1] == Start(claimed(), 1, 0, state)
    mailbox.runs.close_page()
    mailbox.runs.close()


class Owner:
    def run_begun(self, run: LocalRun) -> None: ...
    def run_ended(self, run: LocalRun, end: End) -> None: ...


async def test_the_state_costs_the_store_nothing(stage: Stage) -> None:
    app = stage.faulty_app()
    worker = app.register_worker("w", unannotated, execution_mode="triggered")
    await app.start()
    await until_idle()
    before = stage.faults.calls["survey"]
    jobs = await app.enqueue_many([worker.call() for _ in range(50)])
    for job in jobs:
        await job.result(DEADLINE)
    assert stage.faults.calls["survey"] == before


async def test_an_argument_for_a_task_that_takes_only_its_config(stage: Stage) -> None:
    task = stage.app().task()(unannotated)
    with pytest.raises(PayloadTypeError, match=r"takes no arguments: .* 'config' has no annotation.* config: str"):
        await task.enqueue("a.png")


# ── registering ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_ways_to_register() -> None:
    app = WorkerOrchestrator("memory://")
    app.register_worker("a", fn=unannotated, interval_seconds=5)
    app.register_worker("b", unannotated, {"interval_seconds": 5}, max_retries=1)
    app.register_worker(name="c", fn=unannotated, is_enabled=False)
    workers, _ = app.registered()
    assert [workers[name].interval_seconds for name in "ab"] == [5, 5]
    assert (workers["b"].max_retries, workers["c"].enabled) == (1, False)
    assert app.get_status()["worker_states"]["c"]["enabled"] is False


def test_a_pool_as_its_config() -> None:
    app = WorkerOrchestrator("memory://")
    wanted = PoolConfig(name="mail", kind="thread", max_workers=3, scale_up_threshold=2)
    assert app.register_pool(wanted, min_workers=2).min_workers == 2
    with pytest.raises(ConfigurationError, match=r"min_workers \(7\) must not be above max_workers \(3\)"):
        app.register_pool(PoolConfig(name="other", min_workers=7, max_workers=3))


async def test_a_worker_that_is_registered_disabled_waits_for_a_person(stage: Stage) -> None:
    def make(*, enabled: bool) -> WorkerOrchestrator:
        app = stage.app()
        app.register_worker("w", unannotated, enabled=enabled)
        return app

    app = make(enabled=False)
    await app.start()
    await until_idle()
    assert await app.find_jobs() == []
    assert await app.trigger_worker("w") is False
    await stage.stop(app)
    changed = make(enabled=True)  # nobody has touched it: the registration decides
    await changed.start()
    await until_idle()
    assert len(await changed.find_jobs()) == 1
    await stage.stop(changed)
    await changed.enable_worker("w")
    again = make(enabled=False)  # a person has enabled it since
    await again.start()
    assert again.get_status()["worker_states"]["w"]["enabled"] is True


async def test_workers_and_pools_may_be_registered_while_it_runs(stage: Stage, clock: ManualClock) -> None:
    ran: list[str] = []
    app = stage.app()
    await app.start()
    app.register_pool("mail", min_workers=1)
    app.register_worker("tick", lambda: ran.append("tick"), interval_seconds=10)

    @app.task(pool="mail")
    def send(to: str) -> str:
        return f"sent to {to}"

    job = await send.enqueue("Ada")
    await clock.advance(5)
    assert await job.result(DEADLINE) == "sent to Ada"
    await eventually(lambda: ran == ["tick"])
    await clock.advance(15)
    await eventually(lambda: ran == ["tick"] * 2)
    assert set(await stage.app().workers()) == {"send", "tick"}


async def test_the_rules_of_what_is_registered_while_it_runs_hold_against_what_ran_before(
    stage: Stage, clock: ManualClock
) -> None:
    diary: list[str] = []
    first, second, third = Act("first", diary), Act("second", diary), Act("third", diary)
    app = stage.app()
    early = app.register_worker("first", first, execution_mode="triggered", timeout_seconds=None)
    await app.start()
    await early.enqueue()
    await clock.advance(1)
    late = app.register_worker("second", second, execution_mode="triggered", blocks=["first"])
    app.register_worker("third", third, cron="* * * * *", depends_on=["second"])
    await late.enqueue()
    await clock.advance(60)
    assert diary == ["first starts"]
    await early.enqueue()
    await first.finish()
    assert diary == ["first starts", "first ends", "second starts"], "it waited, and nothing passes it by"
    await second.finish()
    assert sorted(diary[3:]) == ["first starts", "second ends", "third starts"], "its schedule fires, and waits for it"


async def test_what_cannot_work_is_refused_while_it_runs_and_leaves_nothing_behind(stage: Stage) -> None:
    app = stage.app()
    await app.start()
    with pytest.raises(UnknownWorkerError, match="depends on 'a', which is not registered"):
        app.register_worker("b", unannotated, depends_on=["a"])
    with pytest.raises(LifecycleError, match=r"pool images: the processes .* have imported the app already"):
        app.register_pool("images", kind="process")
    with pytest.raises(LifecycleError, match=r"@app.lifespan .* before start"):
        app.lifespan(nullcontext)
    assert app.get_status()["workers"] == 0
    assert app.registered() == ({}, {})


@pytest.mark.parametrize(
    ("store", "words"),
    [
        (5.0, "write tick_interval=5.0"),
        (5, "write tick_interval=5"),
        (Path("/var/jobs.db"), "write 'sqlite:////var/jobs.db'"),
        (MemoryStore, "a URL or a store"),
        (object(), "for example 'sqlite:///shiftwork.db'"),
    ],
)
def test_a_store_that_is_none_is_refused_at_once(store: Any, words: str) -> None:
    with pytest.raises(UnknownStoreError) as refused:
        WorkerOrchestrator(store)
    assert words in str(refused.value)


def test_the_version() -> None:
    assert shiftwork.__version__ == version("shiftwork")
    with pytest.raises(AttributeError, match="did you mean 'WorkerOrchestrator'"):
        _ = shiftwork.WorkerOrchestrater  # type: ignore[attr-defined]


# ── triggering ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("where", ["here", "in a node"])
async def test_a_trigger_waits_as_long_as_it_may(stage: Stage, where: str, caplog: pytest.LogCaptureFixture) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, execution_mode="triggered")
    if where == "in a node":
        await app.start()
    async with asyncio.timeout(DEADLINE):
        assert await app.trigger_worker("act", timeout_seconds=0.05) is False
    assert "is not finished after 0.05 s: attempt 1 of 4 has been running" in caplog.text
    (job,) = await app.find_jobs()
    assert job.status is (JobStatus.PROCESSING if where == "in a node" else JobStatus.QUEUED)


@pytest.mark.parametrize("why", ["disabled", "nothing has triggered it", "no running process serves it"])
async def test_a_dependency_that_will_not_run_by_itself(
    stage: Stage, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = stage.app()
    mode: Any = "triggered" if why == "nothing has triggered it" else "scheduled"
    app.register_pool("far")
    app.register_worker("a", unannotated, execution_mode=mode)
    app.register_worker("b", unannotated, depends_on=["a"], execution_mode="triggered", pool="far")
    if why == "disabled":
        await app.disable_worker("a", "not today")
    if why != "no running process serves it":
        await app.start()
        await until_idle()
    async with asyncio.timeout(DEADLINE):
        assert await app.trigger_worker("b") is False
    assert "not triggered: worker b: depends on a, which has not succeeded yet, and " in caplog.text
    assert why in caplog.text
    assert await app.find_jobs(worker="b") == []


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_job_shows_its_times_and_counts(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", retry=Retry(base_seconds=5, jitter=0))
    await app.start()
    begin = clock.now()
    job = await worker.enqueue()
    await until_idle()
    await act.fail()
    with pytest.raises(
        ResultTimeoutError,
        match=r"is not finished after 0.01 s: attempt 1 of 4 failed \(RuntimeError: act failed\), next in 5 s",
    ):
        await job.result(timeout_seconds=0.01)
    shown = (job.status, job.over, job.ended_at, job.summary.over, job.summary.ended_at)
    assert shown == (JobStatus.FAILED, False, None, False, None)
    assert [found.over for found in await app.find_jobs(status="failed")] == [False]
    await clock.advance(7)
    await act.finish()
    await job.refresh()
    assert job.over
    assert (job.created_at, job.started_at, job.ended_at, job.run_at) == (begin, begin + 5, begin + 7, begin + 5)
    assert (job.attempts, [attempt.error for attempt in job.history]) == (2, ["RuntimeError: act failed"])
    assert job.instance is not None
    assert "default" in job.instance
    assert job.cause == "enqueued"


async def test_a_result_that_nothing_will_bring_names_pool_and_store(tmp_path: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/jobs.db")
    app.register_pool("mail")
    task = app.task(pool="mail", name="send")(lambda: None)
    job = await task.enqueue()
    with pytest.raises(ResultTimeoutError) as late:
        await job.result(timeout_seconds=0.01)
    await app.close()
    assert f"no running process has worker send in pool mail of sqlite:///{tmp_path}/jobs.db: start" in str(late.value)


async def test_a_caller_that_waits_forever_finds_the_reason_in_the_log(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shiftwork.handles.job.UNSERVED_WARNING_SECONDS", 0.01)
    job = await stage.app().task(name="send")(lambda: None).enqueue()
    waiting = asyncio.create_task(job.result())
    await eventually(lambda: "no running process has worker send in pool default" in caplog.text)
    waiting.cancel()


async def test_the_progress_of_a_completed_job_is_complete_and_can_be_encoded(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def work(ctx: Context) -> None:
        ctx.progress(8, 10, "nearly")

    await app.start()
    job = await work.enqueue()
    await job.result(DEADLINE)
    progress = job.progress
    assert progress is not None
    assert (progress.done, progress.total) == (10, 10)
    assert json.loads(msgspec.json.encode(progress))["message"] == "nearly"


async def test_nothing_is_due_while_a_retry_is_pending(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=60)
    await app.start()
    await until_idle()
    await act.finish()
    ended = clock.now()

    async def due() -> tuple[float | None, float | None]:
        (view,) = (await app.control.system.overview()).workers
        return view.next_due, app.get_status()["worker_states"]["act"]["next_due"]

    assert await due() == (ended + 60, ended + 60)
    await clock.advance(60)
    await act.fail()
    assert await due() == (None, None)


# ── the file that two programs share ─────────────────────────────────────────────────────────────────────────────────


async def test_a_second_program_in_the_folder_learns_which_file_it_shares(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.INFO)
    first, second = WorkerOrchestrator(), WorkerOrchestrator()
    first.register_worker("mail", lambda: None, execution_mode="triggered")
    second.register_worker("report", lambda: None, execution_mode="triggered")
    async with started(first):
        assert f"runs 1 worker in 1 pool, on sqlite:///{tmp_path}/shiftwork.db" in caplog.text
        with pytest.raises(NamespaceInUseError) as refused:
            await second.start()
    told = str(refused.value)
    assert f"sqlite:///{tmp_path}/shiftwork.db is in use by another app: node " in told
    assert "runs mail" in told
    assert 'WorkerOrchestrator("sqlite:///other.db") or WorkerOrchestrator(…, namespace="…")' in told


async def test_a_start_says_what_the_store_has_kept_and_what_runs_next(
    stage: Stage, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None: ...

    def fetching() -> WorkerOrchestrator:
        app = stage.app()
        app.register_worker("fetch", work, interval_seconds=60)
        app.register_worker("clean", work, interval_seconds=3600)
        return app

    def line() -> str:
        (found,) = [text for text in caplog.messages if text.startswith("store ")]
        caplog.clear()
        return found

    with caplog.at_level("INFO", "shiftwork"):
        async with started(fetching()):
            await until_idle()
        assert line().endswith("; next: clean now, fetch now")
        await clock.advance(19)
        again = fetching()
        await again.reschedule_worker("clean", interval_seconds=7200)
        async with started(again):
            await until_idle()
    kept = "(kept from earlier: 2 workers; intervals go on from their last runs)"
    assert line().endswith(f"{kept}; next: fetch in 41 s, clean in 120 min")


@pytest.mark.parametrize(
    "wrong",
    [
        lambda config: datetime.now(UTC) - config.last_run,
        lambda config: config.last_run + timedelta(hours=1),
        lambda config: datetime.now(UTC) > config.last_run,
        lambda config: config.last_run.isoformat(),
    ],
)
async def test_a_function_that_takes_an_instant_for_a_datetime_learns_what_to_write(
    stage: Stage, wrong: Callable[[Any], object]
) -> None:
    app = stage.app()
    app.register_worker("again", wrong, execution_mode="triggered", max_retries=0)
    await app.trigger_worker("again")
    await app.trigger_worker("again")
    error = app.get_status()["worker_states"]["again"]["last_error"]
    assert error.endswith("write time.time() - ctx.last_run, or datetime.fromtimestamp(ctx.last_run))")
