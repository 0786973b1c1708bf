"""What people change while it runs: the bounds of pools, nodes to empty; and what is not possible in place."""

from typing import TYPE_CHECKING, Any

import pytest

from shiftwork import ConfigurationError, JobStatus, UnknownNodeError, UnknownPoolError, WorkerOrchestrator
from shiftwork.core.doc_kinds import PLAN, PLAN_NAME
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.observing.beats import Beat
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.store.docs import read, stored
from shiftwork.views.overview import NodeView
from tests.runtime.stage import Act, Stage, node_of, status

if TYPE_CHECKING:
    from shiftwork.core.model.event import Event


def app_with(stage: Stage, act: Act, **pool: Any) -> tuple[WorkerOrchestrator, Worker[[], object]]:
    """An app whose worker `act` runs in pool `p`."""
    app = stage.app()
    app.register_pool("p", **pool)
    return app, app.register_worker("act", act, execution_mode="triggered", pool="p", timeout_seconds=None)


def name_of(app: WorkerOrchestrator) -> str:
    """The name of its node."""
    return node_of(app).name


async def node(app: WorkerOrchestrator, name: str) -> NodeView:
    (found,) = [one for one in await app.nodes() if one.name == name]
    return found


async def codes(app: WorkerOrchestrator) -> dict[str, str]:
    return {problem["code"]: problem["severity"] for problem in (await app.get_health())["problems"]}


# ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_nodes_say_what_they_have_and_run(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = app_with(stage, act, min_workers=2, max_workers=2)
    outside = stage.app()
    assert await outside.nodes() == []
    await app.start()
    await worker.enqueue()
    await clock.advance(6)
    (seen,) = await outside.nodes()
    assert (seen.name, seen.leads, seen.status, seen.drained_at) == (name_of(app), True, "serving", None)
    assert (seen.pid > 0, seen.cores > 0, seen.memory > 0, seen.pools) == (True, True, True, ("p",))
    ((run),) = seen.runs
    assert (run.pool, run.workers, run.busy, run.instances) == ("p", 2, 1, 1)


