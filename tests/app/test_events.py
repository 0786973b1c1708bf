"""Events and hooks: what happens is kept and reported; a failing hook harms nothing else."""

import asyncio

import pytest

from shiftwork import UnknownOptionError, WorkerOrchestrator
from shiftwork.core.model.event import Event
from shiftwork.events import NAMES
from shiftwork.runtime.clock import ManualClock, until_idle
from tests.runtime.stage import DEADLINE, Act, Stage, node_of, started


async def test_hooks_may_be_plain_or_async_decorated_or_handed_over(stage: Stage) -> None:
    heard: list[str] = []
    app = stage.app()

    @app.on("worker.disabled")
    def plain(event: Event) -> None:
        heard.append(f"plain {event.subject}")

    @app.on("worker.disabled")
    async def coroutine(event: Event) -> None:
        await asyncio.sleep(0)
        heard.append(f"async {event.subject}")

    everything = app.on("*", lambda event: heard.append(f"* {event.name}"))
    assert callable(everything)
    assert plain.__name__ == "plain"
    app.register_worker("w", lambda: None)
    await app.disable_worker("w")
    await until_idle()
    assert heard == ["plain w", "* worker.disabled", "async w"]


@pytest.mark.parametrize("error", [RuntimeError, SystemExit, asyncio.CancelledError])
async def test_a_hook_that_fails_is_logged_and_harms_nothing_else(
    stage: Stage, tolerated: list[str], caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    tolerated.append("the hook")
    heard: list[str] = []
    app = stage.app()

    @app.on("job.dead")
    def bad(event: Event) -> None:
        raise error("a bad hook")

    @app.on("job.dead")
    async def worse(event: Event) -> None:
        raise error("a worse hook")

    app.on("job.dead", lambda event: heard.append(event.subject))

    @app.task(max_retries=0)
    async def die() -> None:
        raise ValueError("dead")

    @app.task()
    async def live() -> int:
        return 7

    await app.start()
    job = await die.enqueue()
    await job.ended(DEADLINE)
    await until_idle()
    assert heard == [job.id]
    assert await (await live.enqueue()).result(DEADLINE) == 7
    assert caplog.text.count("for job.dead failed") == 2


def test_an_unknown_event_is_refused_with_the_nearest() -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(UnknownOptionError, match=r"unknown event 'worker.disabeld': did you mean 'worker.disabled'"):
        app.on("worker.disabeld", print)
    with pytest.raises(UnknownOptionError):
        app.on("nonsense")(print)


async def test_a_stop_waits_for_hooks_that_are_under_way() -> None:
    app = WorkerOrchestrator("memory://")
    heard: list[str] = []

    @app.on("node.stopped")
    async def slow(event: Event) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        heard.append(event.name)

    async with started(app):
        pass
    assert heard == ["node.stopped"]


async def test_every_event_says_when_what_and_why_and_is_numbered(stage: Stage, clock: ManualClock) -> None:
    act, heard = Act(), list[Event]()
    app = stage.app()
    app.register_pool("mail")
    worker = app.register_worker("act", act, execution_mode="triggered", max_retries=0, pool="mail")
    app.on("*", heard.append)
    await app.start()
    await clock.advance(5)
    await app.pause_pool("mail", "a flood")
    await app.resume_pool("mail")
    await app.disable_worker("act", "no paper")
    await app.enable_worker("act")
    job = await worker.enqueue()
    await until_idle()
    await act.fail()
    await until_idle()
    kept = await app.events()
    assert [event.name for event in kept] == [
        "leader.elected",
        "node.started",
        "pool.paused",
        "pool.resumed",
        "worker.disabled",
        "worker.enabled",
        "job.dead",
    ]
    assert [event.seq for event in kept] == sorted({event.seq for event in kept})
    assert "a flood" in kept[2].message
    assert "no paper" in kept[4].message
    assert (kept[6].subject, kept[6].data["worker"], kept[6].at) == (job.id, "act", clock.now())
    assert {event.name for event in heard} == {event.name for event in kept}
    assert [event.name for event in await app.events(after=kept[4].seq)] == ["worker.enabled", "job.dead"]
    assert [event.name for event in await app.events(limit=1)] == ["job.dead"]


async def test_scaling_says_why(stage: Stage, clock: ManualClock) -> None:
    act = Act()
    app = stage.app()
    app.register_pool("mail", min_workers=1, max_workers=10, scale_up_threshold=2, scale_down_after_seconds=30)
    worker = app.register_worker("act", act, execution_mode="triggered", pool="mail", timeout_seconds=None)
    await app.start()
    await app.enqueue_many([worker.call() for _ in range(9)])
    await clock.advance(2)
    assert act.running >= 5
    while act.running:
        await act.finish()
    await clock.advance(400)
    assert node_of(app).pools["mail"].target == 1
    scaled = [event for event in await app.events() if event.name == "pool.scaled"]
    assert scaled[0].data["after"] > scaled[0].data["before"] == 1
    assert "scale_up_threshold" in scaled[0].message
    assert [event.data["after"] - event.data["before"] for event in scaled if "below" in event.message] == [-1] * (
        max(event.data["after"] for event in scaled) - 1
    )


def test_every_event_has_a_description() -> None:
    assert all(words and "." in name for name, words in NAMES.items())
