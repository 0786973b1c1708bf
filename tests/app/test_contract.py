"""Section 3 of the design, to the letter: names, defaults, the examples, and the shapes of answers."""

import inspect
import json
from typing import Any

import pytest

import shiftwork
from shiftwork import (
    Breaker,
    Context,
    Job,
    JobPriority,
    JobStatus,
    PoolConfig,
    Retry,
    ShiftworkError,
    WorkerConfig,
    WorkerExecutionMode,
    WorkerInstance,
    WorkerOrchestrator,
)
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import DEADLINE, Act, Stage

# ── names and defaults ───────────────────────────────────────────────────────────────────────────────────────────────


def test_every_name_of_the_contract_is_exported() -> None:
    promised = """WorkerOrchestrator WorkerConfig WorkerExecutionMode JobPriority PoolConfig Job JobStatus
        WorkerInstance Context FlowFailure Retry Breaker ShiftworkError WorkerFn"""
    assert set(promised.split()) <= set(shiftwork.__all__)


def test_every_error_is_exported_and_in_the_tree() -> None:
    errors = {name: getattr(shiftwork, name) for name in shiftwork.__all__ if name.endswith("Error")}
    assert all(issubclass(error, ShiftworkError) for error in errors.values())
    drawn = {word for word in (shiftwork.errors.__doc__ or "").split() if word.endswith("Error")}
    assert drawn >= set(errors)


def test_values_of_the_enumerations() -> None:
    assert {priority.name: priority.value for priority in JobPriority} == {
        "LOW": 0,
        "NORMAL": 1,
        "HIGH": 2,
        "CRITICAL": 3,
    }
    assert {mode.name for mode in WorkerExecutionMode} == {"SCHEDULED", "TRIGGERED", "CONTINUOUS"}
    assert {status.value for status in JobStatus} == {
        "waiting",
        "scheduled",
        "queued",
        "processing",
        "completed",
        "failed",
        "dead",
        "cancelled",
    }


def test_defaults_of_policies() -> None:
    assert Retry() == Retry(base_seconds=5, factor=2, max_seconds=3600, jitter=0.1)
    assert Breaker() == Breaker(failures=5, window_seconds=60, cool_down_seconds=30)


def test_defaults_of_a_worker() -> None:
    app = WorkerOrchestrator("memory://")
    config = app.register_worker("w", lambda: None).config
    assert isinstance(config, WorkerConfig)
    expected: dict[str, Any] = {
        "name": "w",
        "execution_mode": WorkerExecutionMode.SCHEDULED,
        "interval_seconds": 300,
        "cron": None,
        "timezone": "UTC",
        "timeout_seconds": 60,
        "max_retries": 3,
        "retry": Retry(),
        "priority": JobPriority.NORMAL,
        "max_consecutive_failures": 5,
        "depends_on": [],
        "blocks": (),
        "pool": "default",
        "breaker": None,
        "rate_limit": None,
        "max_running": None,
        "concurrency_key": None,
        "overlap": "skip",
        "catch_up": "latest",
        "enabled": True,
    }
    assert {name: getattr(config, name) for name in expected} == expected


def test_defaults_of_the_two_decorators() -> None:
    app = WorkerOrchestrator("memory://")

    @app.worker()
    def a() -> None: ...

    @app.task()
    def b() -> None: ...

    assert (a.name, a.config.execution_mode, a.config.interval_seconds) == ("a", WorkerExecutionMode.SCHEDULED, 300)
    assert a.config.max_consecutive_failures == 5
    assert (b.name, b.config.execution_mode) == ("b", WorkerExecutionMode.TRIGGERED)
    assert b.config.max_consecutive_failures is None


def test_the_constructor() -> None:
    parameters = inspect.signature(WorkerOrchestrator).parameters
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert defaults["store"] is None  # SHIFTWORK_STORE, or sqlite:///shiftwork.db
    assert {name: defaults[name] for name in ("namespace", "tick_interval", "max_concurrent")} == {
        "namespace": "default",
        "tick_interval": 5.0,
        "max_concurrent": 5,
    }
    assert defaults["enable_health_checks"] is True
    assert parameters["namespace"].kind is inspect.Parameter.KEYWORD_ONLY


