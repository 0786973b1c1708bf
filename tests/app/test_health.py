"""The health monitor: a problem is said once when it appears, and once when it is gone."""

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from shiftwork import Breaker, WorkerOrchestrator
from shiftwork.core.health.health_values import Health, Problem
from shiftwork.errors import StoreFullError, StoreUnavailableError
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.node.health_monitor import HealthMonitor
from shiftwork.store.memory.store import MemoryStore
from tests.runtime.stage import Act, Stage, worker_of

if TYPE_CHECKING:
    from shiftwork.core.model.event import Event


async def test_a_problem_is_reported_once_and_so_is_its_end(stage: Stage, clock: ManualClock) -> None:
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


async def test_of_many_nodes_one_reports_and_the_next_leader_does_not_report_again(
    stage: Stage, clock: ManualClock
) -> None:
    first, second = stage.app(), stage.app()
    for app in (first, second):
        app.register_worker("w", lambda: None, execution_mode="triggered")
        await app.start()
    await first.disable_worker("w", "no paper")
    await clock.advance(60)
    await stage.stop(first)
    await clock.advance(60)
    await second.enable_worker("w")
    await clock.advance(60)
    told = [event.name for event in await second.events(limit=1000) if event.name.startswith("health.")]
    assert told == ["health.problem", "health.recovered"]


async def test_what_the_leader_died_of_is_reported_by_the_next(stage: Stage, clock: ManualClock) -> None:
    first, second = stage.app(), stage.app()
    await first.start()
    await second.start()
    await clock.advance(20)
    await stage.crash(first)
    await clock.advance(60)
    told = [event.message for event in await second.events(limit=1000) if event.name == "health.problem"]
    assert any("vanished" in message for message in told)


