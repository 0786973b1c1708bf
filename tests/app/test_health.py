"""The health monitor: a problem is said once when it appears, and once when it is gone."""

from typing import TYPE_CHECKING

from tests.runtime.stage import Act, Stage
from windlass.runtime.clock import ManualClock, settle

if TYPE_CHECKING:
    from windlass.core.model import Event


async def test_a_problem_is_said_once_and_taken_back_once(stage: Stage, clock: ManualClock) -> None:
    heard: list[Event] = []
    app = stage.app()
    app.register_worker("w", lambda: None, execution_mode="triggered")
    app.on("health.problem", heard.append)
    app.on("health.recovered", heard.append)
    await app.start()
    await clock.advance(60)
    assert heard == []
    await app.disable_worker("w", "no paper")
    await clock.advance(60)
    assert [(event.name, event.subject) for event in heard] == [("health.problem", "w")]
    assert "no paper" in heard[0].message
    assert "enable_worker('w')" in heard[0].message
    await app.enable_worker("w")
    await clock.advance(60)
    assert [event.name for event in heard] == ["health.problem", "health.recovered"]


async def test_the_monitor_can_be_left_out(stage: Stage, clock: ManualClock) -> None:
    heard: list[Event] = []
    app = stage.app(enable_health_checks=False)
    app.register_worker("w", lambda: None, execution_mode="triggered")
    app.on("health.problem", heard.append)
    await app.start()
    await app.disable_worker("w")
    await clock.advance(60)
    assert heard == []
    assert (await app.get_health())["status"] == "degraded"


async def test_a_silent_instance_is_seen_until_its_jobs_are_taken(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    victim, judge = stage.app(), stage.app()
    worker = victim.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await victim.start()
    await worker.enqueue()
    await settle()
    await stage.crash(victim)
    await clock.advance(16)
    problems = (await judge.get_health())["problems"]
    assert {problem["code"] for problem in problems} >= {"instance_silent", "no_leader"}
    (silent,) = [problem for problem in problems if problem["code"] == "instance_silent"]
    assert (silent["severity"], "16 s" in silent["message"]) == ("critical", True)


async def test_a_queue_that_waits_too_long_is_a_problem(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_pool("mail", min_workers=1, max_workers=1, target_latency_seconds=20)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="mail", timeout_seconds=None)
    await app.start()
    await app.enqueue_many([worker.call(), worker.call()])
    await clock.advance(19)
    assert (await app.get_health())["status"] == "ok"
    await clock.advance(2)
    (problem,) = (await app.get_health())["problems"]
    assert (problem["code"], problem["subject"]) == ("pool_starved", "mail")


async def test_a_paused_pool_and_dead_letters_are_problems(stage: Stage) -> None:
    act = Act()
    app = stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0)
    await app.start()
    await worker.enqueue()
    await settle()
    await act.fail()
    await app.pause_pool("default", "audit")
    health = await app.get_health()
    assert {problem["code"]: problem["subject"] for problem in health["problems"]} == {
        "pool_paused": "default",
        "dead_letters": "default",
    }
