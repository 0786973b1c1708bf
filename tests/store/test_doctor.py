"""`shiftwork doctor` on real servers, with safe and with dangerous settings: each danger is a problem."""

import asyncio
import json
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from shiftwork import WorkerOrchestrator
from shiftwork.cli.entry import main
from shiftwork.control.system.doctor import measure
from shiftwork.core.health.health_values import Finding
from shiftwork.runtime.clock import SystemClock
from shiftwork.store.memory import MemoryStore
from shiftwork.store.postgres import doctor
from tests.polling import wait_until
from tests.store.servers import postgres
from tests.store.servers.redis import DURABLE, Server, binary, required


class Report:
    """What the doctor says of a store that no node uses."""

    def __init__(self, url: str) -> None:
        ended = CliRunner().invoke(main, ["doctor", "--store", url, "--json"])
        assert ended.exit_code == 1, ended.output  # nobody leads
        told = json.loads(ended.stdout)
        self.findings: dict[str, str] = told["findings"]
        self.problems: dict[str, dict[str, Any]] = {
            problem["code"]: problem
            for problem in told["problems"]
            if problem["subject"] == "store" and (problem["code"], problem["severity"]) != ("latency", "warning")
        }
        """But for slowness: the machine that runs the tests may be busy."""

    def critical(self, code: str, remedy: str) -> str:
        """There is this critical problem, with this remedy; what it says."""
        return self._problem("critical", code, remedy)

    def warning(self, code: str, remedy: str) -> str:
        return self._problem("warning", code, remedy)

    def _problem(self, severity: str, code: str, remedy: str) -> str:
        problem = self.problems[code]
        assert problem["severity"] == severity
        assert remedy in problem["remedy"]
        assert self.findings[code] in problem["message"]
        return self.findings[code]


# ── Redis and Valkey ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module", params=["valkey", pytest.param("redis", marks=pytest.mark.needs("redis-server"))])
def program(request: pytest.FixtureRequest) -> Path:
    """Each kind of server that there is."""
    if request.param == "valkey":
        found: Path = request.getfixturevalue("valkey_program")
        return found
    return required(binary("redis-server"), "redis-server")


@pytest.fixture
def server(program: Path) -> Iterator[Server]:
    with Server(program, *DURABLE) as running:
        yield running


@pytest.mark.parametrize(
    ("fsync", "loss"),
    [
        ("everysec", "a power cut can lose about the last second"),
        ("always", "neither a crash nor a power cut loses an acknowledged job"),
    ],
)
def test_a_safe_server_has_no_problems(server: Server, fsync: str, loss: str) -> None:
    server.ask("CONFIG", "SET", "appendfsync", fsync)
    report = Report(server.url)
    assert report.problems == {}
    assert report.findings["durability"].startswith(f"appendfsync={fsync}: ")
    assert loss in report.findings["durability"]
    assert report.findings["server"].startswith(("Valkey ", "Redis "))
    assert report.findings["schema version"] == "2"
    assert report.findings["eviction"].startswith("none: ")
    assert report.findings["replication"].startswith("no replicas")
    assert "per write (median of 5)" in report.findings["latency"]
    assert report.findings["clock"].startswith("agrees with the store's")


def test_a_server_that_forgets_is_critical(server: Server) -> None:
    server.ask("CONFIG", "SET", "appendonly", "no")
    told = Report(server.url).critical("durability", "CONFIG SET appendonly yes")
    assert "a restart, a crash or a power cut loses EVERY JOB" in told


def test_snapshots_only_and_rare_writes_are_warned_about(server: Server) -> None:
    server.ask("CONFIG", "SET", "appendfsync", "no")
    assert "up to half a minute" in Report(server.url).warning("durability", "CONFIG SET appendfsync everysec")
    server.ask("CONFIG", "SET", "appendonly", "no", "save", "3600 1")
    told = Report(server.url).warning("durability", "CONFIG SET appendonly yes")
    assert "a server crash or a power cut loses every job since the last snapshot" in told


def test_a_snapshot_that_failed_is_critical(server: Server) -> None:
    server.ask("CONFIG", "SET", "appendonly", "no", "save", "3600 1", "stop-writes-on-bgsave-error", "no")
    server.ask("CONFIG", "SET", "rdbcompression", "no")
    server.folder.chmod(0o555)
    server.ask("BGSAVE")
    wait_until(lambda: b"rdb_last_bgsave_status:ok" not in server.ask("INFO", "persistence"))
    assert "LAST SNAPSHOT FAILED" in Report(server.url).critical("durability", "check the server's log")
    server.folder.chmod(0o755)


