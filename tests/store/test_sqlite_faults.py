"""What goes wrong with a file: each has its own error, harms nothing else, and is over when its cause is over."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from click.testing import CliRunner

from shiftwork.cli.entry import main
from shiftwork.core.doc_kinds import POOL
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.model.job_changes import Discard, JobFilter, Requeue
from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import JobStatus, Progress, ProgressNote
from shiftwork.errors import (
    CorruptStoreError,
    LifecycleError,
    SchemaVersionError,
    StoreBusyError,
    StoreError,
    StoreFullError,
    StoreUnavailableError,
    UnknownStoreError,
)
from shiftwork.store.abilities import try_room
from shiftwork.store.docs import change, read
from shiftwork.store.sealed.key_ring import KeyRing
from shiftwork.store.sealed.store import sealed
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file import call_servers, driver, faults, schema
from tests.store.conformance.acts import NOW, add, claim, claim_ids, claim_one, finish, job, statuses, succeeded
from tests.store.servers.small_disk import small_disk

NOBODY = 65534
LOCKER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shiftwork.db")


@pytest.fixture
async def store(path: str) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(path)
    await opened.open()
    yield opened
    await opened.close()


async def tamper(store: SqliteStore, statement: str, *args: Any) -> None:
    """Do to the file what no program should."""
    await store._write(lambda session: session.db.execute(statement, args).fetchall())


@contextmanager
def locked(path: str) -> Iterator[None]:
    """Another process holds the write lock."""
    with subprocess.Popen(
        [sys.executable, "-c", LOCKER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as locker:
        assert locker.stdout is not None
        assert locker.stdout.readline() == "locked\n"
        try:
            yield
        finally:
            locker.kill()


# ── opening ──────────────────────────────────────────────────────────────────────────────────────────────────────────


async def refused(path: str, error: type[StoreError], words: str) -> None:
    """Opening fails, says so, fails again, and leaves nothing behind."""
    store = SqliteStore(path)
    for _ in range(2):
        with pytest.raises(error, match=words):
            await store.open()
    with pytest.raises(error, match=words):
        await add(store, job("1"))
    await store.close()


async def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    await refused(str(tmp_path / "nowhere" / "shiftwork.db"), StoreUnavailableError, "nowhere")


async def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    await refused(str(tmp_path / "file" / "shiftwork.db"), StoreUnavailableError, "is not a folder")


def make_folder(path: str) -> None:
    Path(path).mkdir()


def make_mode(path: str, mode: int) -> None:
    Path(path).chmod(mode)


def write(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


async def test_a_path_that_is_a_folder(path: str) -> None:
    make_folder(path)
    await refused(path, StoreUnavailableError, "it is a folder; name a file")


@contextmanager
def as_somebody_else() -> Iterator[None]:
    """Not as root, who may write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


async def test_a_folder_that_cannot_be_written(store: SqliteStore) -> None:
    await add(store, job("1"))  # everything that a store needs has been imported
    with tempfile.TemporaryDirectory(prefix="shiftwork-locked-") as locked:
        make_mode(locked, 0o555)
        with as_somebody_else():
            await refused(f"{locked}/shiftwork.db", StoreUnavailableError, "Permission denied")


async def test_a_file_that_is_not_a_database(path: str) -> None:
    write(path, b"This is not a database. " * 100)
    await refused(path, CorruptStoreError, "not a database")


async def test_a_database_of_something_else(path: str) -> None:
    with closing(driver.connect(path)) as db:
        db.execute("CREATE TABLE recipes (name TEXT)")
    await refused(path, StoreUnavailableError, "database of another program")


def test_a_file_that_another_process_is_just_making_is_ours(path: str) -> None:
    with closing(driver.connect(path)) as db, closing(driver.connect(path)) as maker:

        class Between:
            """A connection between whose two looks the other process makes its tables."""

            looks = 0

            def execute(self, statement: str) -> Any:
                self.looks += 1
                if self.looks == 2:
                    maker.execute("BEGIN IMMEDIATE")
                    schema._create(maker)
                    maker.execute("COMMIT")
                return db.execute(statement)

        schema.require_ours(cast("driver.Connection", Between()), path)


