"""One namespace is one app: another one that starts there is rejected, and harms nothing."""

import asyncio
import gc
import re
from pathlib import Path

import pytest

from shiftwork import NamespaceInUseError, StoreUnavailableError, WorkerOrchestrator
from shiftwork.runtime.node.node_join import JOIN_LOCK, JOIN_LOCK_SECONDS
from shiftwork.store.memory import MemoryStore
from tests.runtime.stage import DEADLINE, Stage, leads, started


def app_with(store: str | MemoryStore, *workers: str, namespace: str = "default") -> WorkerOrchestrator:
    app = WorkerOrchestrator(store, namespace=namespace)
    for name in workers:

        async def work() -> str:
            return "done"

        app.task(name=name)(work)
    return app


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"memory://{tmp_path}" if request.param == "memory" else f"sqlite:///{tmp_path}/shiftwork.db"


async def test_another_app_in_the_same_namespace_is_refused(url: str) -> None:
    shop, blog = app_with(url, "mail", "resize"), app_with(url, "publish")
    async with started(shop):
        known = await shop.workers()
        with pytest.raises(NamespaceInUseError) as caught:
            await blog.start()
        assert blog.get_status()["state"] == "stopped"
        assert await shop.workers() == known, "the refused one has left definitions behind"
        assert len((await shop.control.system.overview()).nodes) == 1, "the refused one has left a lease behind"
        job, _ = await shop.control.jobs.enqueue("mail", {})
        assert await job.result(DEADLINE) == "done"
    told = str(caught.value)
    assert "namespace 'default' of " in told
    assert "runs mail, resize, and none of the workers of this app" in told
    assert "(publish)" in told
    assert 'namespace="…"), or set SHIFTWORK_NAMESPACE where it runs. If that' in told
    assert re.search(r"If that node is gone, its lease ends in 1\d s", told)


async def test_it_may_start_once_the_other_has_stopped_and_elsewhere_at_once(url: str) -> None:
    async with started(app_with(url, "mail")), started(app_with(url, "publish", namespace="blog")):
        pass
    async with started(app_with(url, "publish")):
        pass


async def test_versions_of_one_app_and_apps_without_workers_may_meet(url: str) -> None:
    async with (
        started(app_with(url, "mail", "old")),
        started(app_with(url, "mail", "new")),
        started(app_with(url)),
        started(app_with(url, "mail")),
    ):
        pass


async def test_of_two_that_start_at_the_same_instant_one_stays(url: str) -> None:
    apps = [app_with(url, f"w{number}") for number in range(5)]
    answers = await asyncio.gather(*(app.start() for app in apps), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, NamespaceInUseError)]
    assert len(refused) == 4, answers
    for app in apps:
        await app.stop()


async def test_one_that_vanished_keeps_others_out_for_its_lease_only(stage: Stage) -> None:
    vanished, later = stage.app(lease_seconds=15.0), stage.app()
    vanished.task(name="mail")(lambda: None)
    later.task(name="publish")(lambda: None)
    await vanished.start()
    await stage.crash(vanished)
    with pytest.raises(NamespaceInUseError, match=r"^memory:// is in use by .* its lease ends in 15 s"):
        await later.start()
    await stage.clock.advance(15.0)
    await later.start()


async def test_one_that_died_at_the_door_does_not_keep_it_shut(stage: Stage) -> None:
    await stage.store.hold(JOIN_LOCK, "died", 1, JOIN_LOCK_SECONDS, stage.clock.now())
    app = stage.app()
    app.task(name="mail")(lambda: None)
    starting = asyncio.create_task(app.start())
    await stage.clock.advance(JOIN_LOCK_SECONDS)
    async with asyncio.timeout(DEADLINE):
        await starting


async def test_one_that_loses_its_turn_while_it_joins_tries_again(stage: Stage) -> None:
    slow, quick = stage.faulty_app(), stage.app()
    slow.task(name="mail")(lambda: None)
    quick.task(name="publish")(lambda: None)
    landing = stage.faults.hold("beat", "before")
    starting = asyncio.create_task(slow.start())
    await stage.clock.advance(JOIN_LOCK_SECONDS)
    await quick.start()
    landing.set()
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(NamespaceInUseError):
            await starting
    assert len((await quick.control.system.overview()).nodes) == 1


async def test_one_that_lost_its_turn_while_it_joined_leads(stage: Stage) -> None:
    app = stage.faulty_app()
    app.task(name="mail")(lambda: None)
    landing = stage.faults.hold("beat", "before")
    starting = asyncio.create_task(app.start())
    await stage.clock.advance(JOIN_LOCK_SECONDS)
    landing.set()
    async with asyncio.timeout(DEADLINE):
        await starting
    assert leads(app)


async def test_a_store_so_slow_that_every_turn_is_lost_keeps_a_node_out_only_if_another_app_is_there(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shiftwork.runtime.node.node_join.JOIN_LOCK_SECONDS", 0.0)
    mail, publish = stage.app(), stage.app()
    mail.task(name="mail")(lambda: None)
    publish.task(name="publish")(lambda: None)
    async with asyncio.timeout(DEADLINE):
        await mail.start()
        with pytest.raises(NamespaceInUseError):
            await publish.start()


async def test_one_that_could_not_start_leaves_no_lease_behind(stage: Stage) -> None:
    app, other = stage.faulty_app(), stage.app()
    app.task(name="mail")(lambda: None)
    other.task(name="publish")(lambda: None)
    stage.faults.fail("put")
    with pytest.raises(StoreUnavailableError):
        await app.start()
    assert await stage.store.instances() == []
    await other.start()


@pytest.mark.parametrize("call", ["beat", "stats"])
async def test_one_that_could_not_start_leaves_no_error_that_is_never_read(
    stage: Stage, caplog: pytest.LogCaptureFixture, call: str
) -> None:
    app = stage.faulty_app()
    app.task(name="mail")(lambda: None)
    stage.faults.fail("claim")
    stage.faults.fail(call)
    with pytest.raises(StoreUnavailableError):
        await app.start()
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_a_node_that_cannot_beat_does_not_start(stage: Stage) -> None:
    app = stage.faulty_app()
    app.task(name="mail")(lambda: None)
    stage.faults.fail("beat")
    with pytest.raises(StoreUnavailableError, match="the store is away"):
        await app.start()
    stage.faults.clear()
    await app.start()