COROUTINES = [
    "start",
    "stop",
    "trigger_worker",
    "enable_worker",
    "disable_worker",
    "enqueue_many",
    "get_job",
    "find_jobs",
    "cancel_job",
    "retry_job",
    "discard_job",
    "pause_pool",
    "resume_pool",
    "auto_scale",
    "recover_stuck_jobs",
    "get_pool_dashboard",
    "get_health",
]
PLAIN = ["register_worker", "worker", "task", "register_pool", "get_status", "on"]
POOL_OPTIONS = [
    "kind",
    "min_workers",
    "max_workers",
    "scale_up_threshold",
    "scale_down_threshold",
    "target_latency_seconds",
    "scale_down_after_seconds",
    "job_timeout",
    "heartbeat_interval",
    "cpu",
    "memory",
    "processes",
    "max_jobs_per_instance",
    "max_memory_per_instance",
    "priority_aging_seconds",
]


@pytest.mark.parametrize("name", COROUTINES)
def test_methods_that_ask_or_change_the_store_are_coroutines(name: str) -> None:
    assert inspect.iscoroutinefunction(getattr(WorkerOrchestrator, name))


@pytest.mark.parametrize("name", PLAIN)
def test_the_others_are_not(name: str) -> None:
    assert not inspect.iscoroutinefunction(getattr(WorkerOrchestrator, name))


@pytest.mark.parametrize("option", POOL_OPTIONS)
def test_every_pool_option_is_known(option: str) -> None:
    values: dict[str, Any] = {"kind": "thread", "max_workers": 20, "scale_up_threshold": 30}
    app = WorkerOrchestrator("memory://")
    pool = app.register_pool("p", **{option: values.get(option, 1)})
    assert isinstance(pool, PoolConfig)
    assert getattr(pool, option) == values.get(option, 1)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("execution_mode", WorkerExecutionMode.TRIGGERED),
        ("interval_seconds", 12),
        ("cron", "0 3 * * *"),
        ("timezone", "Europe/Vienna"),
        ("timeout_seconds", 12),
        ("max_retries", 0),
        ("retry", Retry(1, 2, 3, 0)),
        ("priority", JobPriority.HIGH),
        ("max_consecutive_failures", None),
        ("depends_on", {"other": "fresh"}),
        ("blocks", ("other",)),
        ("pool", "p"),
        ("breaker", Breaker(name="smtp")),
        ("rate_limit", "100/m"),
        ("max_running", 2),
        ("overlap", "queue"),
        ("catch_up", "all"),
        ("keep_completed_seconds", 5),
        ("enabled", False),
    ],
)
def test_every_worker_option_is_taken_by_all_three_ways(option: str, value: Any) -> None:
    app = WorkerOrchestrator("memory://")
    configs = [
        app.register_worker("a", lambda: None, **{option: value}).config,
        app.worker(name="b", **{option: value})(lambda: None).config,
    ]
    if option not in {"interval_seconds", "cron"}:
        configs.append(app.task(name="c", **{option: value})(lambda: None).config)
    assert [getattr(config, option) for config in configs] == [value] * len(configs)


# ── the examples ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_first_example(stage: Stage, clock: ManualClock) -> None:
    ran: list[str] = []

    async def fetch_data(config: WorkerConfig) -> None:
        ran.append(f"{config.name} {config.timeout_seconds:g}")

    def process_data() -> None:
        ran.append("process-data")

    async def cleanup() -> None:
        ran.append("cleanup")

    orchestrator = WorkerOrchestrator(stage.store, tick_interval=5.0, max_concurrent=5, clock=clock)
    orchestrator.register_worker(
        "fetch-data", fetch_data, interval_seconds=60, timeout_seconds=30, priority=JobPriority.HIGH
    )
    orchestrator.register_worker("process-data", process_data, interval_seconds=120, depends_on=["fetch-data"])
    orchestrator.register_worker(
        "cleanup", cleanup, interval_seconds=3600, priority=JobPriority.LOW, blocks=["process-data"]
    )
    await orchestrator.start()
    await until_idle()
    for name in ("fetch-data@first", "process-data@first", "cleanup@first"):
        await (await orchestrator.get_job(name)).result(DEADLINE)
    assert ran[0] == "fetch-data 30"
    assert sorted(ran) == ["cleanup", "fetch-data 30", "process-data"]
    await clock.advance(60)
    assert ran[3:] == ["fetch-data 30"]
    await orchestrator.stop()


