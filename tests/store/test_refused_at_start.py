"""A store that cannot work is refused when an app starts, not at three in the morning. All servers are real."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from shiftwork import (
    NamespaceInUseError,
    SchemaVersionError,
    StoreError,
    StoreUnavailableError,
    UnknownStoreError,
    WorkerOrchestrator,
)
from shiftwork.store.postgres.server import migrations
from tests.ports import free_port
from tests.store.conformance.lab import StoreFactory
from tests.store.servers import postgres
from tests.store.servers.redis import DURABLE, Server, namespace


async def refusal(url: str, kind: type[StoreError] = StoreUnavailableError, *, space: str = "default") -> str:
    """Return the message of the error with which an app fails to start on this store."""
    app = WorkerOrchestrator(url, namespace=space)
    app.task(name="mail")(lambda: None)
    with pytest.raises(kind) as caught:
        await app.start()
    assert type(caught.value) is kind
    assert app.get_status()["state"] == "stopped"
    await app.close()
    return str(caught.value)


async def welcome(url: str) -> None:
    app = WorkerOrchestrator(url, namespace=namespace())
    app.task(name="mail")(lambda: "sent")
    await app.start()
    job, _ = await app.control.jobs.enqueue("mail", {})
    assert await job.result(30) == "sent"
    await app.stop()


def run_the_command(folder: Path, url: str) -> "subprocess.CompletedProcess[str]":
    (folder / "shop.py").write_text(
        "from shiftwork import WorkerOrchestrator\n"
        f"app = WorkerOrchestrator({url!r})\n"
        "app.task(name='mail')(lambda: None)\n"
    )
    command = [sys.executable, "-m", "shiftwork", "run", "shop:app"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=30, check=False)


# ── Redis and Valkey ─────────────────────────────────────────────────────────────────────────────────────────────────

USERS = """
user default on >secret ~* &* +@all
user noscripts on >secret ~* &* +@all -@scripting
user nokeys on >secret ~other:* &* +@all
user nochannels on >secret ~* resetchannels +@all
user reader on >secret ~* &* +@read +@scripting +@connection +info
user shop on >secret ~{shiftwork:* &{shiftwork:* +@all -@dangerous +info
"""


@pytest.fixture(scope="module")
def guarded(valkey_program: Path) -> Iterator[Server]:
    """Yield a server that has some users."""
    with Server(valkey_program, *DURABLE, "--requirepass", "secret", config=USERS) as server:
        yield server


async def test_redis_wrong_password(guarded: Server, tmp_path: Path) -> None:
    at = f"127.0.0.1:{guarded.port}"
    told = await refusal(f"redis://:not-this-one@{at}/0")
    assert "rejects the user name or the password" in told
    assert "not-this-one" not in told
    assert "needs a password" in await refusal(f"redis://{at}/0")
    ended = run_the_command(tmp_path, f"redis://:not-this-one@{at}/0")
    assert ended.returncode == 3
    assert ended.stderr.splitlines()[-1].startswith(f"shiftwork: the server at {at} rejects the user name or the pass")
    assert "Traceback" not in ended.stderr
    assert "not-this-one" not in ended.stderr


async def test_redis_wrong_address() -> None:
    assert "nothing listens there" in await refusal(f"redis://127.0.0.1:{free_port()}/0")
    assert "Check the host name" in await refusal("redis://no.such.host.invalid/0")
    with pytest.raises(UnknownStoreError, match="did you mean 'redis'"):
        WorkerOrchestrator("rdis://localhost")


@pytest.mark.parametrize("user", ["noscripts", "nokeys", "nochannels", "reader"])
async def test_redis_without_rights(guarded: Server, user: str) -> None:
    told = await refusal(f"redis://{user}:secret@127.0.0.1:{guarded.port}/0")
    assert "denies rights that shiftwork needs: ACL SETUSER" in told


async def test_redis_the_rights_that_the_remedy_names_suffice(guarded: Server) -> None:
    await welcome(f"redis://shop:secret@127.0.0.1:{guarded.port}/0")


@pytest.mark.parametrize(
    ("taken", "told"),
    [
        (["EVAL", "EVALSHA"], "cannot run Lua scripts"),
        (["EVAL", "EVALSHA", "SCRIPT"], "cannot run Lua scripts"),
        (["SSUBSCRIBE"], "has no command SSUBSCRIBE"),
    ],
)
async def test_redis_without_the_commands(valkey_program: Path, taken: list[str], told: str) -> None:
    with Server(valkey_program, config="".join(f'rename-command {name} ""\n' for name in taken)) as server:
        said = await refusal(server.url)
    assert told in said
    assert "If this is a proxy, name the server behind it" in said


async def test_redis_too_old() -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1_000)
        told = b"# Server\r\nredis_version:6.2.14\r\n"
        # INFO, EXISTS and SCRIPT EXISTS: a reply that is missing would be waited for.
        writer.write(b"$%d\r\n%s\r\n:0\r\n*0\r\n" % (len(told), told))
        await reader.read()
        writer.close()

    server = await asyncio.start_server(old, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert "is Redis 6.2.14; shiftwork needs Redis 7.0 or Valkey 7.2" in await refusal(f"redis://127.0.0.1:{port}/0")
    server.close()


async def test_something_else_on_the_port() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(web, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert "Check that it is Redis or Valkey at all" in await refusal(f"redis://127.0.0.1:{port}/0")
    server.close()


async def test_redis_replica(valkey_program: Path, valkey_server: Server) -> None:
    with Server(valkey_program, "--replicaof", "127.0.0.1", f"{valkey_server.port}") as replica:
        assert "is a read-only replica. Name the primary" in await refusal(replica.url)


async def test_redis_that_is_full_is_worked_off_by_an_app_that_starts_then(valkey_program: Path) -> None:
    with Server(valkey_program, *DURABLE) as server:
        apps = [WorkerOrchestrator(server.url) for _ in range(2)]
        for app in apps:
            app.task(name="mail", keep_completed_seconds=60)(lambda: "sent")
        await apps[0].start()
        await apps[0].stop()
        job, _ = await apps[0].control.jobs.enqueue("mail", {})
        server.ask("CONFIG", "SET", "maxmemory", "1mb")
        await apps[1].start()
        assert await job.result(30) == "sent"
        await apps[1].stop()
        await apps[0].close()


async def test_redis_without_its_replicas(valkey_program: Path) -> None:
    with Server(valkey_program, *DURABLE, "--min-replicas-to-write", "1") as server:
        assert "fewer replicas than min-replicas-to-write" in await refusal(server.url)


async def test_redis_keys_of_another_version(valkey_server: Server) -> None:
    valkey_server.ask("SET", "{shiftwork:other}:version", "99")
    told = await refusal(valkey_server.url, SchemaVersionError, space="other")
    assert "its keys have version 99, ours have 2" in told


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    made = postgres.own_server()
    made.start()
    yield made
    made.remove()


def run(server: postgres.Server, *statements: str, database: str = "postgres") -> None:
    with closing(psycopg.connect(server.url_of(database), autocommit=True)) as conn:
        for statement in statements:
            conn.execute(statement.encode())


@pytest.fixture
def fresh(server: postgres.Server) -> str:
    """Return the name of a new database."""
    name = f"d{namespace().replace(' ', '_')}"
    run(server, f"CREATE DATABASE {name}")
    return name


async def test_postgres_wrong_password(server: postgres.Server, tmp_path: Path) -> None:
    url = server.url_of("postgres", "somebody:not-this-one")
    told = await refusal(url)
    assert "the user or the password is wrong" in told
    assert "not-this-one" not in told
    ended = run_the_command(tmp_path, url)
    assert ended.returncode == 3
    assert "the user or the password is wrong" in ended.stderr.splitlines()[-1]
    assert "Traceback" not in ended.stderr
    assert "not-this-one" not in ended.stderr


async def test_postgres_wrong_address(server: postgres.Server) -> None:
    assert "nothing listens" in await refusal(f"postgresql://u@127.0.0.1:{free_port()}/d")
    assert "unknown host" in await refusal("postgresql://u@no.such.host.invalid/d")
    assert "createdb" in await refusal(server.url_of("nowhere"))
    with pytest.raises(UnknownStoreError, match="did you mean 'postgresql'"):
        WorkerOrchestrator("postgrseql://localhost/d")


@pytest.mark.parametrize(
    "granted",
    [
        [],
        ["USAGE ON SCHEMA shiftwork"],
        ["USAGE ON SCHEMA shiftwork", "SELECT ON ALL TABLES IN SCHEMA shiftwork"],
        [
            "USAGE ON SCHEMA shiftwork",
            "SELECT, INSERT ON ALL TABLES IN SCHEMA shiftwork",
            "USAGE ON ALL SEQUENCES IN SCHEMA shiftwork",
        ],
    ],
)
async def test_postgres_without_rights(server: postgres.Server, fresh: str, granted: list[str]) -> None:
    await welcome(server.url_of(fresh))
    run(server, f"CREATE ROLE guest_{fresh} LOGIN PASSWORD 'x'")
    run(server, *(f"GRANT {right} TO guest_{fresh}" for right in granted), database=fresh)
    told = await refusal(server.url_of(fresh, f"guest_{fresh}:x"))
    assert "permission denied" in told
    assert "`shiftwork db sql --grant-to USER`" in told


async def test_postgres_standby() -> None:
    server = postgres.own_server()
    try:
        server.start()
        await welcome(server.url)
        server.stop(signal.SIGINT)
        server.make_standby()
        server.start()
        told = await refusal(server.url)
        assert "is read-only" in told
        assert "Name the primary" in told
    finally:
        server.remove()


async def test_postgres_too_old(server: postgres.Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrations, "OLDEST_SERVER", 99)
    assert "is too old: shiftwork needs 99 or newer" in await refusal(server.url)


async def test_postgres_schema_of_another_version(server: postgres.Server, fresh: str) -> None:
    await welcome(server.url_of(fresh))
    run(server, "INSERT INTO shiftwork.migrations VALUES (99, 'before'), (99, 'after')", database=fresh)
    told = await refusal(server.url_of(fresh), SchemaVersionError)
    assert "has schema version 99; this shiftwork works with version 2. Upgrade shiftwork" in told


@pytest.mark.parametrize("table", ["jobs (a int)", "migrations (a int)"])
async def test_postgres_schema_of_another_program(server: postgres.Server, fresh: str, table: str) -> None:
    run(server, "CREATE SCHEMA shiftwork", f"CREATE TABLE shiftwork.{table}", database=fresh)
    told = await refusal(server.url_of(fresh))
    assert "choose another one with ?schema=NAME" in told
    await welcome(f"{server.url_of(fresh)}?schema=ours")


async def test_postgres_of_another_encoding(server: postgres.Server, fresh: str) -> None:
    run(server, f"CREATE DATABASE latin_{fresh} ENCODING 'LATIN1' TEMPLATE template0")
    told = await refusal(server.url_of(f"latin_{fresh}"))
    assert "is encoded in LATIN1, and shiftwork needs UTF8" in told


async def test_postgres_whatever_the_environment_says(
    server: postgres.Server, fresh: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    await welcome(server.url_of(fresh))


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


async def test_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the folder" in await refusal(f"sqlite:///{tmp_path}/missing/shiftwork.db")
    assert "it is a folder" in await refusal(f"sqlite:///{tmp_path}")
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    with monkeypatch.context() as patched:  # root may write everywhere; here it is treated like other users
        patched.setattr(os, "access", lambda path, mode: Path(path) != locked)
        patched.setattr(Path, "mkdir", refuse)
        assert "this user may not write to it" in await refusal(f"sqlite:///{locked}/shiftwork.db")
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE theirs (a)")
    assert "database of another program" in await refusal(f"sqlite:///{path}")
    newer = tmp_path / "newer.db"
    await welcome(f"sqlite:///{newer}")
    with closing(sqlite3.connect(newer)) as db:
        db.execute("PRAGMA user_version = 99")
    told = await refusal(f"sqlite:///{newer}", SchemaVersionError)
    assert "schema version 99; this shiftwork reads version 2" in told


# ── the namespace of another app ─────────────────────────────────────────────────────────────────────────────────────


async def test_of_many_apps_that_start_at_once_in_one_namespace_one_stays(factory: StoreFactory) -> None:
    open_one = factory()
    apps = [WorkerOrchestrator(open_one()) for _ in range(4)]
    for number, app in enumerate(apps):
        app.task(name=f"w{number}")(lambda: None)
    answers = await asyncio.gather(*(app.start() for app in apps), return_exceptions=True)
    assert [type(answer) for answer in answers if answer is not None] == [NamespaceInUseError] * 3, answers
    [left] = [app for app, answer in zip(apps, answers, strict=True) if answer is None]
    assert len((await left.control.system.overview()).nodes) == 1
    await left.stop()
