"""What a deployment does once: by one process at a time, also where several deploy at the same instant."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest

from shiftwork import ConfigurationError, LifecycleError, WorkerOrchestrator
from shiftwork.app import deployment
from tests.polling import eventually
from tests.runtime.stage import DEADLINE, worker_of


def an_app(url: str) -> WorkerOrchestrator:
    app = WorkerOrchestrator(url)

    @app.task
    def report(region: str) -> None: ...

    @app.on_deploy
    async def schedules() -> None:
        await app.put_schedule("north", report.call(region="north"), cron="0 6 * * *")

    @app.on_deploy
    def more() -> None:
        app.blocking.put_schedule("south", report.call(region="south"), every="5m")

    return app


async def names(app: WorkerOrchestrator) -> list[str]:
    return [schedule.name for schedule in await app.get_schedules()]


@pytest.mark.parametrize("started", [False, True])
async def test_plain_and_async_functions_run_in_their_order(tmp_path: Path, *, started: bool) -> None:
    app = an_app(f"sqlite:///{tmp_path}/shop.db")
    if started:
        await app.start()
    assert await app.deploy() == ["schedules", "more"]
    before = await app.get_schedules()
    assert await app.deploy() == ["schedules", "more"]
    assert [one.next_fire for one in await app.get_schedules()] == [one.next_fire for one in before]
    assert await names(app) == ["north", "south"]
    await (app.stop() if started else app.close())


async def test_a_plain_function_may_return_a_coroutine(tmp_path: Path) -> None:
    app = an_app(f"sqlite:///{tmp_path}/shop.db")
    report = worker_of(app, "report")
    app.on_deploy(lambda: app.put_schedule("west", report.call(region="west"), every="1h"))
    assert await app.deploy() == ["schedules", "more", "<lambda>"]
    assert await names(app) == ["north", "south", "west"]
    await app.close()


def test_it_can_be_called_without_an_event_loop(tmp_path: Path) -> None:
    app = an_app(f"sqlite:///{tmp_path}/shop.db")
    assert app.blocking.deploy() == ["schedules", "more"]
    assert [one.name for one in app.blocking.get_schedules()] == ["north", "south"]
    app.blocking.close()


async def test_a_test_deploys_to_its_own_store() -> None:
    app = an_app("memory://")
    async with app.testing():
        await app.deploy()
        assert await names(app) == ["north", "south"]
    assert await names(app) == []


async def test_processes_that_deploy_at_once_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "LOOK_AGAIN_SECONDS", 0.001)
    url = f"sqlite:///{tmp_path}/shop.db"
    apps = [WorkerOrchestrator(url) for _ in range(5)]
    inside, most = 0, 0

    async def migrate() -> None:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(20):
            await asyncio.sleep(0)
        inside -= 1

    for app in apps:
        app.on_deploy(migrate)
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(*(app.deploy() for app in apps))
    assert most == 1
    for app in apps:
        await app.close()


async def test_every_kind_of_function_runs_to_its_end() -> None:
    app = WorkerOrchestrator("memory://")
    worker = app.register_worker("w", lambda: None)

    async def put(name: str) -> None:
        await app.put_schedule(name, worker.call(), every="5m")

    class Put:
        async def __call__(self) -> None:
            await put("object")

    app.on_deploy(partial(put, "partial"))
    app.on_deploy(Put())
    app.on_deploy(lambda: put("lambda"))

    @app.on_deploy()
    async def brackets() -> None:
        await put("brackets")

    assert await app.deploy() == ["put", "Put", "<lambda>", "brackets"]
    assert await names(app) == ["brackets", "lambda", "object", "partial"]
    await app.close()


async def test_a_process_that_loses_its_turn_says_so_and_does_not_continue(tmp_path: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shop.db")
    ran: list[str] = []

    @app.on_deploy
    async def freezes() -> None:
        ran.append("freezes")
        store, now = await app.control.store.open(), app.control.now()
        assert await store.hold(
            deployment.DEPLOYMENT_LEASE, "another process", 1, 15.0, now + deployment.HELD_SECONDS + 1
        )

    app.on_deploy(lambda: ran.append("never"))
    with pytest.raises(LifecycleError, match="another one may have deployed at the same time: deploy again"):
        await app.deploy()
    assert ran == ["freezes"]
    await app.close()


async def test_a_process_whose_turn_ran_out_unnoticed_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app, passed = WorkerOrchestrator(f"sqlite:///{tmp_path}/shop.db"), [0.0]
    monkeypatch.setattr(deployment, "monotonic", lambda: passed[0])

    @app.on_deploy
    def freezes() -> None:
        passed[0] += deployment.HELD_SECONDS + 1

    with pytest.raises(LifecycleError, match=r"did not renew its turn to deploy for 15 s"):
        await app.deploy()
    await app.close()


async def test_a_process_that_waits_for_another_one_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployment, "LOOK_AGAIN_SECONDS", 0.001)
    app = an_app(f"sqlite:///{tmp_path}/shop.db")
    store = await app.control.store.open_to_change()
    assert await store.hold(deployment.DEPLOYMENT_LEASE, "another process", 1, 15.0, app.control.now())
    deploying = asyncio.create_task(app.deploy())
    async with asyncio.timeout(DEADLINE):
        await eventually(lambda: "another process deploys; waiting until it has ended" in caplog.messages)
        await store.drop(deployment.DEPLOYMENT_LEASE, "another process")
        assert await deploying == ["schedules", "more"]
    await app.close()


async def test_a_function_that_fails_ends_the_turn_and_the_deployment(tmp_path: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shop.db")
    ran: list[str] = []

    @app.on_deploy
    def breaks() -> None:
        ran.append("breaks")
        raise ValueError("no")

    app.on_deploy(lambda: ran.append("never"))
    for _ in range(2):
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(ValueError, match="no"):
                await app.deploy()
    assert ran == ["breaks", "breaks"]
    await app.close()


def test_a_function_takes_nothing() -> None:
    app = WorkerOrchestrator("memory://")
    with pytest.raises(ConfigurationError, match=r"@app.on_deploy calls its function without arguments: seed\(\)"):

        @app.on_deploy  # type: ignore[type-var]
        def seed(app: WorkerOrchestrator) -> None: ...


@pytest.mark.parametrize("kind", ["plain", "async"])
def test_a_function_does_not_yield(kind: str) -> None:
    app = WorkerOrchestrator("memory://")

    def plain() -> Iterator[None]:
        yield

    async def later() -> AsyncIterator[None]:
        yield

    with pytest.raises(ConfigurationError, match="remove the yield"):
        app.on_deploy(plain if kind == "plain" else later)