async def test_a_newer_schema(store: SqliteStore, path: str) -> None:
    await store.close()
    with closing(driver.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    await refused(path, SchemaVersionError, f"schema version {schema.SCHEMA_VERSION + 1}.*Upgrade shiftwork")


async def test_a_view_of_another_version_is_replaced(store: SqliteStore, path: str) -> None:
    await add(store, job("1", head_start=5.0))
    before = await store.get(["1"])
    await store.close()
    with closing(driver.connect(path)) as db:
        db.execute("DROP VIEW records")
        db.execute("CREATE VIEW records AS SELECT seq, namespace, id FROM jobs")
    again = SqliteStore(path)
    await again.open()
    assert await again.get(["1"]) == before
    await again.close()


async def test_a_store_opens_once_its_folder_exists(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "later" / "shiftwork.db"))
    with pytest.raises(StoreUnavailableError):
        await store.open()
    (tmp_path / "later").mkdir()
    await add(store, job("1"))
    await store.close()


def overwrite(path: str, start: float, end: float) -> None:
    """Damage a part of the file."""
    file = Path(path)
    data = file.read_bytes()
    first, last = int(len(data) * start), int(len(data) * end)
    file.write_bytes(data[:first] + b"\xff" * (last - first) + data[last:])


@pytest.mark.parametrize(("start", "end"), [(0.01, 0.9), (0.6, 0.9)])
async def test_a_damaged_file(store: SqliteStore, path: str, start: float, end: float) -> None:
    await add(store, *(job(f"{n:04}") for n in range(2_000)))
    await store.close()
    overwrite(path, start, end)
    again = SqliteStore(path)
    with pytest.raises(CorruptStoreError, match=r"shiftwork\.db"):
        await claim(again, 2_000)
    assert (await again.check())["integrity"].text != "ok"
    await again.close()


def test_a_sqlite_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "SQLITE_VERSION", (3, 34, 1))
    with pytest.raises(StoreUnavailableError, match="pysqlite3"):
        schema.check_driver()


def test_an_unknown_synchronous() -> None:
    with pytest.raises(UnknownStoreError, match="did you mean 'full'"):
        SqliteStore("shiftwork.db", synchronous="ful")


# ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_closed_store_refuses_calls_until_it_is_opened_again(store: SqliteStore) -> None:
    await add(store, job("1"))
    await store.close()
    with pytest.raises(LifecycleError, match="closed"):
        await store.get(["1"])
    with pytest.raises(LifecycleError, match="closed"):
        await claim(store)
    await store.open()
    assert await claim_ids(store) == ["1"]


# ── locked ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_locked_file_is_waited_for_up_to_a_bound(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_servers, "LOCK_PATIENCE_SECONDS", 0.2)
    store = SqliteStore(path)
    await store.open()
    await add(store, job("1"))
    with locked(path):
        answers = await asyncio.gather(*(add(store, job(f"{n}")) for n in range(2, 6)), return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreBusyError] * 4
        assert f"fuser -v {path}" in str(answers[0])
        # Who reads does not wait for who writes.
        assert (await store.get(["1"]))[0] is not None
    await add(store, job("2"))
    await store.close()


async def test_a_lock_that_is_released_is_had(store: SqliteStore, path: str) -> None:
    with locked(path):
        adding = asyncio.create_task(add(store, job("1")))
        await store.get(["1"])
        assert not adding.done()
    await adding
    assert (await store.get(["1"]))[0] is not None


# ── full ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def fill_up(store: SqliteStore, acknowledged: list[str]) -> None:
    for n in range(10_000):
        await add(store, job(f"{n:05}", payload=b"x" * 500))
        acknowledged.append(f"{n:05}")


async def test_a_full_disk_loses_nothing_and_is_survived(store: SqliteStore) -> None:
    pages = await store._write(lambda session: session.db.execute("PRAGMA page_count").fetchone()[0])
    await tamper(store, f"PRAGMA max_page_count = {pages + 40}")
    acknowledged: list[str] = []
    with pytest.raises(StoreFullError, match="no space left"):
        await fill_up(store, acknowledged)
    assert acknowledged
    assert [record is not None for record in await store.get(acknowledged)] == [True] * len(acknowledged)
    stats = (await store.stats(NOW)).pools["p"]
    assert stats.added == stats.queued == len(acknowledged)
    with pytest.raises(StoreFullError):
        await add(store, *(job(f"more {n}", payload=b"x" * 500) for n in range(100)))
    await tamper(store, "PRAGMA max_page_count = 1000000")
    await add(store, job("room again"))
    assert len(await claim(store, 10_000)) == len(acknowledged) + 1


