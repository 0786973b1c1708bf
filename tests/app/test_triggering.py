"""Triggering, enabling and disabling a worker by hand."""

import asyncio
from typing import Any

import pytest

from shiftwork import (
    Context,
    JobPriority,
    JobStatus,
    PayloadTypeError,
    Retry,
    UnknownWorkerError,
    WorkerConfig,
    WorkerExecutionMode,
    WorkerOrchestrator,
)
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.state import trigger_refusal
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import DEADLINE, Act, Stage, status, worker_of


async def test_it_runs_now_and_returns_when_the_run_has_ended(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=1000)
    await app.start()
    await until_idle()
    await act.finish()
    triggered = asyncio.create_task(app.trigger_worker("act"))
    await until_idle()
    assert (act.running, triggered.done()) == (1, False)
    await act.finish()
    async with asyncio.timeout(DEADLINE):
        assert await triggered is True
    assert app.get_status()["worker_states"]["act"]["last_success"] == stage.clock.now()


async def test_it_goes_before_everything_that_waits(stage: Stage) -> None:
    diary: list[str] = []
    act, other = Act("act", diary), Act("other", diary)
    app = stage.app(max_concurrent=1)
    app.register_worker("act", act, execution_mode="triggered", priority=JobPriority.LOW)
    filler = app.register_worker("other", other, execution_mode="triggered", priority=JobPriority.HIGH)
    await app.start()
    await app.enqueue_many([filler.call() for _ in range(3)])
    await until_idle()
    triggered = asyncio.create_task(app.trigger_worker("act"))
    await until_idle()
    await other.finish()
    await act.finish()
    async with asyncio.timeout(DEADLINE):
        assert await triggered
    assert diary[:3] == ["other starts", "other ends", "act starts"]


async def test_a_payload_is_handed_on(stage: Stage) -> None:
    seen: list[int] = []
    app = stage.app()

    @app.task()
    async def work(n: int) -> None:
        seen.append(n)

    await app.start()
    assert await app.trigger_worker("work", n=7)
    assert seen == [7]
    with pytest.raises(PayloadTypeError, match="work needs the argument 'n'"):
        await app.trigger_worker("work")


async def test_an_unknown_or_running_worker_is_not_triggered(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=1000)
    await app.start()
    await until_idle()
    assert await app.trigger_worker("acts") is False
    assert "not triggered: there is no worker 'acts': did you mean 'act'?" in caplog.text
    assert await app.trigger_worker("act") is False
    assert "not triggered: worker act is already running" in caplog.text
    assert act.started == 1


async def test_a_worker_that_runs_in_another_process_runs_already(stage: Stage) -> None:
    act = Act()
    here, there = stage.app(), stage.app()
    for app in (here, there):
        app.register_worker("act", act, execution_mode="triggered")
    await there.start()
    await worker_of(there, "act").enqueue()
    await until_idle()
    assert await here.trigger_worker("act") is False


async def test_a_worker_with_a_payload_is_triggered_beside_its_other_runs(stage: Stage) -> None:
    act = Act()
    app = stage.app()

    @app.task()
    async def work(ctx: Context, n: int) -> None:
        await act(ctx)

    await app.start()
    runs = [asyncio.create_task(app.trigger_worker("work", n=n)) for n in (1, 2)]
    await until_idle()
    third = asyncio.create_task(app.trigger_worker("work", n=3))
    await until_idle()
    assert act.running == 3
    for _ in range(3):
        await act.finish()
    async with asyncio.timeout(DEADLINE):
        assert await asyncio.gather(*runs, third) == [True, True, True]


@pytest.mark.parametrize(
    ("mode", "payload", "running", "enabled", "refused"),
    [
        ("triggered", {}, 0, True, None),
        ("triggered", {}, 1, True, "worker w is already running"),
        ("triggered", {"n": 1}, 1, True, None),
        ("triggered", {"n": 1}, 0, False, "worker w is disabled: by hand; enable it first"),
        ("scheduled", {}, 0, True, None),
        ("scheduled", {}, 1, True, "worker w is already running"),
        ("continuous", {}, 1, True, "worker w is already running"),
        ("continuous", {}, 1, False, "worker w is disabled"),
    ],
)
def test_the_one_rule_that_decides_whether_a_worker_is_triggered(
    *, mode: str, payload: dict[str, Any], running: int, enabled: bool, refused: str | None
) -> None:
    config = WorkerConfig(name="w", execution_mode=WorkerExecutionMode(mode))
    state = WorkerState(worker="w", enabled=enabled, reason=None if enabled else "by hand")
    said = trigger_refusal(config, state, payload, running=running)
    assert said is None if refused is None else said is not None and said.startswith(refused)