def test_a_server_that_deletes_jobs_is_critical(server: Server) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1gb")
    told = Report(server.url).critical("eviction", "CONFIG SET maxmemory-policy noeviction")
    assert told.startswith("JOBS CAN BE DELETED: maxmemory-policy is allkeys-lru")
    server.ask("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
    assert Report(server.url).problems == {}


def test_a_server_that_is_nearly_full_or_full(server: Server) -> None:
    server.ask("SET", "ballast", b"x" * 20_000_000)
    Report(server.url)
    used = next(line for line in server.ask("INFO", "memory").split() if line.startswith(b"used_memory:"))
    server.ask("CONFIG", "SET", "maxmemory", int(int(used.partition(b":")[2]) * 1.05))
    assert "new jobs are rejected" in Report(server.url).warning("memory", "raise maxmemory")
    server.ask("CONFIG", "SET", "maxmemory", "1mb")
    assert Report(server.url).critical("memory", "raise maxmemory").startswith("FULL: ")


def test_replicas_are_counted(program: Path, server: Server) -> None:
    server.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    with Server(program, "--replicaof", "127.0.0.1", f"{server.port}"):
        wait_until(lambda: b"state=online" in server.ask("INFO", "replication"))
        report = Report(server.url)
    assert report.problems == {}
    assert report.findings["replication"].startswith("1 replica; a failover can lose the last acknowledged jobs")


def test_a_server_that_hides_its_settings(program: Path) -> None:
    shop = "user shop on >x ~{shiftwork:* &{shiftwork:* +@all -@dangerous +info"
    with Server(program, *DURABLE, config=shop) as server:
        url = f"redis://shop:x@127.0.0.1:{server.port}/0"
        assert "does not allow reading appendfsync" in Report(url).findings["durability"]
        server.ask("CONFIG", "SET", "appendonly", "no")
        assert "does not allow reading its settings" in Report(url).warning("durability", "appendonly yes")


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def database() -> Iterator[postgres.Server]:
    """A server whose settings are PostgreSQL's own."""
    made = postgres.own_server(usual=True)
    made.start()
    yield made
    made.remove()


def alter(database: postgres.Server, *statements: str) -> None:
    with closing(psycopg.connect(database.url, autocommit=True)) as conn:
        for statement in statements:
            conn.execute(statement.encode())


@pytest.fixture
def altered(database: postgres.Server) -> Iterator[postgres.Server]:
    yield database
    alter(database, "ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()", "ALTER ROLE shiftwork RESET ALL")


def wait_for(database: postgres.Server, name: str, value: str) -> None:
    with closing(psycopg.connect(database.url, autocommit=True)) as conn:
        wait_until(lambda: conn.execute("SELECT current_setting(%s)", (name,)).fetchone() == (value,))


def test_a_safe_database_has_no_problems(database: postgres.Server) -> None:
    report = Report(database.url)
    assert report.problems == {}
    safe = "neither a crash nor a power cut loses an acknowledged job"
    assert report.findings["durability"] == f"fsync=on, synchronous_commit=on, full_page_writes=on: {safe}"
    assert report.findings["server"].startswith("PostgreSQL 1")
    assert report.findings["schema version"] == "2"
    assert report.findings["schema steps"] == "all done"
    assert report.findings["wake-up"] == "by LISTEN and NOTIFY"
    assert report.findings["replication"].startswith("no standbys")
    assert "per write (median of 5)" in report.findings["latency"]
    assert report.findings["clock"].startswith("agrees with the store's")


@pytest.mark.parametrize(
    ("name", "loss"),
    [
        ("fsync", "can lose every job and damage the whole database"),
        ("full_page_writes", "a power cut in the middle of a write can damage the database"),
    ],
)
def test_a_database_that_a_power_cut_can_damage_is_critical(altered: postgres.Server, name: str, loss: str) -> None:
    alter(altered, f"ALTER SYSTEM SET {name} = off", "SELECT pg_reload_conf()")
    wait_for(altered, name, "off")
    told = Report(altered.url).critical("durability", f"ALTER SYSTEM SET {name} = on")
    assert loss in told


def test_a_database_that_answers_before_it_has_written_is_critical(altered: postgres.Server) -> None:
    alter(altered, "ALTER ROLE shiftwork SET synchronous_commit = off")
    told = Report(altered.url).critical("durability", "SET synchronous_commit = on")
    assert "a server crash or a power cut loses the last acknowledged jobs" in told


def test_a_database_that_is_never_vacuumed(altered: postgres.Server) -> None:
    alter(altered, "ALTER SYSTEM SET autovacuum = off", "SELECT pg_reload_conf()")
    wait_for(altered, "autovacuum", "off")
    assert "every query becomes slower" in Report(altered.url).warning("vacuum", "autovacuum = on")


@pytest.mark.parametrize(
    ("standbys", "names", "commit", "loss"),
    [
        (0, "", "on", "no standbys"),
        (1, "", "on", "1 standby, synchronous_standby_names='', synchronous_commit=on: commits do not wait"),
        (2, "any 1 (*)", "on", "2 standbys, .*loses no acknowledged job$"),
        (2, "any 1 (*)", "remote_apply", "loses no acknowledged job$"),
        (1, "b", "remote_write", "unless the standby's machine crashes too"),
        (1, "b", "local", "can lose the last acknowledged jobs"),
        (0, "b", "on", "0 standbys"),
    ],
)
def test_what_a_failover_loses(standbys: int, names: str, commit: str, loss: str) -> None:
    assert re.search(loss, doctor.replication(standbys, names, commit))


def test_other_roles_that_may_create_functions(altered: postgres.Server) -> None:
    alter(altered, "CREATE ROLE mallory", "GRANT CREATE ON SCHEMA public TO mallory")
    try:
        said = Report(altered.url).warning("other roles", 'REVOKE CREATE ON SCHEMA "public" FROM "mallory"')
        assert said.startswith("mallory may create functions in the schema public: SQL of your own")
        alter(altered, "GRANT CREATE ON SCHEMA shiftwork TO mallory")
        said = Report(altered.url).critical("other roles", 'REVOKE CREATE ON SCHEMA "shiftwork" FROM "mallory"')
        assert "another version of shiftwork calls" in said
    finally:
        alter(altered, "DROP OWNED BY mallory", "DROP ROLE mallory")


def test_steps_that_are_left_to_do(database: postgres.Server) -> None:
    Report(database.url)
    alter(database, "DELETE FROM shiftwork.migrations WHERE phase = 'after'")
    told = Report(database.url).warning("schema steps", "shiftwork db upgrade")
    assert told == "to do: 0001_tables (after)"
    assert CliRunner().invoke(main, ["db", "upgrade", "--store", database.url]).exit_code == 0
    assert Report(database.url).problems == {}


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def make(path: Path) -> None:
    async def open_and_close() -> None:
        app = WorkerOrchestrator(f"sqlite:///{path}")
        await app.control.store.open()
        await app.close()

    asyncio.run(open_and_close())


@pytest.mark.parametrize(
    ("synchronous", "loss"),
    [("normal", "a power cut or a system crash can lose the last moments"), ("full", "neither a crash nor a")],
)
def test_a_file_that_is_safe(tmp_path: Path, synchronous: str, loss: str) -> None:
    make(tmp_path / "shiftwork.db")
    report = Report(f"sqlite:///{tmp_path}/shiftwork.db?synchronous={synchronous}")
    assert report.problems == {}
    assert report.findings["durability"].startswith(f"synchronous={synchronous}: ")
    assert loss in report.findings["durability"]
    assert report.findings["schema version"] == "2"
    assert "per write (median of 5)" in report.findings["latency"]


def test_a_file_that_a_power_cut_can_damage_is_critical(tmp_path: Path) -> None:
    make(tmp_path / "shiftwork.db")
    report = Report(f"sqlite:///{tmp_path}/shiftwork.db?synchronous=off")
    loss = report.critical("durability", "remove ?synchronous=off")
    assert "can damage the file so that all of them are lost" in loss


def test_a_damaged_file_is_critical(tmp_path: Path) -> None:
    path = tmp_path / "shiftwork.db"
    make(path)
    with closing(sqlite3.connect(path)) as db:
        page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)
    assert "the store is damaged" in Report(f"sqlite:///{path}").critical("integrity", "restore a backup")