async def test_a_full_disk_fails_only_what_does_not_fit(store: SqliteStore) -> None:
    pages = await store._write(lambda session: session.db.execute("PRAGMA page_count").fetchone()[0])
    await tamper(store, f"PRAGMA max_page_count = {pages + 4}")
    small, large, small_too = await asyncio.gather(
        store.add([job("small")], NOW),
        store.add([job("large", payload=b"x" * 1_000_000)], NOW),
        store.add([job("small too")], NOW),
        return_exceptions=True,
    )
    assert isinstance(large, StoreFullError)
    assert not isinstance(small, BaseException)
    assert not isinstance(small_too, BaseException)
    assert await claim_ids(store) == ["small", "small too"]


# ── damaged rows ─────────────────────────────────────────────────────────────────────────────────────────────────────

DAMAGE = {
    "progress": "UPDATE jobs SET progress = x'c1ff' WHERE id = 'broken'",
    "progress of another kind": "UPDATE jobs SET progress = 'half' WHERE id = 'broken'",
    "status": "UPDATE jobs SET status = 42 WHERE id = 'broken'",
    "status of another kind": "UPDATE jobs SET status = 'whatever' WHERE id = 'broken'",
    "payload": "UPDATE jobs SET payload = NULL WHERE id = 'broken'",
    "payload of another kind": "UPDATE jobs SET payload = 'text' WHERE id = 'broken'",
    "priority": "UPDATE jobs SET priority = 7 WHERE id = 'broken'",
    "attempt": "UPDATE jobs SET attempt = 'many' WHERE id = 'broken'",
    "run_at": "UPDATE jobs SET run_at = 'soon' WHERE id = 'broken'",
    "cause": "UPDATE jobs SET cause = CAST(x'ff80fe' AS TEXT) WHERE id = 'broken'",
    "cause of another kind": "UPDATE jobs SET cause = x'00' WHERE id = 'broken'",
    "key_limit": "UPDATE jobs SET key_limit = 'x' WHERE id = 'broken'",
    "worker": "UPDATE jobs SET worker = 4711 WHERE id = 'broken'",
    "expires_at": "UPDATE jobs SET expires_at = 'soon' WHERE id = 'broken'",
    "options": "UPDATE jobs SET options = 'text' WHERE id = 'broken'",
    "tags": "UPDATE jobs SET tags = '{\"a\": 1' WHERE id = 'broken'",
    "tags of another kind": "UPDATE jobs SET tags = '[1]' WHERE id = 'broken'",
    "flow": "UPDATE jobs SET flow = 'which' WHERE id = 'broken'",
    "wait": "UPDATE jobs SET wait = x'c1' WHERE id = 'broken'",
    "a step": "INSERT INTO steps (job, number, total, body) SELECT seq, 1, 1, x'c1' FROM jobs WHERE id = 'broken'",
    "a signal": "INSERT INTO signals (job, number, name, size, body) "
    "SELECT seq, 1, '', 1, x'c1' FROM jobs WHERE id = 'broken'",
}
UNCLAIMABLE = {
    "progress",
    "progress of another kind",
    "priority",
    "key_limit",
    "status",
    "status of another kind",
    "worker",
    "tags",
    "tags of another kind",
    "wait",
    "a step",
    "a signal",
    "flow",
}
"""What a claim does not look at, or where the row is no longer in a lane."""


async def broken_job(store: SqliteStore, damage: str) -> None:
    await add(store, job("broken", run_at=NOW - 1, trace="t"), job("whole"))
    await tamper(store, DAMAGE[damage])


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_row_is_found_dead(store: SqliteStore, damage: str) -> None:
    await broken_job(store, damage)
    broken, whole = await store.get(["broken", "whole"], whole=True)
    assert broken is not None
    assert whole is not None
    assert whole.status is JobStatus.QUEUED
    assert broken.status is JobStatus.DEAD
    assert broken.error is not None
    assert "unreadable" in broken.error
    assert "broken" in {record.id for record in await store.find(JobFilter(status=(JobStatus.DEAD,)))}
    assert "whole" in {record.id for record in await store.find(JobFilter())}
    again = (await store.get(["broken"]))[0]
    assert again is not None
    assert again.status is JobStatus.DEAD
    assert again.error is not None
    assert "unreadable" in again.error
    assert await claim_ids(store) == ["whole"]
    await store.survey(None, NOW)