async def test_a_store_that_stays_away_is_reported_to_those_that_can_still_hear(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise StoreUnavailableError("nothing listens there")

    heard: list[Event] = []
    app = stage.app()
    app.on("health.problem", heard.append)
    app.on("health.recovered", heard.append)
    await app.start()
    with monkeypatch.context() as outage:
        outage.setattr(stage.store, "survey", away)
        await clock.advance(8)
        assert heard == []  # perhaps it is only restarted
        await clock.advance(30)
        assert [(event.name, event.subject) for event in heard] == [("health.problem", "store")]
        assert "nothing listens there" in heard[0].message
        await clock.advance(60)
    await clock.advance(30)
    assert [event.name for event in heard] == ["health.problem", "health.recovered"]


async def test_leases_that_ended_while_the_store_was_away_are_an_event_only_if_they_are_not_renewed() -> None:
    heard: list[str] = []

    def emit(name: str, subject: str, message: str, **_: object) -> None:
        heard.append(f"{name} {subject}")

    async def judge(*, with_room: bool = False) -> Health:
        if not looks:
            raise StoreUnavailableError("nothing listens there")
        return Health("failing", looks.pop(0))

    looks: list[list[Problem]] = []
    reporter: Any = SimpleNamespace(emit=emit, emit_quietly=emit)
    leader: Any = SimpleNamespace(leading=True)
    monitor = HealthMonitor(judge, MemoryStore(), reporter, ManualClock(), leader)
    renewed, gone = (Problem("node_silent", name, "has not renewed", "check it", "critical") for name in "ab")
    with pytest.raises(StoreUnavailableError):
        await monitor.poll()
    looks += [[renewed, gone], [gone], [renewed]]
    await monitor.poll()
    assert heard == []
    await monitor.poll()
    assert heard == ["health.problem b"]
    await monitor.poll()
    assert heard[1:] == ["health.problem a", "health.recovered b"], "without an outage it is one at once"


async def test_the_next_leader_reports_what_the_one_before_it_could_not_and_nothing_twice() -> None:
    heard: list[str] = []

    def emit(name: str, subject: str, message: str, **_: object) -> None:
        heard.append(f"{name} {subject}")

    def emit_quietly(name: str, *_: object, **__: object) -> None:
        pytest.fail(f"{name} is not kept in the store")

    async def judge(*, with_room: bool = False) -> Health:
        return Health("degraded", found)

    reporter: Any = SimpleNamespace(emit=emit, emit_quietly=emit_quietly)
    leader: Any = SimpleNamespace(leading=False)
    monitor = HealthMonitor(judge, MemoryStore(), reporter, ManualClock(), leader)
    problem = Problem("dead_letters", "p", "3 jobs are dead", "look at them")
    found = [problem]
    await monitor.poll()
    leader.leading = True
    await monitor.poll()
    assert heard == ["health.problem p"], "the leader died before it could report it"
    leader.leading, found = False, []
    await monitor.poll()
    leader.leading = True
    await monitor.poll()
    assert heard == ["health.problem p", "health.recovered p"], "it died again, before the end was reported"
    leader.leading, found = False, [problem]
    await monitor.poll()
    await monitor.poll()
    leader.leading = True
    await monitor.poll()
    assert heard[2:] == [], "another leader had two looks to report it"
    leader.leading, found = False, []
    await monitor.poll()
    await monitor.poll()
    leader.leading, found = True, [problem]
    await monitor.poll()
    assert heard[2:] == ["health.problem p"], "it was gone for two looks, so it is a new one"


async def test_a_leader_finds_out_that_the_store_has_no_room_and_every_process_learns_it(
    stage: Stage, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[float] = []

    async def no_room() -> None:
        tried.append(clock.now())
        raise StoreFullError("could not extend file: no space left")

    app, witness = stage.app(), stage.app()
    await app.start()
    await clock.advance(60)
    with monkeypatch.context() as full:
        full.setattr(stage.store, "try_room", no_room, raising=False)
        await clock.advance(200)
        assert len(tried) == 3
        problem = next(each for each in (await witness.get_health())["problems"] if each["code"] == "store_failing")
        assert "a test write fails: could not extend file: no space left" in problem["message"]
    await clock.advance(100)
    assert "store_failing" not in {each["code"] for each in (await witness.get_health())["problems"]}
    assert [event.name for event in await witness.events(limit=1000) if event.subject == "store"] == [
        "health.problem",
        "health.recovered",
    ]


async def test_dead_letters_are_as_old_as_the_leaders_first_look_at_them(stage: Stage, clock: ManualClock) -> None:
    first, second, act = stage.app(), stage.app(), Act()
    for app in (first, second):
        app.register_worker("w", act, execution_mode="triggered", max_retries=0)
        await app.start()
        await clock.advance(1)
    await worker_of(second, "w").enqueue()
    await until_idle()
    await act.fail()
    died = clock.now()
    await clock.advance(20)

    async def since() -> float | None:
        problems = (await second.get_health())["problems"]
        since: float | None = next(one["since"] for one in problems if one["code"] == "dead_letters")
        return since

    seen = await since()
    assert seen is not None
    assert died <= seen <= died + 16
    await stage.crash(first)
    await clock.advance(120)
    assert await since() == seen, "the next leader goes on with what the last one knew"


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


async def test_a_node_that_cannot_beat_is_a_problem_and_then_an_event(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    victim, judge = stage.app(), stage.app()
    worker = victim.register_worker("act", act, execution_mode="triggered", timeout_seconds=None)
    await victim.start()
    (name,) = [node.name for node in await judge.nodes()]
    await worker.enqueue()
    await until_idle()
    await stage.crash(victim)
    await clock.advance(13)
    problems = {problem["code"]: problem for problem in (await judge.get_health())["problems"]}
    assert problems.keys() == {"node_silent"}
    assert (problems["node_silent"]["subject"], problems["node_silent"]["severity"]) == (name, "critical")
    await clock.advance(3)
    problems = {problem["code"]: problem for problem in (await judge.get_health())["problems"]}
    assert problems.keys() >= {"node_silent", "no_leader"}
    assert "16 s" in problems["node_silent"]["message"]
    await judge.start()
    await clock.advance(30)
    assert "node_silent" not in {problem["code"] for problem in (await judge.get_health())["problems"]}
    told = [event.subject for event in await judge.events(limit=1000) if event.name == "node.lost"]
    assert told == [name]


async def test_a_node_that_stops_is_not_lost(stage: Stage, clock: ManualClock) -> None:
    first, second = stage.app(), stage.app()
    await first.start()
    await second.start()
    await clock.advance(20)
    await stage.stop(first)
    await clock.advance(60)
    assert "node.lost" not in {event.name for event in await second.events(limit=1000)}


async def test_a_schedule_that_is_not_fired_is_a_problem(stage: Stage, clock: ManualClock) -> None:
    app, judge = stage.app(), stage.app()
    act = Act()
    app.register_worker("w", act, interval_seconds=300)
    await app.start()
    await until_idle()
    await act.finish()
    await clock.advance(10)
    await stage.crash(app)
    await clock.advance(300)
    assert "schedule_missed" not in {problem["code"] for problem in (await judge.get_health())["problems"]}
    await clock.advance(60)
    (missed,) = [one for one in (await judge.get_health())["problems"] if one["code"] == "schedule_missed"]
    assert (missed["subject"], "no job was created" in missed["message"]) == ("w", True)


async def test_a_breaker_that_opened_is_a_problem(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    breaker = Breaker(failures=1, name="smtp")
    worker = app.register_worker("act", act, execution_mode="triggered", breaker=breaker, max_retries=0)
    await app.start()
    await worker.enqueue()
    await until_idle()
    await act.fail()
    await clock.advance(1)
    problems = {problem["code"]: problem["subject"] for problem in (await app.get_health())["problems"]}
    assert problems["breaker_open"] == "smtp"


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
    await until_idle()
    await act.fail()
    await app.pause_pool("default", "audit")
    health = await app.get_health()
    assert {problem["code"]: problem["subject"] for problem in health["problems"]} == {
        "pool_paused": "default",
        "dead_letters": "dead letters",
    }


async def codes_of(app: WorkerOrchestrator) -> dict[str, str]:
    return {problem["code"]: problem["subject"] for problem in (await app.get_health())["problems"]}


async def test_a_failing_worker_is_seen_at_once_and_an_event_only_if_it_continues(
    stage: Stage, clock: ManualClock
) -> None:
    heard: list[Event] = []
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=60)
    app.on("health.problem", heard.append)
    await app.start()
    await clock.advance(13)  # the monitor looks after 15 seconds
    await act.fail()
    assert await codes_of(app) == {"worker_failing": "act"}
    state = app.get_status()["worker_states"]["act"]
    assert (state["retrying"], state["failures"]) == (True, 0)
    assert (state["last_error"], state["last_error_at"]) == ("RuntimeError: act failed", clock.now())
    await clock.advance(7)
    state = app.get_status()["worker_states"]["act"]
    assert (state["running"], state["retrying"]) == (True, False)
    await act.finish()
    assert await codes_of(app) == {}
    assert app.get_status()["worker_states"]["act"]["last_error"] == "RuntimeError: act failed"
    await clock.advance(30)
    assert heard == []
    await clock.advance(40)
    await act.fail()
    (view,) = (await app.control.system.overview()).workers
    assert (view.stats.retrying, view.next_due) == (1, None), "the interval is counted from the end of the retry"
    await clock.advance(40)
    assert [event.subject for event in heard] == ["act"]


async def test_dead_runs_of_a_schedule_that_recovered_are_not_a_problem(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_worker("act", act, interval_seconds=60, max_retries=0)
    await app.start()
    await until_idle()
    await act.fail()
    assert await codes_of(app) == {"worker_failing": "act", "dead_letters": "dead letters"}
    await clock.advance(61)
    await act.finish()
    assert await codes_of(app) == {}


async def test_a_removed_worker_is_not_a_problem_unless_jobs_of_it_wait(stage: Stage, clock: ManualClock) -> None:
    old, new = stage.app(), stage.app()
    gone = old.register_worker("gone", Act(), execution_mode="triggered")
    for app in (old, new):
        app.register_worker("kept", lambda: None, execution_mode="triggered")
    await old.start()
    await old.disable_worker("gone", "no longer needed")
    await stage.stop(old)
    await new.start()
    await clock.advance(1)
    assert await codes_of(new) == {}
    heard: list[Event] = []
    new.on("health.problem", heard.append)
    await old.enable_worker("gone")
    await gone.enqueue()
    await clock.advance(9)
    assert await codes_of(new) == {}  # a node that has it may be about to start
    await clock.advance(2)
    assert await codes_of(new) == {"worker_unknown": "gone"}
    await clock.advance(15)
    assert [event.message.partition(".")[0] for event in heard] == [
        "1 job waits for worker gone, which no running node has"
    ]


async def test_a_backlog_of_an_unknown_worker_is_one_row_and_asks_for_no_slots(
    stage: Stage, clock: ManualClock
) -> None:
    old, new = stage.app(), stage.app()
    for app in (old, new):
        app.register_pool("mail", min_workers=1, max_workers=40, target_latency_seconds=5)
        app.register_worker("kept", lambda: None, execution_mode="triggered", pool="mail")
    gone = old.register_worker("gone", Act(), execution_mode="triggered", pool="mail")
    await old.start()
    await stage.stop(old)
    await new.start()
    await clock.advance(1)
    await old.enqueue_many([gone.call() for _ in range(300)])
    await clock.advance(60)
    problem = await only_problem(new)
    assert (problem["code"], problem["severity"], problem["target"]) == ("worker_unknown", "critical", "worker:gone")
    assert (
        "the oldest job of pool mail has waited 60 s, more than 5 s; of 300 queued, 300 are held"
        in (problem["message"])
    )
    (pool,) = [pool for pool in (await new.control.system.overview()).pools if pool.name == "mail"]
    assert (pool.slots, pool.wanted) == (1, 1)


async def test_a_write_that_fails_is_a_problem_until_one_succeeds(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, witness = stage.faulty_app(), stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await worker.enqueue()
    await until_idle()
    stage.faults.fail("finish", "add", error=StoreFullError("no space left"))
    await act.finish()
    await clock.advance(6)  # beats get through, and tell the others
    assert await codes_of(app) == await codes_of(witness) == {"store_failing": "store"}
    with pytest.raises(StoreFullError):
        await worker.enqueue()
    stage.faults.clear()
    await clock.advance(6)
    assert await codes_of(app) == {"store_failing": "store"}  # adding has not succeeded since
    await worker.enqueue()
    await clock.advance(6)
    assert await codes_of(app) == await codes_of(witness) == {}


async def test_a_store_that_can_only_be_read_is_a_problem_for_those_that_write(stage: Stage) -> None:
    app = stage.faulty_app()
    stage.faults.fail("hold", error=StoreFullError("no space left"))
    seen = await app.control.system.overview(try_write=True)
    (problem,) = [problem for problem in seen.health.problems if problem.code == "store_failing"]
    assert "a test write fails: no space left" in problem.message
    assert problem.since is None, "it was found just now; it may have failed for hours"


async def test_a_node_that_vanished_is_missed_until_another_begins_on_its_machine(
    stage: Stage, clock: ManualClock
) -> None:
    async def missed() -> list[str]:
        problems = (await witness.get_health())["problems"]
        return [problem["subject"] for problem in problems if problem["code"] == "node_lost"]

    victim, witness = stage.app(), stage.app()
    await witness.start()
    await victim.start()
    name = next(node.name for node in await witness.nodes() if not node.leads)
    await stage.crash(victim)
    await clock.advance(30)
    assert await missed() == [name]
    await clock.advance(500)
    assert await missed() == [name]  # long enough for whoever looks now and then
    await stage.app().start()
    await clock.advance(2)
    assert await missed() == []


async def test_a_node_that_vanished_is_not_missed_forever(stage: Stage, clock: ManualClock) -> None:
    victim, witness = stage.app(), stage.app()
    await witness.start()
    await victim.start()
    await stage.crash(victim)
    await clock.advance(620)
    assert (await witness.get_health())["status"] == "ok"


async def test_old_jobs_of_an_unknown_worker_are_not_a_problem_while_the_first_node_starts(
    stage: Stage, clock: ManualClock
) -> None:
    old, new = stage.app(), stage.app()
    await old.register_worker("gone", Act(), execution_mode="triggered").enqueue()
    await clock.advance(100)
    new.register_worker("kept", lambda: None, execution_mode="triggered")
    await new.start()
    await clock.advance(5)
    assert "worker_unknown" not in await codes_of(new)
    await clock.advance(6)
    assert await codes_of(new) == {"worker_unknown": "gone"}


async def test_a_worker_that_waits_for_one_that_nothing_runs_is_reported(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    app.register_worker("login", lambda: None, execution_mode="triggered")
    app.register_worker("fetch", lambda: None, interval_seconds=60, depends_on=["login"])
    await app.start()
    await clock.advance(16)
    (problem,) = (await app.get_health())["problems"]
    assert (problem["code"], problem["subject"]) == ("worker_starved", "fetch")
    assert "waits for login, which has never succeeded, and nothing runs it" in problem["message"]
    assert await app.trigger_worker("login")
    await until_idle()
    assert (await app.get_health())["problems"] == []


async def only_problem(app: WorkerOrchestrator) -> dict[str, Any]:
    (problem,) = (await app.get_health())["problems"]
    return dict(problem)


async def test_a_pool_whose_slots_all_hang_is_stuck_within_a_minute_and_then_an_event(
    stage: Stage, clock: ManualClock
) -> None:
    heard: list[Event] = []
    act = Act()
    app = stage.app()
    app.on("health.problem", heard.append)
    app.register_pool("images", min_workers=2, max_workers=2)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="images", timeout_seconds=3600)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(6)])
    await clock.advance(1)
    await act.finish()
    started_at = clock.now()
    await clock.advance(10)
    assert (await app.get_health())["status"] == "ok"
    await clock.advance(2)
    problem = await only_problem(app)
    assert (problem["code"], problem["target"], problem["severity"]) == ("pool_stuck", "pool:images", "critical")
    assert problem["since"] == started_at
    assert (
        "all 2 slots of pool images are busy and nothing has ended for 12 s (usual: 1 s); 3 queued"
        in (problem["message"])
    )
    assert "shiftwork stack " in problem["remedy"]
    await clock.advance(48 - 12)
    assert [event.subject for event in heard] == ["images"]
    await act.finish()
    assert (await app.get_health())["status"] == "ok"


async def test_a_pool_whose_slots_all_have_long_runs_is_not_stuck_if_some_always_are(
    stage: Stage, clock: ManualClock
) -> None:
    """The mean is two seconds; but one run in a hundred takes minutes, and that one is nearly always seen running."""
    act = Act()
    app = stage.app()
    app.register_pool("images", min_workers=1, max_workers=1, target_latency_seconds=3600)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="images", timeout_seconds=3600)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(103)])
    for _ in range(100):
        await until_idle()
        await act.finish()
    await clock.advance(200)
    await act.finish()
    await clock.advance(190)
    assert (await app.get_health())["problems"] == []
    await clock.advance(60)
    problem = await only_problem(app)
    assert problem["code"] == "pool_stuck"
    assert "(usual: 2 s, long ones 4 min)" in problem["message"]
    await act.finish()