# ── distance and clocks ──────────────────────────────────────────────────────────────────────────────────────────────


class Distant(MemoryStore):
    """A store whose clock is wrong, and whose writes take long."""

    def __init__(self, ahead: float = 0.0, slow: float = 0.0) -> None:
        super().__init__()
        self._ahead = ahead
        self._slow = slow

    async def server_time(self) -> float:
        return time.time() + self._ahead

    async def hold(self, *args: Any, **kwargs: Any) -> bool:
        await asyncio.sleep(self._slow)
        return await super().hold(*args, **kwargs)


async def found(store: MemoryStore) -> dict[str, Finding]:
    return await measure(store, SystemClock())


@pytest.mark.parametrize(("ahead", "words"), [(90.0, "90.0 s behind"), (-90.0, "90.0 s ahead of")])
async def test_clocks_that_disagree(ahead: float, words: str) -> None:
    clock = (await found(Distant(ahead)))["clock"]
    assert (clock.severity, clock.text) == ("warning", f"this machine's is {words} the store's")
    assert "NTP" in clock.remedy


async def test_a_slow_store() -> None:
    latency = (await found(Distant(slow=0.15)))["latency"]
    assert latency.severity == "warning"
    assert latency.text.startswith("slow: ")
    assert (await found(Distant()))["latency"].severity is None


async def test_the_doctor_leaves_nothing_behind() -> None:
    store = MemoryStore()
    await found(store)
    assert await store.hold("doctor", "the next", 1, 60.0, time.time())