@pytest.mark.parametrize("damage", sorted(set(DAMAGE) - UNCLAIMABLE))
async def test_a_damaged_row_never_stops_a_claim(store: SqliteStore, damage: str) -> None:
    await broken_job(store, damage)
    assert await claim_ids(store) == ["whole"]
    [dead] = await store.find(JobFilter(status=(JobStatus.DEAD,)))
    assert dead.id == "broken"
    stats = (await store.stats(NOW)).pools["p"]
    assert (stats.queued, stats.processing, stats.dead) == (0, 1, 1)


async def test_a_buried_job_can_be_given_a_payload_and_run(store: SqliteStore) -> None:
    await broken_job(store, "payload")
    await claim(store)
    [requeued] = await store.amend(["broken"], Requeue(run_at=NOW, payload=b"new"), NOW)
    assert requeued.ok
    [claimed] = await claim(store)
    assert (claimed.id, claimed.payload) == ("broken", b"new")
    await finish(store, succeeded(claimed))


async def test_a_job_that_names_no_flow_ends_like_any_other(store: SqliteStore) -> None:
    await broken_job(store, "flow")
    await finish(store, *(succeeded(claimed) for claimed in await claim(store)))
    stats = (await store.stats(NOW)).pools["p"]
    assert (stats.queued, stats.processing, stats.completed, stats.dead) == (0, 0, 2, 0)


@pytest.mark.parametrize("read", [True, False], ids=["read", "claimed"])
async def test_a_damaged_row_lets_go_what_needs_any_end(store: SqliteStore, *, read: bool) -> None:
    await broken_job(store, "cause")
    await add(store, job("1", needs=(Need("broken"),)), job("2", pool="q", needs=(Need("broken", whatever=True),)))
    await (store.get(["broken"]) if read else claim(store))
    await store.promote(10, NOW)
    assert await statuses(store, "broken", "1", "2") == ["dead", "waiting", "queued"]


async def test_a_damaged_row_gives_back_the_place_of_its_key(store: SqliteStore) -> None:
    await add(store, job("broken", run_at=NOW - 1, key="k"), job("2", key="k"), job("3", run_at=NOW + 60))
    assert await claim_ids(store) == ["broken"]
    await tamper(store, DAMAGE["cause"])
    await store.get(["broken"])
    await store.promote(10, NOW)
    assert await claim_ids(store) == ["2"]


async def test_what_reads_cannot_write(store: SqliteStore) -> None:
    assert await store._read(lambda session: session.db.execute("PRAGMA query_only").fetchone()) == (1,)


async def test_a_damaged_time_does_not_stop_the_leader(store: SqliteStore) -> None:
    await add(store, job("broken", expires_at=NOW + 1), job("later", run_at=NOW + 2))
    await tamper(store, DAMAGE["expires_at"])
    assert (await store.promote(10, NOW)).next_at == NOW + 2
    await tamper(store, "UPDATE jobs SET run_at = 'soon' WHERE id = 'later'")
    assert (await store.promote(10, NOW)).next_at is None


async def test_a_damaged_row_can_be_discarded(store: SqliteStore) -> None:
    await broken_job(store, "status")
    await store.get(["broken"])
    [discarded] = await store.amend(["broken"], Discard(), NOW)
    assert discarded.ok
    assert await store.get(["broken"]) == [None]


async def test_a_running_job_with_a_damaged_row_does_not_stop_a_reap(store: SqliteStore) -> None:
    await add(store, job("1"), job("2"))
    await claim(store, 2, instance="gone")
    await store.note([ProgressNote("1", 1, Progress(1.0))])
    await tamper(store, "UPDATE jobs SET progress = x'c1' WHERE id = '1'")
    assert [record.id for record in await store.reap("i", 10, NOW)] == ["2"]
    [dead] = await store.find(JobFilter(status=(JobStatus.DEAD,)))
    assert dead.id == "1"