async def test_a_backlog_behind_a_limit_names_it_and_asks_for_no_slots(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_pool("mail", min_workers=1, max_workers=40, target_latency_seconds=5)
    worker = app.register_worker("send", act, execution_mode="triggered", pool="mail", max_running=2)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(300)])
    await clock.advance(9)
    problem = await only_problem(app)
    assert (problem["code"], problem["target"]) == ("pool_starved", "worker:send")
    assert "of 298 queued, 298 are held: 2 of 2 allowed send jobs are running" in problem["message"]
    assert "raise max_running of send" in problem["remedy"]
    (pool,) = [pool for pool in (await app.control.system.overview()).pools if pool.name == "mail"]
    assert (pool.slots, pool.wanted) == (2, 2)


async def test_since_survives_a_change_of_leader(stage: Stage, clock: ManualClock) -> None:
    first, second = stage.app(), stage.app()
    for app in (first, second):
        app.register_worker("w", lambda: None, execution_mode="triggered")
        await app.start()
    at = clock.now()
    await first.disable_worker("w", "no paper")
    await clock.advance(40)
    await stage.stop(first)
    await clock.advance(40)
    assert ((await only_problem(second))["since"], (await only_problem(second))["target"]) == (at, "worker:w")


async def test_a_store_that_refuses_writes_is_reported_with_since_when(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, witness = stage.faulty_app(), stage.app()
    worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    await worker.enqueue()
    await until_idle()
    stage.faults.fail("finish", error=StoreFullError("no space left"))
    at = clock.now()
    await act.finish()
    await clock.advance(20)
    for seen_by in (app, witness):
        problem = await only_problem(seen_by)
        assert (problem["code"], problem["target"]) == ("store_failing", "store")
        assert abs(problem["since"] - at) < 1
        assert "writing to the store has failed for 20 s" in problem["message"]