async def test_the_second_example(stage: Stage, clock: ManualClock) -> None:
    app = WorkerOrchestrator(stage.store, clock=clock)
    app.register_pool(
        "images", kind="thread", min_workers=1, max_workers=8, scale_up_threshold=20, scale_down_threshold=2
    )
    app.register_pool("mail", kind="async", min_workers=2, max_workers=200, job_timeout=30)
    reports: list[str] = []

    @app.task(pool="images", timeout_seconds=60, max_retries=5)
    def image_resize(path: str, width: int) -> str:
        return f"{path}@{width}"

    @app.worker(interval_seconds=60)
    async def fetch_data() -> None: ...

    @app.worker(interval_seconds=60)
    async def cleanup() -> None: ...

    @app.worker(cron="* * * * *", timezone="Europe/Vienna", depends_on=["fetch_data"], blocks=["cleanup"])
    async def nightly_report(ctx: Context) -> None:
        reports.append(ctx.job_id)

    await app.start()
    job = await image_resize.enqueue(path="a.png", width=320)
    assert isinstance(job, Job)
    assert await job.result(timeout_seconds=30) == "a.png@320"
    later = image_resize.with_options(priority=JobPriority.CRITICAL, delay_seconds=30, unique_key="a.png")
    waiting = await later.enqueue("a.png", width=640)
    assert waiting.status is JobStatus.SCHEDULED
    jobs = await app.enqueue_many([image_resize.call(path=path, width=320) for path in ("b.png", "c.png")])
    assert [await job.result(DEADLINE) for job in jobs] == ["b.png@320", "c.png@320"]
    await clock.advance(60)
    assert await waiting.result(DEADLINE) == "a.png@640"
    assert len(reports) == 1
    await app.stop()


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_shape_of_get_status(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=60, max_retries=0)
    idle = {
        "enabled": True,
        "running": False,
        "retrying": False,
        "failures": 0,
        "last_run": None,
        "last_end": None,
        "last_success": None,
        "last_error": None,
        "next_due": None,
        "last_error_at": None,
        "schedule": "every minute, counted from the end of the last run",
        "rescheduled": False,
    }
    unread = idle | {"enabled": None}
    assert app.get_status() == {"state": "stopped", "workers": 1, "running": 0, "worker_states": {"act": unread}}
    await app.start()
    await until_idle()
    begin = clock.now()
    assert app.get_status() == {
        "state": "running",
        "workers": 1,
        "running": 1,
        "worker_states": {"act": idle | {"running": True, "last_run": begin}},
    }
    await clock.advance(5)
    await act.finish()
    done = idle | {"last_run": begin, "last_end": begin + 5, "last_success": begin + 5, "next_due": begin + 65}
    assert app.get_status()["worker_states"]["act"] == done
    await clock.advance(60)
    assert app.get_status()["worker_states"]["act"]["next_due"] is None, "an interval begins when the run ends"
    await act.fail()
    assert app.get_status()["worker_states"]["act"] == done | {
        "last_run": begin + 65,
        "last_end": begin + 65,
        "next_due": begin + 125,
        "failures": 1,
        "last_error": "RuntimeError: act failed",
        "last_error_at": begin + 65,
    }
    await app.stop()
    assert app.get_status()["state"] == "stopped"


async def test_the_shape_of_auto_scale(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    app.register_pool("mail", min_workers=1, max_workers=9, scale_up_threshold=3)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="mail")
    await app.start()
    await until_idle()
    await app.enqueue_many([worker.call() for _ in range(11)])
    await until_idle()
    answer = await app.auto_scale()
    assert list(answer) == ["mail"]
    reason = answer["mail"].pop("reason")
    assert "10 queued" in reason
    assert answer == {"mail": {"current": 1, "target": 5, "action": "scale_up", "queue_depth": 10, "busy_workers": 1}}
    await until_idle()
    assert act.running == 5