async def test_a_worker_that_only_another_process_has_is_triggered_there(stage: Stage) -> None:
    act = Act()
    server, client = stage.app(), stage.app()
    server.register_worker("theirs", act, execution_mode="triggered")
    await server.start()
    triggered = asyncio.create_task(client.trigger_worker("theirs"))
    await until_idle()
    assert act.running == 1
    await act.finish()
    async with asyncio.timeout(DEADLINE):
        assert await triggered
    await stage.stop(server)
    assert await client.trigger_worker("theirs") is False


async def test_a_disabled_worker_is_not_triggered(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("act", lambda: None)
    await app.disable_worker("act")
    assert await app.trigger_worker("act") is False
    assert await app.find_jobs() == []


async def test_a_run_that_fails_was_run(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=0)
    async def bad() -> None:
        raise RuntimeError("no")

    await app.start()
    assert await app.trigger_worker("bad") is True
    assert app.get_status()["worker_states"]["bad"]["last_error"] == "RuntimeError: no"


async def test_where_another_process_serves_it_it_runs_there(stage: Stage) -> None:
    here, there = Act("here"), Act("there")
    client, server = stage.app(), stage.app()
    client.register_worker("act", here, execution_mode="triggered")
    server.register_worker("act", there, execution_mode="triggered")
    await server.start()
    triggered = asyncio.create_task(client.trigger_worker("act"))
    await until_idle()
    assert (here.started, there.started) == (0, 1)
    await there.finish()
    async with asyncio.timeout(DEADLINE):
        assert await triggered


# ── where nobody serves it ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["def", "async def"])
async def test_an_unserved_worker_runs_here(stage: Stage, how: str) -> None:
    ran: list[str] = []
    app = stage.app()

    async def coroutine() -> None:
        ran.append("ran")

    app.register_worker("w", (lambda: ran.append("ran")) if how == "def" else coroutine)
    app.register_worker("other", lambda: ran.append("another"))
    async with asyncio.timeout(DEADLINE):
        assert await app.trigger_worker("w")
    assert ran == ["ran"]
    status_of = app.get_status()
    assert status_of["state"] == "stopped"
    assert status_of["worker_states"]["w"]["last_success"] == stage.clock.now()
    assert await stage.store.instances() == []


async def test_there_it_is_retried_too(stage: Stage, clock: ManualClock) -> None:
    tries: list[float] = []
    app = stage.app()

    async def flaky() -> None:
        tries.append(clock.now())
        if len(tries) < 3:
            raise RuntimeError("not yet")

    app.register_worker("flaky", flaky, retry=Retry(base_seconds=5, jitter=0))
    assert await stage.during(app.trigger_worker("flaky"))
    assert [at - tries[0] for at in tries] == [0, 5, 15]
    (job,) = await app.find_jobs()
    assert job.status is JobStatus.COMPLETED


async def test_there_only_its_own_jobs_run(stage: Stage) -> None:
    ran: list[str] = []
    app = stage.app()
    app.register_worker("w", lambda: ran.append("w"), execution_mode="triggered")
    other = app.register_worker("other", lambda: ran.append("other"), execution_mode="triggered")
    job = await other.enqueue()
    assert await app.trigger_worker("w")
    assert ran == ["w"]
    assert await status(job) is JobStatus.QUEUED


async def test_there_it_does_not_wait_for_what_will_never_be_done(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []
    app = stage.app()
    app.register_worker("a", lambda: ran.append("a"))
    app.register_worker("b", lambda: ran.append("b"), depends_on=["a"])
    async with asyncio.timeout(DEADLINE):
        assert await app.trigger_worker("b") is False
        assert "not triggered: worker b: depends on a, which has not succeeded yet" in caplog.text
        assert await app.trigger_worker("a")
        assert await app.trigger_worker("b")
        assert ran == ["a", "b"]
        await app.pause_pool("default")
        assert await app.trigger_worker("b") is False
        assert "pool default is paused" in caplog.text
    assert await app.find_jobs(status=["queued", "scheduled"]) == []


async def test_giving_up_on_it_hands_it_back(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, execution_mode="triggered")
    triggered = asyncio.create_task(app.trigger_worker("act"))
    await until_idle()
    assert act.running == 1
    triggered.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stage.during(triggered)
    assert act.cancelled == 1
    (job,) = await app.find_jobs()
    assert job.status is JobStatus.QUEUED
    assert await stage.store.instances() == []


# ── enabling and disabling ───────────────────────────────────────────────────────────────────────────────────────────


async def test_disabled_is_disabled_everywhere_and_forever(stage: Stage) -> None:
    def make() -> WorkerOrchestrator:
        app = stage.app()
        app.register_worker("w", lambda: None)
        return app

    app = make()
    await app.disable_worker("w", "maintenance")
    assert app.get_status()["worker_states"]["w"]["enabled"] is False
    second = make()
    await second.start()
    assert second.get_status()["worker_states"]["w"]["enabled"] is False
    assert await second.find_jobs() == []
    await stage.stop(second)
    third = make()
    await third.enable_worker("w")
    await third.start()
    assert third.get_status()["worker_states"]["w"]["enabled"] is True
    await until_idle()
    assert len(await third.find_jobs()) == 1


async def test_enabling_forgets_the_failures(stage: Stage) -> None:
    app = stage.app()

    @app.task(max_retries=0, max_consecutive_failures=10)
    async def bad() -> None:
        raise RuntimeError("no")

    await app.start()
    for _ in range(3):
        await (await bad.enqueue()).ended(DEADLINE)
    assert app.get_status()["worker_states"]["bad"]["failures"] == 3
    await app.enable_worker("bad")
    assert app.get_status()["worker_states"]["bad"]["failures"] == 0


@pytest.mark.parametrize("method", ["enable_worker", "disable_worker"])
async def test_an_unregistered_worker(stage: Stage, method: str) -> None:
    app = stage.app()
    app.register_worker("fetch-data", lambda: None)
    with pytest.raises(UnknownWorkerError, match="there is no worker 'fetch-date': did you mean 'fetch-data'"):
        await getattr(app, method)("fetch-date")


async def test_a_worker_that_only_another_process_has(stage: Stage) -> None:
    server = stage.app()
    server.register_worker("theirs", lambda: None, execution_mode="triggered")
    await server.start()
    client: Any = stage.app()
    await client.disable_worker("theirs")
    await until_idle()
    assert server.get_status()["worker_states"]["theirs"]["enabled"] is False
    assert list(await client.workers()) == ["theirs"]


@pytest.mark.parametrize("served", [True, False])
async def test_it_returns_when_a_run_has_failed_and_the_retries_follow(stage: Stage, *, served: bool) -> None:
    calls: list[int] = []
    app = stage.app()

    async def fail(ctx: Context) -> None:
        calls.append(ctx.attempt)
        raise RuntimeError("no")

    app.register_worker("fail", fail, execution_mode="triggered", retry=Retry(base_seconds=5, jitter=0), max_retries=2)
    if served:
        await app.start()
    async with asyncio.timeout(DEADLINE):
        assert await app.trigger_worker("fail") is True
    assert calls == [1]
    assert app.get_status()["worker_states"]["fail"]["last_error"] == "RuntimeError: no"
    (job,) = await app.find_jobs()
    assert (job.status, job.over) == (JobStatus.FAILED, False)
    await app.start()
    await stage.clock.advance(5)
    await stage.clock.advance(10)
    assert (calls, (await job.refresh()).status) == ([1, 2, 3], JobStatus.DEAD)


async def test_the_status_says_nothing_of_a_worker_before_it_has_read_the_store(stage: Stage) -> None:
    app, again = (stage.app() for _ in range(2))
    for one in (app, again):
        one.register_worker("w", lambda: None, execution_mode="triggered")
        one.register_worker("v", lambda: None, execution_mode="triggered")
    await app.disable_worker("w")
    assert [again.get_status()["worker_states"][name]["enabled"] for name in ("w", "v")] == [None, None]
    await again.start()
    assert [again.get_status()["worker_states"][name]["enabled"] for name in ("w", "v")] == [False, True]
