"""Apps that cannot be imported, or only sometimes, and what their hooks hear of it."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shiftwork import JobStatus
from shiftwork.core.observing.beats import Beat
from tests.polling import eventually
from tests.system.mill import Mill

pytestmark = pytest.mark.timeout(180)  # many processes; the machine may be busy


@pytest.fixture
async def fragile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Mill]:
    """An app whose processes can be told to fail."""
    for name in ("MILL_LOG", "MILL_STORE", "MILL_LEASE"):
        monkeypatch.setenv(name, "")
    it = Mill(tmp_path, lease=6.0, program="fragile")
    yield it
    await it.close()


async def events(mill: Mill, name: str) -> list[str]:
    store = await mill.app.control.store.open()
    return [event.message for event in await store.events(limit=1000) if event.name == name]


async def beats(mill: Mill) -> list[Beat]:
    store = await mill.app.control.store.open()
    return [known.beat for known in await store.instances() if known.beat.machine is not None]


@pytest.mark.parametrize(
    ("order", "why"),
    [
        pytest.param("abort", "was killed by SIGABRT", marks=pytest.mark.soak),
        ("refuse", "the app's lifespan failed: RuntimeError: the licence server is away"),
    ],
)
async def test_a_pool_whose_processes_cannot_be_started_is_failing_until_they_can(
    fragile: Mill, order: str, why: str
) -> None:
    module = fragile.module
    module.orders.write_text(order)
    node = await fragile.up(fragile.node())

    async def failing() -> list[str]:
        return [message for message in await events(fragile, "pool.failing") if "brittle" in message]

    async def said() -> bool:
        return bool(await failing())

    await eventually(said, failure=lambda: node.said)
    (message,) = await failing()
    assert why in message

    async def told() -> bool:
        return any(why in beat.machine.failing.get("brittle", "") for beat in await beats(fragile) if beat.machine)

    await eventually(told, failure=lambda: node.said)
    assert not node.over
    jobs = [await module.crack.enqueue(number=1), await module.ring.enqueue(number=1)]
    module.orders.unlink()
    assert {job.status for job in await fragile.all_ended(jobs)} == {JobStatus.COMPLETED}

    async def cleared() -> bool:
        return all(not beat.machine.failing for beat in await beats(fragile) if beat.machine)

    await eventually(cleared, failure=lambda: node.said)
    assert [message for message in await events(fragile, "pool.recovered") if "brittle" in message]
    node.signal(signal.SIGTERM)
    assert node.end() == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import os; os.abort()", "was killed by SIGABRT"),
        ("import os; os._exit(7)", "exited with status 7"),
    ],
)
async def test_an_app_that_cannot_be_imported(
    fragile: Mill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    (tmp_path / "broken.py").write_text(text + "\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    fragile.program = "broken"
    node = fragile.node()
    assert node.end() == 1
    assert words in node.said
    assert "broken" in node.said
    assert "shiftwork: " in node.said


# ── hooks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_hooks_hear_of_what_happens_to_a_node(fragile: Mill) -> None:
    node = await fragile.up(fragile.node())
    started = await fragile.noted("node.started", "heard")
    assert started[0].pid != node.pid
    jobs = [await fragile.module.crack.enqueue(number=1), await fragile.module.ring.enqueue(number=1)]
    await fragile.all_ended(jobs)
    node.signal(signal.SIGTERM)
    assert node.end() == 0
    assert fragile.lines("node.stopped", "heard")
    assert {line.pid for line in fragile.lines("job.completed", "heard")} == {started[0].pid}
    entered = [line.pid for line in fragile.lines("lifespan", "start")]
    ran = {line.pid for worker in ("crack", "ring") for line in fragile.lines(worker, "around")}
    assert len(entered) == len({*entered}) == 3, "two processes of a process pool, and one of an async pool"
    assert len(ran) == 2
    assert ran < {*entered}
    assert sorted(line.pid for line in fragile.lines("lifespan", "end")) == sorted(entered)


@pytest.mark.parametrize("order", ["block hooks", "kill hooks"])
async def test_hooks_that_misbehave_harm_no_job(fragile: Mill, order: str) -> None:
    fragile.module.orders.write_text(order)
    node = await fragile.up(fragile.node())
    await fragile.noted("leader.elected", "heard")
    jobs = [await fragile.module.crack.enqueue(number=1), await fragile.module.chain.enqueue(number=3)]
    ended = await fragile.all_ended(jobs)
    assert {job.status for job in ended} == {JobStatus.COMPLETED}
    assert (await fragile.ended(await fragile.job(await ended[1].result()))).status is JobStatus.COMPLETED
    assert ended[1].progress is not None
    if order == "block hooks":
        await eventually(lambda: "a hook: has blocked the event loop for " in node.said, failure=lambda: node.said)
    node.signal(signal.SIGTERM)
    assert node.end() == 0