@pytest.mark.parametrize("state", ["running", "stopped"])
async def test_auto_scale_without_a_queue_changes_nothing(stage: Stage, state: str) -> None:
    app = stage.app(max_concurrent=4)
    app.register_worker("w", lambda: None, execution_mode="triggered")
    if state == "running":
        await app.start()
    (answer,) = (await app.auto_scale()).values()
    assert set(answer) == {"current", "target", "action", "queue_depth", "busy_workers", "reason"}
    assert answer["target"] == 4
    assert answer["action"] == ("none" if state == "running" else "scale_up")


async def test_the_shape_of_the_pool_dashboard(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app(max_concurrent=2)
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0)
    app.register_pool("idle")
    await app.start()
    jobs = await app.enqueue_many([worker.call() for _ in range(5)])
    await until_idle()
    await act.finish()
    await act.fail()
    await clock.advance(6)
    board = await app.get_pool_dashboard()
    assert sorted(board) == ["default", "idle"]
    assert list(board["default"]) == ["workers", "queue_depth", "completed", "failed", "dead"]
    (instance,) = board["default"]["workers"]
    assert instance.keys() == WorkerInstance.__annotations__.keys()
    assert (instance["pool"], instance["status"]) == ("default", "busy")
    assert sorted(instance["current_jobs"]) == sorted([jobs[2].id, jobs[3].id])
    assert (instance["completed"], instance["failed"]) == (1, 1)
    assert instance["last_heartbeat"] > instance["started_at"]
    assert {name: board["default"][name] for name in ("queue_depth", "completed", "failed", "dead")} == {
        "queue_depth": 1,
        "completed": 1,
        "failed": 1,
        "dead": 1,
    }
    (idle,) = board["idle"]["workers"]
    assert (idle["status"], idle["current_jobs"]) == ("idle", [])
    assert json.loads(json.dumps(board)) == board


async def test_the_pool_dashboard_shows_this_process_as_it_is_now(stage: Stage) -> None:
    act = Act()
    app = stage.app(max_concurrent=2)
    app.register_pool("wide", min_workers=1, max_workers=8)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="wide")
    await app.start()
    await app.scale_pool("wide", min_workers=5)
    await app.auto_scale()
    jobs = await app.enqueue_many([worker.call() for _ in range(7)])
    await until_idle()
    await act.finish()
    board = (await app.get_pool_dashboard())["wide"]  # no beat since the start
    (instance,) = board["workers"]
    assert (instance["slots"], instance["completed"], board["completed"]) == (5, 1, 1)
    assert instance["current_jobs"] == [job.id for job in jobs[1:6]]
    assert instance["status"] == "busy"


async def test_no_pool_shows_more_busy_slots_than_slots(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_pool("wide", min_workers=4, max_workers=8)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="wide")
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(4)])
    await until_idle()
    await app.scale_pool("wide", min_workers=1, max_workers=1)
    await clock.advance(6)
    (node,) = await app.nodes()
    (run,) = [run for run in node.runs if run.pool == "wide"]
    assert (run.busy, run.workers) == (4, 4), "a slot that is given up is one until its job has ended"
    seen = await app.control.system.overview()
    (pool,) = [pool for pool in seen.pools if pool.name == "wide"]
    assert (pool.busy, pool.slots, pool.wanted) == (4, 4, 1)
    for _ in range(3):
        await act.finish()
    await clock.advance(6)
    (node,) = await app.nodes()
    assert [(run.busy, run.workers) for run in node.runs if run.pool == "wide"] == [(1, 1)]


async def test_the_shape_of_get_health(stage: Stage) -> None:
    app = stage.app()
    app.register_worker("w", lambda: None, execution_mode="triggered")
    await app.start()
    assert await app.get_health() == {"status": "ok", "problems": []}
    await app.disable_worker("w", "not today")
    health = await app.get_health()
    assert health["status"] == "degraded"
    (problem,) = health["problems"]
    assert set(problem) == {"code", "subject", "message", "remedy", "severity", "since", "target"}
    assert (problem["code"], problem["subject"], problem["target"]) == ("worker_disabled", "w", "worker:w")
    assert "not today" in problem["message"]
    assert "enable_worker" in problem["remedy"]


async def test_health_without_anybody_running(stage: Stage) -> None:
    app = stage.app()

    @app.task()
    async def work() -> None: ...

    await work.enqueue()
    health = await app.get_health()
    assert health["status"] == "failing"
    assert {problem["code"] for problem in health["problems"]} == {"no_leader", "pool_unserved"}