async def test_a_drained_node_finishes_what_it_runs_and_gets_nothing_more(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    one, worker = app_with(stage, act, min_workers=2, max_workers=2)
    await one.start()
    first = await worker.enqueue()
    await until_idle()
    two, _ = app_with(stage, act, min_workers=2, max_workers=2)
    await two.start()
    heard: list[Event] = []
    two.on("node.drained", heard.append)

    seen = await two.drain_node(name_of(one), "new kernel")
    assert seen.name == name_of(one)
    assert seen.drained_at == clock.now()
    await clock.advance(6)
    assert (await node(two, name_of(one))).status == "draining"
    assert act.running == 1
    assert [run.workers for run in (await node(two, name_of(two))).runs] == [2], "its share has not moved"
    second = await worker.enqueue()
    await clock.advance(2)
    assert (await second.refresh()).record.instance is not None
    assert (await second.refresh()).record.instance.startswith(name_of(two))  # type: ignore[union-attr]

    await act.finish()
    await clock.advance(6)
    assert await status(first) is JobStatus.COMPLETED
    empty = await node(two, name_of(one))
    assert (empty.status, empty.runs) == ("drained", [])
    assert await codes(two) == {}
    (event,) = heard
    assert (event.subject, event.message) == (name_of(one), f"node {name_of(one)} is drained: new kernel")
    assert event.data["reason"] == "new kernel"
    assert "@" in event.data["by"]
    assert [kept.name for kept in await two.events()].count("node.drained") == 1


async def test_draining_does_not_need_a_leader(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = app_with(stage, act)
    await app.start()
    await stage.depose(app)
    await app.drain_node(name_of(app))
    await until_idle()
    job = await worker.enqueue()
    await until_idle()
    assert await status(job) is JobStatus.QUEUED


async def test_undone_it_takes_work_again_and_loses_nothing(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = app_with(stage, act, min_workers=2, max_workers=2)
    await app.start()
    first = await worker.enqueue()
    await until_idle()
    await app.drain_node(name_of(app))
    await clock.advance(2)
    second = await worker.enqueue()
    await clock.advance(2)
    assert act.started == 1
    problems = (await app.get_health())["problems"]
    assert [(problem["code"], problem["severity"]) for problem in problems] == []  # it still serves the first

    back = await app.undrain_node(name_of(app))
    assert back.drained_at is None
    await clock.advance(2)
    assert act.started == 2
    await act.finish()
    await clock.advance(20)
    assert act.started == 2, "the one that was let go took the lease of the new one with it"
    await act.finish()
    await clock.advance(1)
    assert [await status(job) for job in (first, second)] == [JobStatus.COMPLETED] * 2
    assert (await second.refresh()).attempt == 1


async def test_jobs_that_only_drained_nodes_could_run_are_a_problem(stage: Stage, clock: ManualClock) -> None:
    app, worker = app_with(stage, Act())
    await app.start()
    await app.drain_node(name_of(app))
    await clock.advance(2)
    assert await codes(app) == {}
    await worker.enqueue()
    await clock.advance(1)
    (problem,) = (await app.get_health())["problems"]
    assert (problem["code"], problem["severity"]) == ("pool_unserved", "critical")
    assert "drained" in problem["message"]
    assert "--undo" in problem["remedy"]


async def test_twice_is_once(stage: Stage) -> None:
    app, _ = app_with(stage, Act())
    await app.start()
    since = (await app.drain_node(name_of(app))).drained_at
    assert (await app.drain_node(name_of(app), "again")).drained_at == since
    await app.undrain_node(name_of(app))
    await app.undrain_node(name_of(app))
    told = [event.message for event in await app.events() if event.name == "node.drained"]
    assert told == [f"node {name_of(app)} is drained", f"node {name_of(app)} takes work again"]


async def test_the_beginning_of_a_name_is_enough_if_it_is_clear(stage: Stage) -> None:
    one, _ = app_with(stage, Act())
    await one.start()
    name = name_of(one)
    assert (await one.drain_node(name[:-2])).name == name
    two, _ = app_with(stage, Act())
    await two.start()
    with pytest.raises(UnknownNodeError, match=r"2 nodes begin with .*; write more of the name"):
        await one.drain_node(name.rpartition("-")[0])
    with pytest.raises(UnknownNodeError, match="there is no live node ''"):
        await one.drain_node("")
    with pytest.raises(UnknownNodeError, match=f"there is no live node 'x{name}': did you mean '{name}'"):
        await one.drain_node(f"x{name}")


async def test_a_node_that_was_not_heard_of_for_a_while_is_still_drained(stage: Stage, clock: ManualClock) -> None:
    one, _ = app_with(stage, Act())
    two, _ = app_with(stage, Act())
    await one.start()
    await two.start()
    gone = name_of(one)
    await two.drain_node(gone)
    await stage.crash(one)
    await clock.advance(120)
    assert gone not in {seen.name for seen in await two.nodes()}
    plan = await read(stage.store, PLAN, PLAN_NAME)
    assert plan is not None
    assert gone in plan.drained


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_bounds_hold_at_once_and_through_restarts_until_reset(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = app_with(stage, act, min_workers=1, max_workers=2)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(9)])
    await clock.advance(2)
    assert act.running == 1
    heard: list[Event] = []
    app.on("pool.bounds", heard.append)
    scaled = await stage.app().scale_pool("p", 4, 6)
    assert (scaled.min_workers, scaled.max_workers) == (4, 6)
    await clock.advance(1)
    assert act.running == 4
    await app.scale_pool("p", min_workers=5)  # the other one stays as it was set
    await clock.advance(1)
    assert act.running == 5
    assert [event.message for event in heard] == [
        "pool p may have 5 to 6 slots, set by hand; it was 4 to 6",
    ]
    assert heard[0].data["min_workers"] == 5

    await stage.stop(app)
    again, _ = app_with(stage, act, min_workers=1, max_workers=2)
    await again.start()
    await clock.advance(2)
    assert act.running == 5

    back = await again.scale_pool("p", reset=True)
    assert (back.min_workers, back.max_workers) == (1, 2)
    assert (await again.events())[-1].message == "pool p may have 1 to 2 slots, as registered; it was 5 to 6"
    await clock.advance(120)
    assert act.running == 5, "running jobs are not interrupted"
    for _ in range(4):
        await act.finish()
    await clock.advance(2)
    assert act.running <= 2


async def test_a_pause_and_bounds_do_not_undo_each_other(stage: Stage) -> None:
    app, _ = app_with(stage, Act(), max_workers=5)
    await app.scale_pool("p", max_workers=3)
    await app.pause_pool("p", "audit")
    await app.scale_pool("p", min_workers=2)
    await app.resume_pool("p")
    (pool,) = [pool for pool in (await app.control.system.overview()).pools if pool.name == "p"]
    assert pool.config is not None
    assert (pool.config.min_workers, pool.config.max_workers, pool.by_hand) == (2, 3, True)


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (5, 3, r"pool 'p': min_workers \(5\) must not be above max_workers \(3\)"),
        (11, None, r"min_workers \(11\) must not be above max_workers \(10 as registered\)"),
        (None, 1, r"min_workers \(2 as registered\) must not be above max_workers \(1\)"),
        (-1, None, "min_workers must be at least 0, not -1"),
        (None, 0, "max_workers must be at least 1, not 0"),
        (1.5, None, "min_workers must be a whole number"),
        (None, None, "nothing to change"),
    ],
)
async def test_wrong_bounds_are_refused_and_nothing_changes(
    stage: Stage, low: int | None, high: int | None, says: str
) -> None:
    app, _ = app_with(stage, Act(), min_workers=2, max_workers=10)
    with pytest.raises(ConfigurationError, match=says):
        await app.scale_pool("p", low, high)
    assert await app.events() == []
    assert await stage.store.docs("pool") == []


