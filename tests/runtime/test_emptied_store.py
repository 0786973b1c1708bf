"""A node whose store was emptied publishes its definitions before it claims, and says what happened."""

from itertools import pairwise

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.publication import Publication
from shiftwork.runtime.registry import Registry
from shiftwork.store.memory import MemoryStore
from tests.runtime.stage import Act, Stage, worker_of

KEPT = {"url", "_lock", "_bells", "_clock"}


def empty(store: MemoryStore) -> None:
    """Lose everything, as a server does that is started again without its data."""
    fresh = vars(MemoryStore())
    vars(store).update({name: value for name, value in fresh.items() if name not in KEPT})


async def test_no_job_starts_before_the_definitions_are_there(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.faulty_app(tick_interval=1.0)
    app.register_worker("act", act, execution_mode="triggered", max_running=1)
    await app.start()
    await clock.advance(1)
    empty(stage.store)
    stage.faults.fail("put")
    jobs = [await worker_of(app, "act").enqueue() for _ in range(3)]
    await clock.advance(20)
    assert act.started == 0
    stage.faults.clear()
    await clock.advance(20)
    assert (act.started, act.most) == (1, 1)
    for _ in jobs:
        await act.finish()
    assert (act.started, act.most) == (3, 1)


async def test_the_leases_are_renewed_before_anything_is_claimed(stage: Stage, clock: ManualClock) -> None:
    """Otherwise a leader would take the new jobs back at once: their instance has no lease."""
    act = Act()
    app, other = (stage.app(tick_interval=1.0, lease_seconds=60.0) for _ in range(2))
    for each in (app, other):
        each.register_worker("act", act, execution_mode="triggered")
        await each.start()
    await clock.advance(1)
    empty(stage.store)
    for _ in range(5):
        await worker_of(app, "act").enqueue()
    await clock.advance(5)
    assert act.started == 5
    assert not [event for event in await app.events() if event.name == "job.lost"]
    while act.waiting:
        await act.finish()
    assert {job.status for job in await app.find_jobs()} == {"completed"}


async def test_the_outcomes_that_an_emptied_store_rejects_do_not_flood_the_log(
    stage: Stage, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    act = Act()
    app = stage.app(tick_interval=1.0, max_concurrent=30)
    act_worker = app.register_worker("act", act, execution_mode="triggered")
    await app.start()
    jobs = await app.enqueue_many([act_worker.call() for _ in range(30)])
    await clock.advance(1)
    empty(stage.store)
    while act.waiting:
        await act.finish()
    lines = [line for line in caplog.messages if "was rejected" in line]
    assert lines[0] == (
        f"act: the outcome 'completed' of job {jobs[0].id} was rejected: "
        "another run has taken it over, or the store was emptied"
    )
    assert len(lines) == 5
    await clock.advance(60)
    assert "act: … and 25 more rejected outcomes in the last 60 s" in caplog.text


async def test_what_was_registered_while_it_ran_is_published_again_too(stage: Stage, clock: ManualClock) -> None:
    early, late = Act(), Act()
    app = stage.app(tick_interval=1.0)
    app.register_worker("early", early, execution_mode="triggered")
    await app.start()
    app.register_pool("late", min_workers=1, max_workers=1)
    app.register_worker("late", late, execution_mode="triggered", pool="late", blocks=["early"])
    await clock.advance(5)
    empty(stage.store)
    for name in ("early", "late"):
        await worker_of(app, name).enqueue()
    await clock.advance(5)
    assert early.started + late.started == 1, "its rules hold from the first claim on"
    assert set(await stage.app().workers()) == {"early", "late"}
    assert "late" in await stage.app().pools()
    for act in (early, late) if early.started else (late, early):
        await act.finish()
    assert (early.started, late.started) == (1, 1)


async def test_of_several_nodes_one_reports_it_and_people_are_reminded_for_an_hour(
    stage: Stage, clock: ManualClock
) -> None:
    apps = [stage.app(tick_interval=1.0) for _ in range(3)]
    for app in apps:
        app.register_worker("act", Act(), execution_mode="triggered")
        await app.start()
    await clock.advance(1)
    empty(stage.store)
    await clock.advance(10)
    names = [event.name for event in await apps[0].events()]
    assert names.count("store.emptied") == 1
    assert "store_emptied" in await codes(apps[0])
    assert await apps[1].workers()
    clock.jump(3600)
    assert "store_emptied" not in await codes(apps[0])


async def test_a_node_that_starts_in_an_emptied_store_hides_nothing(stage: Stage, clock: ManualClock) -> None:
    first = stage.app(tick_interval=30.0)
    first.register_worker("act", Act(), execution_mode="triggered")
    await first.start()
    await clock.advance(1)
    empty(stage.store)
    second = stage.app(tick_interval=1.0)
    second.register_worker("act", Act(), execution_mode="triggered")
    await second.start()
    await clock.advance(60)
    assert [event.name for event in await first.events()].count("store.emptied") == 1


async def test_what_is_lost_again_and_again_is_published_at_growing_intervals(clock: ManualClock) -> None:
    published = list[float]()

    async def beat() -> None:
        published.append(clock.monotonic())

    registry = Registry({}, {}, {})
    publication = Publication(registry, store=MemoryStore(), clock=clock, emit=lambda *_, **__: None, beat=beat)
    await publication.begin(await publication.read())
    lost = publication.edition
    assert lost is not None

    async def gaps(n: int) -> list[float]:
        """Lose the definitions whenever they were published, and claim whenever that is allowed."""
        published.clear()
        while len(published) < n:
            again = await publication.renew(lost)
            clock.jump(max(0.0, again - clock.now()) + 1e-6)
        return [round(later - before, 1) for before, later in pairwise(published)]

    assert await gaps(10) == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]
    clock.jump(60)
    assert await gaps(3) == [0.1, 0.2]


async def codes(app: WorkerOrchestrator) -> list[str]:
    return [problem["code"] for problem in (await app.get_health())["problems"]]
