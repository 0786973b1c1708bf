"""A node that has nothing to do does next to nothing, and misses nothing for it."""

from shiftwork.runtime.clock import ManualClock
from tests.runtime.stage import Act, Stage, node_of

LONG_ENOUGH = 11.0
"""Seconds after which an idle leader is at rest, and does not plan by itself for another three."""


async def test_an_idle_leader_plans_seldom(stage: Stage, clock: ManualClock) -> None:
    app = stage.faulty_app(enable_health_checks=False)
    app.register_worker("act", Act(), execution_mode="triggered")
    await app.start()
    await clock.advance(LONG_ENOUGH)
    before = stage.faults.calls["stats"]
    await clock.advance(60)
    assert stage.faults.calls["stats"] - before <= 60 / 3


async def test_jobs_end_the_rest(stage: Stage, clock: ManualClock) -> None:
    act, app = Act(), stage.faulty_app(enable_health_checks=False)
    app.register_pool("p", min_workers=4, max_workers=4)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="p")
    await app.start()
    await clock.advance(LONG_ENOUGH)
    before = stage.faults.calls["stats"]
    await worker.enqueue()
    await clock.advance(0)
    assert act.running == 1
    assert stage.faults.calls["stats"] == before, "the job starts first"
    await clock.advance(3)
    assert stage.faults.calls["stats"] - before == 3
    await act.finish()


async def test_a_pool_without_slots_is_not_kept_waiting_by_the_rest(stage: Stage, clock: ManualClock) -> None:
    act, app = Act(), stage.app()
    app.register_pool("p", min_workers=0, max_workers=2, scale_down_after_seconds=1)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="p")
    await app.start()
    await clock.advance(LONG_ENOUGH)
    assert node_of(app).pools["p"].target == 0
    await worker.enqueue()
    await clock.advance(0.5)
    assert act.running == 1
    await act.finish()


async def test_a_leader_at_rest_follows_people_at_once(stage: Stage, clock: ManualClock) -> None:
    app = stage.app()
    app.register_pool("p", min_workers=1, max_workers=2)
    app.register_worker("act", Act(), execution_mode="triggered", pool="p")
    await app.start()
    await clock.advance(LONG_ENOUGH)
    await stage.app().scale_pool("p", 4, 6)
    await clock.advance(0.5)
    assert node_of(app).pools["p"].target == 4


async def test_the_slots_of_a_node_that_leaves_are_not_kept_waiting_by_the_rest(
    stage: Stage, clock: ManualClock
) -> None:
    stays, leaves = stage.app(), stage.app()
    for app in (stays, leaves):
        app.register_pool("p", min_workers=4, max_workers=4)
        app.register_worker("act", Act(), execution_mode="triggered", pool="p")
        await app.start()
    await clock.advance(LONG_ENOUGH)
    assert node_of(stays).pools["p"].target == 2
    await leaves.stop()
    await clock.advance(1.5)
    assert node_of(stays).pools["p"].target == 4