async def test_bounds_follow_the_clock_until_a_person_sets_them(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = app_with(stage, act, max_workers=2, bounds={"* * * * *": (1, 2), "*/2 * * * *": (3, 4)})
    await clock.advance(120 - clock.now() % 120)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(9)])
    await clock.advance(2)
    assert act.running == 3
    (pool,) = [one for one in (await app.control.system.overview()).pools if one.name == "p"]
    assert pool.bounds is not None
    assert (pool.bounds.low, pool.bounds.high, pool.bounds.by) == (3, 4, "clock")
    heard: list[Event] = []
    app.on("pool.scaled", heard.append)
    await clock.advance(60)
    assert [event.message.partition(" since ")[0] for event in heard] == ["pool p: 3 → 2 slots: the clock's bounds"]
    assert heard[0].message.endswith(" UTC: 1 to 2")
    scaled = await app.scale_pool("p", 4, 4)
    assert (scaled.min_workers, scaled.max_workers) == (4, 4)
    await clock.advance(1)
    assert act.running == 4
    back = await app.scale_pool("p", reset=True)
    assert (back.min_workers, back.max_workers) == (1, 2)
    with pytest.raises(ConfigurationError, match=r"max_workers \(2 by the clock since .* UTC\); set both"):
        await app.scale_pool("p", min_workers=3)


async def test_a_process_without_workers_knows_how_long_the_jobs_of_others_take(
    stage: Stage, clock: ManualClock
) -> None:
    act = Act()
    app, worker = app_with(stage, act, max_workers=30, target_latency_seconds=20.0)
    await app.start()
    await worker.enqueue()
    await until_idle()
    await clock.advance(60)
    await act.finish()
    await stage.stop(app)
    await app.enqueue_many([worker.call() for _ in range(10)])
    reason = (await stage.app().auto_scale())["p"]["reason"]
    assert reason.startswith("10 queued, 10 min of work, need 30 to be done within 20 s")


async def test_bounds_of_an_unknown_pool(stage: Stage) -> None:
    app, _ = app_with(stage, Act())
    with pytest.raises(UnknownPoolError, match="there is no pool 'q'"):
        await app.scale_pool("q", 1)


async def test_bounds_that_the_app_no_longer_allows_make_it_give_way(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, _ = app_with(stage, act, min_workers=1, max_workers=9)
    await app.scale_pool("p", min_workers=6)
    later, _ = app_with(stage, act, min_workers=1, max_workers=3)
    await later.start()
    await clock.advance(6)
    (pool,) = [pool for pool in (await later.control.system.overview()).pools if pool.name == "p"]
    assert pool.config is not None
    assert (pool.config.min_workers, pool.config.max_workers, pool.slots, pool.wanted) == (6, 6, 6, 6)


# ── what runs ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_dashboard_has_every_instance_whole(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = app_with(stage, act, min_workers=3, max_workers=3)
    await app.start()
    done, held = await worker.enqueue(), await worker.enqueue()
    await until_idle()
    await act.finish()
    await clock.advance(6)
    (seen,) = (await stage.app().get_pool_dashboard())["p"]["workers"]
    assert done.id not in seen["current_jobs"]
    assert (seen["pool"], seen["node"], seen["status"], seen["current_jobs"]) == ("p", name_of(app), "busy", [held.id])
    assert (seen["completed"], seen["failed"], seen["slots"]) == (1, 0, 3)
    assert seen["pid"] > 0
    assert seen["memory"] > 1_000_000
    assert seen["started_at"] < seen["last_heartbeat"] <= clock.now()
    await app.drain_node(name_of(app))
    await clock.advance(6)
    assert [one["status"] for one in (await app.get_pool_dashboard())["p"]["workers"]] == ["draining"]
    await stage.crash(app)
    await clock.advance(16)
    assert [one["status"] for one in (await stage.app().get_pool_dashboard())["p"]["workers"]] == ["dead"]


async def test_a_glance_costs_four_questions(stage: Stage, clock: ManualClock) -> None:
    app, worker = app_with(stage, Act(), min_workers=2, max_workers=2)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(5)])
    await clock.advance(6)
    watcher = stage.faulty_app()
    await watcher.control.system.glance()
    stage.faults.calls.clear()
    seen = await watcher.control.system.glance()
    assert stage.faults.calls == {"stats": 1, "survey": 1, "instances": 1, "find": 1}
    (pool,) = seen.pools
    assert (pool.slots, pool.wanted, pool.stats.queued, pool.stats.processing) == (2, 2, 3, 2)
    assert (len(seen.jobs), len(seen.instances[0]["current_jobs"]), seen.leader) == (2, 2, name_of(app))


