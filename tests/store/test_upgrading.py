"""Stores that version 1 of the schema has written: they are upgraded without loss, or rejected with a reason.

The files in version1/ were written by that version, in two namespaces, one of them encrypted.
"""

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from typing import Any, Final

import psycopg
import pytest

from shiftwork import Context, JobStatus, Retry, WorkerOrchestrator
from shiftwork.core.values.envelopes import is_outdated
from shiftwork.errors import SchemaVersionError
from shiftwork.store.postgres.server import migrations, search_path
from shiftwork.store.postgres.server.sql import in_schema
from shiftwork.store.sealed.store import SealedStore
from shiftwork.store.urls import open_store
from shiftwork.transfer.rekeying import rekey
from tests.runtime.stage import worker_of
from tests.store.servers.postgres import names, server_url
from tests.store.servers.redis import Server

DEADLINE: Final = 30.0
KEY: Final = "A" * 43 + "="
FILES: Final = Path(__file__).with_name("version1")
KEYS: Final = {"plain": (), "sealed": (KEY,)}


class OldStore:
    """A store of version 1, and what a node of that version does to it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def beat(self, until: float) -> None:
        """Let an instance of the older version have a lease until then."""
        raise NotImplementedError

    def version(self) -> str:
        """Return the version that the store says it has."""
        raise NotImplementedError


class OldFile(OldStore):
    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._path = request.getfixturevalue("tmp_path") / "shiftwork.db"
        with closing(sqlite3.connect(self._path)) as db:
            db.executescript((FILES / "sqlite.sql").read_text())
            db.executescript("PRAGMA application_id = 0x73687774; PRAGMA user_version = 1; PRAGMA journal_mode = wal")
        super().__init__(f"sqlite:///{self._path}")

    def beat(self, until: float) -> None:
        with closing(sqlite3.connect(self._path)) as db, db:
            db.execute("DELETE FROM instances")
            values = ("old-node", b"", until)
            db.execute("INSERT INTO instances (namespace, name, beat, expires_at) VALUES (1, ?, ?, ?)", values)

    def version(self) -> str:
        with closing(sqlite3.connect(self._path)) as db:
            return str(db.execute("PRAGMA user_version").fetchone()[0])


class OldKeys(OldStore):
    def __init__(self, request: pytest.FixtureRequest) -> None:
        self._server: Server = request.getfixturevalue("valkey_server")
        super().__init__(self._server.url)
        self._server.ask("FLUSHALL")
        for line in (FILES / "redis.json").read_text().splitlines():
            self._server.ask(*(word.encode("latin-1") for word in json.loads(line)))

    def beat(self, until: float) -> None:
        self._server.ask("ZADD", "{shiftwork:plain}:lease", str(until), "old-node")

    def version(self) -> str:
        return str(self._server.ask("GET", "{shiftwork:plain}:version").decode())


class OldSchema(OldStore):
    def __init__(self, _: pytest.FixtureRequest) -> None:
        self._bare, self._schema = server_url(names()[0]), f"old_{token_hex(4)}"
        super().__init__(f"{self._bare}{'&' if '?' in self._bare else '?'}schema={self._schema}")
        first = migrations.migrations()[0]
        done = "INSERT INTO shiftwork.migrations (number, phase) VALUES (1, 'before'), (1, 'after');"
        rows = (FILES / "postgres.sql").read_text()
        self._run(f"CREATE SCHEMA {self._schema}", migrations._TABLE, first.before, done, rows)

    def _run(self, *statements: str) -> Any:
        """Run these statements, and return the rows of the last one."""
        rows: Any = None
        with psycopg.connect(self._bare, autocommit=True) as conn:
            conn.execute(search_path.CLAUSE.encode())  # the database is hostile
            for statement in statements:
                cursor = conn.execute(in_schema(statement, self._schema).encode())
                rows = cursor.fetchall() if cursor.description else None
        return rows

    def beat(self, until: float) -> None:
        self._run(
            "DELETE FROM shiftwork.instances",
            "INSERT INTO shiftwork.instances (namespace, name, beat, expires_at) "
            f"SELECT no, 'old-node', '', {until} FROM shiftwork.namespaces WHERE name = 'plain'",
        )

    def version(self) -> str:
        return str(self._run("SELECT max(number) FROM shiftwork.migrations")[0][0])


@pytest.fixture(params=[OldFile, OldKeys, OldSchema], ids=["sqlite", "valkey", "postgres"])
def old(request: pytest.FixtureRequest) -> OldStore:
    kind: type[OldFile | OldKeys | OldSchema] = request.param
    return kind(request)


def make(url: str, namespace: str) -> WorkerOrchestrator:
    """The app that the older version ran."""
    app = WorkerOrchestrator(url, namespace=namespace, tick_interval=0.2, encryption_keys=KEYS[namespace])

    @app.task
    async def plain(text: str) -> str:
        return text.upper()

    @app.task(max_retries=5, retry=Retry(delays=[10**8]))
    async def failing(n: int) -> None: ...

    @app.task(timeout_seconds=None)
    async def order(ctx: Context, n: int) -> list[Any]:
        first = await ctx.step("charge", lambda: "charged again")
        a = await ctx.wait_for("approval")
        try:
            b = await ctx.wait_for("gone", timeout_seconds=0.2)
        except TimeoutError:
            b = "timeout"
        c = await ctx.wait_for("approval")
        await ctx.sleep(0.1)
        d = await ctx.wait_for("gone") if n == 1 else None
        return [first, a, b, c, d]

    return app


@pytest.mark.parametrize("namespace", KEYS)
async def test_a_store_of_version_1_loses_nothing(old: OldStore, namespace: str) -> None:
    app = make(old.url, namespace)
    try:
        failed = await app.get_job("failed")
        assert (failed.status, failed.ended_at, len(failed.history)) == (JobStatus.FAILED, None, 1)
        assert str(failed.error).startswith("RetryAfter: again in")
        store = await app.control.store.open()
        for id, steps, signals in (("order-1", 6, ["gone"]), ("order-2", 0, ["approval"] * 2), ("order-3", 6, [])):
            parts = await store.parts(id)
            assert (parts.step_count, [one.name for one in parts.signals]) == (steps, signals)
            assert parts.step_bytes >= 2 * steps
        await app.resume_pool("default")
        await app.start()
        for id in ("order-1", "order-3"):
            await app.send(id, "approval", "two")
        results = [await (await app.get_job(f"order-{n}")).result(DEADLINE) for n in (1, 2, 3)]
        assert results[0] == [10, "one", "timeout", "two", "late"]
        assert results[1] == ["charged again", "first", "timeout", "second", None]
        assert results[2] == [30, None, "timeout", "two", None]
        assert await (await app.get_job("queued")).result(DEADLINE) == "QUEUED"
        assert await (await worker_of(app, "plain").enqueue(text="new")).result(DEADLINE) == "NEW"
    finally:
        await app.stop()
        await app.close()


async def refused(old: OldStore, namespace: str = "plain") -> str:
    store = open_store(old.url, namespace=namespace)
    with pytest.raises(SchemaVersionError) as found:
        await store.open()
    await store.close()
    return str(found.value)


async def opened(old: OldStore, namespace: str = "plain") -> None:
    store = open_store(old.url, namespace=namespace)
    await store.open()
    await store.close()


async def test_a_store_of_version_1_is_rejected_while_a_node_of_that_version_is_live(old: OldStore) -> None:
    old.beat(time.time() + 3600)
    said = await refused(old)
    assert "nodes of it are still running: old-node. Stop them" in said
    assert old.version() == "1"
    old.beat(time.time() - 1)
    await opened(old)
    assert old.version() == "2"


async def test_many_processes_upgrade_a_store_once(old: OldStore) -> None:
    await asyncio.gather(*(opened(old) for _ in range(5)))
    app = make(old.url, "plain")
    store = await app.control.store.open()
    assert [one.name for one in (await store.parts("order-2")).signals] == ["approval"] * 2
    assert [one.name for one in (await store.parts("order-1")).signals] == ["gone"]
    await app.close()


async def test_an_upgrade_of_redis_that_was_interrupted_continues(valkey_server: Server, request: Any) -> None:
    old = OldKeys(request)
    valkey_server.ask("SET", "{shiftwork:plain}:version", "1 to 2")
    await opened(old)
    assert old.version() == "2"
    app = make(old.url, "plain")
    assert [one.name for one in (await (await app.control.store.open()).parts("order-1")).signals] == ["gone"]
    await app.close()


async def test_rekey_writes_the_values_of_version_1_again(old: OldStore) -> None:
    app = make(old.url, "sealed")
    store = await app.control.store.open()
    assert isinstance(store, SealedStore)
    ids = ["failed", "order-1", "order-2", "order-3", "queued"]

    async def outdated() -> list[bool]:
        return [is_outdated(job) for job in await store.inner.get(ids, whole=True) if job is not None]

    before = await store.get(ids, whole=True)
    assert await outdated() == [True] * len(ids)
    done = await rekey(store, now=time.time(), report=_silent)
    assert (done.jobs, done.rewritten, done.unreadable, done.changing) == (len(ids), len(ids), 0, 0)
    assert await outdated() == [False] * len(ids)
    assert await store.get(ids, whole=True) == before
    assert (await rekey(store, now=time.time(), report=_silent)).rewritten == 0
    await app.close()


def _silent(*_: object) -> None: ...