@pytest.mark.parametrize("damage", ["body = 'text'", "body = 7", "version = 'x'", "version = x'ff'"])
async def test_a_damaged_doc_harms_only_what_it_is_about(store: SqliteStore, damage: str) -> None:
    await store.put([Doc("pool", name, POOL.encode(PoolDoc(paused=True))) for name in ("p", "q")])
    await tamper(store, f"UPDATE docs SET {damage} WHERE name = 'p'")
    assert {doc.name for doc in await store.docs()} == {"p", "q"}
    assert await read(store, POOL, "q") == PoolDoc(paused=True)
    assert await read(store, POOL, "p") is None
    assert "the pool record p cannot be read" in (await store.check())["integrity"].text
    await change(store, POOL, "p", lambda _: PoolDoc())
    assert await read(store, POOL, "p") == PoolDoc()
    assert (await store.check())["integrity"].text == "ok"


async def test_a_damaged_fence_is_replaced_by_a_higher_one(store: SqliteStore, path: str) -> None:
    await add(store, *(job(f"{n}") for n in range(8)))
    fences = [claimed.fence for claimed in await claim(store, 1)]
    for damage in ("'garbage'", "x'ff'", "''"):
        await tamper(store, f"UPDATE store SET fence = {damage}")
        other = SqliteStore(path)
        fences += [claimed.fence for one in (other, store) for claimed in await claim(one, 1)]
        await other.close()
    assert fences == sorted({*fences})
    assert len(fences) == 7


async def test_damaged_notes_and_events_are_seen_as_such(store: SqliteStore) -> None:
    await add(store, job("1"))
    claimed = await claim_one(store, "1")
    await tamper(store, "INSERT INTO attempts (job, body) SELECT seq, x'c1' FROM jobs")
    await tamper(store, "INSERT INTO events (namespace, seq, by_person, place, body) VALUES (1, 1, 0, 1, x'c1')")
    await tamper(store, "INSERT INTO instances (namespace, name, beat, expires_at) VALUES (1, 'x', x'c1', 9e9)")
    record = (await store.get([claimed.id]))[0]
    assert record is not None
    assert [attempt.kind for attempt in record.attempts] == ["unreadable"]
    assert [event.name for event in await store.events()] == ["unreadable"]
    assert await store.instances() == []


# ── every error is one of the tree ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (sqlite3.SQLITE_FULL, StoreFullError),
        (sqlite3.SQLITE_BUSY, StoreBusyError),
        (sqlite3.SQLITE_LOCKED, StoreBusyError),
        (sqlite3.SQLITE_CORRUPT, CorruptStoreError),
        (sqlite3.SQLITE_NOTADB, CorruptStoreError),
        (sqlite3.SQLITE_CANTOPEN, StoreUnavailableError),
        (sqlite3.SQLITE_READONLY, StoreUnavailableError),
        (sqlite3.SQLITE_IOERR_FSYNC, StoreUnavailableError),
        (sqlite3.SQLITE_ERROR, StoreError),
        (None, StoreError),
    ],
)
def test_every_error_is_one_of_the_tree(code: int | None, error: type[StoreError]) -> None:
    raised = driver.Error("whatever")
    if code is not None:
        raised.sqlite_errorcode = code
    assert type(faults.translate(raised, "/tmp/x.db")) is error


# ── a full disk ──────────────────────────────────────────────────────────────────────────────────────────────────────


def command(*words: str) -> str:
    return CliRunner().invoke(main, [*words]).output


async def test_a_full_disk_is_seen_by_every_process_until_there_is_room(tmp_path: Path) -> None:
    """Where the log has room that it has used before, small writes succeed."""
    with small_disk(tmp_path / "small") as disk:
        url = f"sqlite:///{disk.folder}/shiftwork.db"
        store = SqliteStore(f"{disk.folder}/shiftwork.db")
        await store.open()
        await store.add([job("large", payload=b"x" * 1_000_000)], NOW)
        await try_room(store)
        disk.fill(but=3_000_000)
        with pytest.raises(StoreFullError, match="no space left"):  # the log has grown, and keeps what it has got
            await store.add([job("larger", payload=b"x" * 10_000_000)], NOW)
        await store.add([job("small")], NOW)
        with pytest.raises(StoreFullError, match="no space left"):
            await try_room(store)
        with pytest.raises(StoreFullError, match="no space left"):
            await try_room(sealed(store, KeyRing([b"k" * 32])))
        for words in (("doctor",), ("status",)):
            assert "no space left" in await asyncio.to_thread(command, *words, "--store", url)
        disk.free()
        await try_room(store)
        assert "no space left" not in await asyncio.to_thread(command, "doctor", "--store", url)
        assert [one is not None for one in await store.get(["large", "small", "larger"])] == [True, True, False]
        await store.close()
