"""A file that is deleted or replaced while it is open: nothing is written where no other process would read it."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shiftwork import StoreUnavailableError, WorkerOrchestrator
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file import store_threads as threads
from tests.polling import eventually
from tests.store.conformance.acts import NOW, add, claim_ids, claim_one, claims, finish, job, outcome

DEADLINE = 30.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "shiftwork.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(str(path))
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Create a new file at once where one was deleted."""
    monkeypatch.setattr(threads, "MISSING_SECONDS", 0.0)


def delete(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        if each.is_file():
            each.unlink()


async def ids_of(path: Path) -> list[str]:
    """The jobs that a process finds that opens the file now."""
    store = SqliteStore(str(path))
    await store.open()
    try:
        return sorted(record.id for record in await store.find(JobFilter()))
    finally:
        await store.close()


async def replace_file(path: Path, *ids: str) -> None:
    """Put another store, with these jobs, in the place of this one."""
    other = path.with_name("other.db")
    store = SqliteStore(str(other))
    await store.open()
    await add(store, *map(job, ids))
    await store.close()
    delete(path)
    other.rename(path)


@pytest.mark.parametrize("n", [1, 50], ids=["on the event loop", "on the thread"])
async def test_what_is_added_after_the_file_was_replaced_is_in_the_new_one(
    store: SqliteStore, path: Path, n: int
) -> None:
    await add(store, job("old"))
    await replace_file(path, "theirs")
    many = [job(f"{number}") for number in range(n)]
    await add(store, *many)
    assert await ids_of(path) == sorted(["theirs", *(one.id for one in many)])
    assert sorted(record.id for record in await store.find(JobFilter())) == await ids_of(path)


async def test_readers_notice_it_too(store: SqliteStore, path: Path) -> None:
    await add(store, job("old"))
    assert await store.get(["theirs"]) == [None]
    await replace_file(path, "theirs")
    [found] = await store.get(["theirs"])
    assert found is not None


async def test_a_deleted_file_is_waited_for_and_nothing_is_acknowledged_meanwhile(
    store: SqliteStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await add(store, job("1"))
    moved = shutil.move(path, path.with_name("moved.db"))
    for _ in range(3):
        with pytest.raises(StoreUnavailableError, match="was deleted or moved away while it was in use"):
            await store.add([job("2")], NOW)
        with pytest.raises(StoreUnavailableError, match="was deleted"):
            await store.get(["1"])
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 1
    shutil.move(moved, path)
    await add(store, job("3"))
    assert {"1", "3"} <= set(await ids_of(path))


@pytest.mark.usefixtures("impatient")
async def test_a_file_that_stays_away_is_created_again(store: SqliteStore, path: Path) -> None:
    await add(store, job("old"))
    delete(path)
    shutil.rmtree(f"{path}.side")
    await add(store, job("new"))
    assert await ids_of(path) == ["new"]


@pytest.mark.usefixtures("impatient")
async def test_a_file_that_was_moved_away_keeps_all_it_had(store: SqliteStore, path: Path) -> None:
    """What was committed is in the log, which has its place beside the path."""
    await add(store, *(job(f"{n}") for n in range(20)))
    moved = Path(shutil.move(path, path.with_name("moved.db")))
    await add(store, *(job(f"new {n}") for n in range(20)))
    assert len(await ids_of(path)) == 20
    assert {f"{n}" for n in range(20)} == set(await ids_of(moved))


async def test_claims_report_it_once_and_fences_continue(store: SqliteStore, path: Path) -> None:
    await add(store, job("old"))
    before = await claim_one(store, "old")
    await replace_file(path, "1", "2")
    reported = await claims(store, edition="any")
    assert (reported.jobs, reported.stale) == ([], True)
    claimed = await claim_one(store, "1")
    assert claimed.fence > before.fence
    assert (await store.finish([outcome(before)], NOW)).accepted == [False]
    await finish(store, outcome(claimed))
    assert await claim_ids(store) == ["2"]


async def test_other_processes_still_wake_this_one(store: SqliteStore, path: Path) -> None:
    bell = store.listen({"pool:p"})
    await replace_file(path)
    shutil.rmtree(f"{path}.side")
    await store.get(["1"])
    await store.add([], NOW)
    await bell.wait()
    other = SqliteStore(str(path))
    await other.open()
    ringing = asyncio.ensure_future(bell.wait())
    await add(other, job("1"))
    async with asyncio.timeout(DEADLINE):
        await ringing
    await other.close()
    bell.close()


async def test_a_node_continues_with_the_new_file(path: Path) -> None:
    """What runs continues, what is enqueued into the new file runs, and an event reports it."""
    app, client = (WorkerOrchestrator(f"sqlite:///{path}", tick_interval=0.5) for _ in range(2))
    begun, go_on, ran = asyncio.Event(), asyncio.Event(), list[str]()

    async def hold() -> None:
        begun.set()
        await go_on.wait()
        ran.append("hold")

    async def note(what: str) -> None:
        ran.append(what)

    holding, noting = app.task(name="hold")(hold), app.task(name="note")(note)
    client.task(name="hold")(hold)
    theirs = client.task(name="note")(note)
    await app.start()
    await (await theirs.enqueue("before")).ended(timeout_seconds=DEADLINE)
    await holding.enqueue()
    async with asyncio.timeout(DEADLINE):
        await begun.wait()
    await replace_file(path)
    for worker, what in ((theirs, "client"), (noting, "node")):
        job = await worker.enqueue(what)
        assert await job.ended(timeout_seconds=DEADLINE) == "completed"
    go_on.set()
    await eventually(lambda: "hold" in ran)
    assert [event.name for event in await app.events()].count("store.emptied") == 1
    assert "store_emptied" in [problem["code"] for problem in (await app.get_health())["problems"]]
    await app.stop()
    await client.close()
    assert len(await ids_of(path)) == 2