async def test_a_plan_that_cannot_be_read_hides_nothing(stage: Stage) -> None:
    app, _ = app_with(stage, Act())
    await app.start()
    doc = await stored(stage.store, PLAN, PLAN_NAME)
    assert await stage.store.put([Doc(PLAN.name, PLAN_NAME, b"\xc1", doc.version)]) == [True]
    assert [seen.status for seen in await app.nodes()] == ["serving"]
    assert {pool.name for pool in (await app.control.system.overview()).pools} == {"p"}


# ── health ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_pool_that_no_node_can_host(stage: Stage, clock: ManualClock) -> None:
    app, worker = app_with(stage, Act(), labels=["gpu"], min_workers=0)
    await app.start()
    assert await codes(app) == {}
    await worker.enqueue()
    await clock.advance(2)
    (problem,) = (await app.get_health())["problems"]
    assert (problem["code"], problem["severity"]) == ("pool_unhosted", "critical")
    assert "gpu" in problem["message"]
    assert "shiftwork run MODULE:NAME --label gpu" in problem["remedy"]


async def test_a_pool_that_no_live_node_knows(stage: Stage, clock: ManualClock) -> None:
    old, worker = app_with(stage, Act())
    await old.start()
    await stage.stop(old)
    other = stage.app()
    other.register_worker("else", Act(), execution_mode="triggered")
    await other.start()
    assert await codes(other) == {}, "a pool without jobs that nobody registers any more is no problem"
    await worker.enqueue()
    assert await codes(other) == {"pool_unhosted": "critical"}


async def test_a_pool_that_should_have_more_than_fits(stage: Stage, clock: ManualClock) -> None:
    app, _ = app_with(stage, Act(), cpu=10_000.0, min_workers=1)
    await app.start()
    await clock.advance(2)
    (problem,) = (await app.get_health())["problems"]
    assert (problem["code"], problem["subject"], problem["severity"]) == ("pool_unplaced", "p", "warning")
    assert "10000 cores" in problem["message"]


async def test_neither_a_pool_at_rest_nor_one_that_starts_is_a_problem(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app, worker = app_with(stage, act, min_workers=0)
    await app.start()
    await clock.advance(6)
    assert await codes(app) == {}
    await worker.enqueue()
    assert await codes(app) == {}
    await clock.advance(2)
    assert act.running == 1


# ── in place ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_what_cannot_be_had_in_place_is_refused_at_start(stage: Stage, kind: Any) -> None:
    app = stage.app()
    app.register_pool("images", kind=kind, max_jobs_per_instance=100)
    app.register_pool("mail", kind=kind, max_memory_per_instance="1GiB")
    with pytest.raises(ConfigurationError) as raised:
        await app.start()
    first, second = str(raised.value).splitlines()
    assert first.startswith("pool images: max_jobs_per_instance ")
    assert second.startswith("pool mail: max_memory_per_instance ")
    assert all("`shiftwork run`" in line and "kind='process'" in line for line in (first, second))
    assert app.get_status()["state"] == "stopped"


async def test_a_pool_for_several_processes_runs_in_place_with_a_warning(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    act = Act()
    app = stage.app()
    app.register_pool("mail", min_workers=2, max_workers=2, processes="auto")
    worker = app.task(name="act", pool="mail")(act)
    await app.start()
    await worker.enqueue()
    await until_idle()
    assert act.running == 1
    (warning,) = [line for line in caplog.messages if "processes='auto'" in line]
    assert warning.startswith("pool mail: processes='auto' has no effect with start()")
    assert "`shiftwork run`" in warning


async def test_jobs_that_an_instance_claimed_ahead_are_not_shown_as_running(stage: Stage, clock: ManualClock) -> None:
    app, worker = app_with(stage, Act())
    jobs = await app.enqueue_many([worker.call() for _ in range(3)])
    store, now = await app.control.store.open(), clock.now()
    await store.beat([Beat(instance="n/p#1", node="n", pool="p", slots=2, busy=2, status="busy")], 15, now)
    assert len((await store.claim("n/p#1", "p", 3, now, [worker.name])).jobs) == 3
    (seen,) = (await app.get_pool_dashboard())["p"]["workers"]
    assert (seen["slots"], seen["current_jobs"]) == (2, [job.id for job in jobs[:2]])
