"""`shiftwork db` on a real server: what it prints, creates and refuses, and many of these commands at once."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner, Result

from shiftwork import WorkerOrchestrator
from shiftwork.cli.entry import main
from shiftwork.store.postgres.server import functions, migrations
from shiftwork.store.postgres.server.migrations import Migration
from tests.polling import wait_until
from tests.store.servers import postgres
from tests.store.servers.redis import Server, namespace

STEPS = [
    {"number": 1, "name": "0001_tables", "phase": "before", "done": True},
    {"number": 1, "name": "0001_tables", "phase": "after", "done": True},
    {"number": 2, "name": "0002_accumulated", "phase": "before", "done": True},
    {"number": 2, "name": "0002_accumulated", "phase": "after", "done": True},
    {"number": 2, "name": f"functions {functions.current().version}", "phase": "before", "done": True},
]


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    made = postgres.own_server()
    made.start()
    yield made
    made.remove()


@pytest.fixture
def url(server: postgres.Server) -> str:
    """Return the URL of a new and empty database."""
    name = f"d{namespace().replace(' ', '_')}"
    with closing(psycopg.connect(server.url, autocommit=True)) as conn:
        conn.execute(f"CREATE DATABASE {name}".encode())
    return server.url_of(name)


def db(*words: str) -> Result:
    result = CliRunner().invoke(main, ["db", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def output(*words: str) -> str:
    result = db(*words)
    assert result.exit_code == 0, result.output
    return result.stdout


def document(*words: str) -> Any:
    return json.loads(output(*words, "--json"))


def run(url: str, *statements: str) -> Any:
    """Run these statements, and return the rows of the last one."""
    answer: Any = None
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        for statement in statements:
            cursor = conn.execute(statement.encode())
            answer = cursor.fetchall() if cursor.description else None
    return answer


def psql(server: postgres.Server, url: str, sql: str) -> None:
    command = [server.psql, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1", url]
    done = subprocess.run(command, input=sql, text=True, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr


def works(url: str) -> None:
    """Let an app do its work there."""
    asyncio.run(work(url))


async def work(url: str) -> None:
    app = WorkerOrchestrator(url)

    @app.task(concurrency_key="{to}")
    def mail(to: str) -> str:
        return f"to {to}"

    app.task(name="post", rate_limit="1000/s")(lambda: "sent")
    app.worker(name="tick", interval_seconds=3600)(lambda: None)
    await app.start()
    jobs = [(await app.control.jobs.enqueue("mail", {"to": "you"}))[0] for _ in range(3)]
    assert [await job.result(30) for job in jobs] == ["to you"] * 3
    assert await (await app.control.jobs.enqueue("post", {}))[0].result(30) == "sent"
    await app.stop()
    assert await app.discard_jobs(status="completed") >= 4
    await app.close()


# ── looking and making ───────────────────────────────────────────────────────────────────────────────────────────────


def test_from_an_empty_database_to_a_schema(url: str) -> None:
    empty = document("status", "--store", url)
    assert (empty["version"], empty["by_hand"]) == (0, True)
    assert [step["done"] for step in empty["steps"]] == [False] * len(STEPS)
    assert "there is no schema yet: shiftwork db upgrade creates it" in output("status", "--store", url)
    assert run(url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'shiftwork'") == [(0,)], "looking made it"
    made = document("upgrade", "--store", url)
    assert (made["version"], made["upgraded"]) == (2, STEPS)
    assert document("status", "--store", url)["steps"] == STEPS
    assert output("upgrade", "--store", url).endswith(", schema version 2: up to date\n")
    assert document("upgrade", "--store", url)["upgraded"] == []


def test_an_app_works_on_a_schema_made_by_hand(url: str) -> None:
    output("upgrade", "--store", f"{url}?schema=by_hand")
    works(f"{url}?schema=by_hand")


def test_many_at_once_make_one_schema(url: str) -> None:
    command = [sys.executable, "-m", "shiftwork", "db", "upgrade", "--json", "--store", url]
    with ExitStack() as started, closing(psycopg.connect(url)) as migrating:
        migrating.execute("SELECT pg_advisory_xact_lock(%s)", (migrations._LOCK,))
        running = [started.enter_context(_started(command)) for _ in range(3)]
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_until(lambda: run(url, waiting) == [(3,)], within=100)  # all of them have seen an empty database
        migrating.rollback()
        answers = [json.loads(process.communicate(timeout=60)[0]) for process in running]
    assert [process.returncode for process in running] == [0] * 3
    assert sorted(len(answer["upgraded"]) for answer in answers) == [0, 0, len(STEPS)]
    assert {answer["version"] for answer in answers} == {2}


@contextmanager
def _started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that does not outlive the test."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


# ── a next version ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add a migration, as a next version of shiftwork would."""
    known = migrations.migrations()
    more = Migration(
        3,
        "0003_more",
        "ALTER TABLE shiftwork.jobs ADD COLUMN colour text;",
        "ALTER TABLE shiftwork.jobs ALTER COLUMN colour SET DEFAULT 'red';",
    )
    monkeypatch.setattr(migrations, "migrations", lambda: (*known, more))


def test_the_phases_of_a_next_version(url: str, request: pytest.FixtureRequest) -> None:
    output("upgrade", "--store", url)
    request.getfixturevalue("next_version")
    assert "2 steps pending: shiftwork db upgrade\n" in output("status", "--store", url)
    before = document("upgrade", "--phase", "before", "--store", url)
    assert [(step["name"], step["phase"]) for step in before["upgraded"]] == [("0003_more", "before")]
    left = output("status", "--store", url)
    assert "1 step pending: shiftwork db upgrade, once all processes of the previous version have stopped\n" in left
    assert re.search(r"0003_more +after +pending", left)
    assert document("upgrade", "--phase", "before", "--store", url)["upgraded"] == []
    assert "0003_more, after: done\n" in output("upgrade", "--store", url)
    assert output("status", "--store", url).endswith("up to date\n")


def test_pending_sql_is_what_the_database_lacks(
    server: postgres.Server, url: str, request: pytest.FixtureRequest
) -> None:
    output("upgrade", "--store", url)
    assert (
        output("sql", "--pending", "--store", url) == "-- The schema shiftwork has version 2: nothing is left to do.\n"
    )
    request.getfixturevalue("next_version")
    before = output("sql", "--pending", "--phase", "before", "--store", url)
    assert "ADD COLUMN colour" in before
    assert "SET DEFAULT" not in before
    assert "CREATE TABLE" not in before
    assert "CREATE OR REPLACE FUNCTION" not in before
    psql(server, url, before)
    psql(server, url, output("sql", "--pending", "--store", url))
    assert [step["done"] for step in document("status", "--store", url)["steps"]] == [True] * (len(STEPS) + 2)


def test_a_step_that_fails_changes_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    output("upgrade", "--store", url)
    known = migrations.migrations()
    bad = Migration(3, "0003_bad", "ALTER TABLE shiftwork.jobs ADD COLUMN colour text; SELECT 1 / 0;", "")
    monkeypatch.setattr(migrations, "migrations", lambda: (*known, bad))
    result = db("upgrade", "--store", url)
    assert result.exit_code == 3
    assert "division by zero" in result.stderr
    assert run(url, "SELECT count(*) FROM information_schema.columns WHERE column_name = 'colour'") == [(0,)]


@pytest.mark.parametrize("words", [["status"], ["upgrade"], ["sql", "--pending"]])
def test_a_schema_of_a_newer_shiftwork_is_refused(url: str, words: list[str]) -> None:
    output("upgrade", "--store", url)
    run(url, "INSERT INTO shiftwork.migrations VALUES (7, 'before')")
    assert "of a newer shiftwork" in output("status", "--store", url)
    run(url, "INSERT INTO shiftwork.migrations VALUES (7, 'after')")
    result = db(*words, "--store", url)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "has schema version 7; this shiftwork works with version 2. Upgrade shiftwork" in result.stderr


# ── functions of another version ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def next_functions(monkeypatch: pytest.MonkeyPatch) -> str:
    """Change a function, as a next version of shiftwork would, and return the version of the changed set."""
    changed = functions.parse(functions.current().text.replace("RETURN true;", "RETURN NOT false;"))
    monkeypatch.setattr(functions, "current", lambda: changed)
    return changed.version


def test_a_next_version_of_functions_is_a_step(url: str, request: pytest.FixtureRequest) -> None:
    output("upgrade", "--store", url)
    old = functions.current().version
    new = request.getfixturevalue("next_functions")
    before = document("upgrade", "--phase", "before", "--store", url)
    assert [step["name"] for step in before["upgraded"]] == [f"functions {new}"]
    assert installed(url) == {old, new}
    left = output("status", "--store", url)
    assert f"functions {new}" in left
    assert f"drop functions {old}" in left
    assert "1 step pending: shiftwork db upgrade, once all processes of the previous version have stopped\n" in left
    assert f"drop functions {old}, after: done\n" in output("upgrade", "--store", url)
    assert installed(url) == {new}
    assert output("status", "--store", url).endswith("up to date\n")


def test_an_older_command_leaves_newer_functions_alone(
    url: str, next_functions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = functions.current
    monkeypatch.undo()
    output("upgrade", "--store", url)
    monkeypatch.setattr(functions, "current", newer)
    output("upgrade", "--phase", "before", "--store", url)
    monkeypatch.undo()
    assert document("upgrade", "--store", url)["upgraded"] == []
    assert f"functions {next_functions} of another shiftwork" in output("status", "--store", url)
    assert installed(url) == {functions.current().version, next_functions}


def test_pending_sql_has_the_functions_that_are_left_to_do(
    server: postgres.Server, url: str, request: pytest.FixtureRequest
) -> None:
    output("upgrade", "--store", f"{url}?schema=Other_1")
    new = request.getfixturevalue("next_functions")
    psql(server, url, output("sql", "--pending", "--phase", "before", "--store", f"{url}?schema=Other_1"))
    assert len(installed(url, "Other_1")) == 2
    psql(server, url, output("sql", "--pending", "--store", f"{url}?schema=Other_1"))
    assert installed(url, "Other_1") == {new}
    works(f"{url}?schema=Other_1")


def test_missing_functions_are_installed_again(url: str) -> None:
    output("upgrade", "--store", url)
    run(url, f"DROP FUNCTION shiftwork.hold_{functions.current().version}")
    assert "1 step pending: shiftwork db upgrade\n" in output("status", "--store", url)
    works(url)
    assert output("status", "--store", url).endswith("up to date\n")


def test_functions_that_have_lost_their_search_path_are_installed_again(url: str) -> None:
    output("upgrade", "--store", url)
    run(url, f"ALTER FUNCTION shiftwork.leave_{functions.current().version} RESET search_path")
    assert "1 step pending: shiftwork db upgrade\n" in output("status", "--store", url)
    works(url)
    assert output("status", "--store", url).endswith("up to date\n")


def installed(url: str, schema: str = "shiftwork") -> set[str]:
    """Return the versions of functions in a schema, after checking that each set is complete."""
    listed = (
        f"SELECT right(proname, 8), count(*) FROM pg_proc WHERE pronamespace = '\"{schema}\"'::regnamespace GROUP BY 1"
    )
    found = dict(run(url, listed))
    assert set(found.values()) == {len(functions.current().names)}
    assert {version for (version,) in run(url, f'SELECT version FROM "{schema}".functions')} == set(found)
    return set(found)


# ── for an administrator ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("schema", ["shiftwork", "Other_1"])
def test_the_printed_sql_makes_a_schema_that_works_for_a_user_without_rights(
    server: postgres.Server, url: str, schema: str
) -> None:
    user = f"app_{namespace().replace(' ', '_')}"
    run(url, f"CREATE ROLE {user} LOGIN PASSWORD 'x'")
    theirs = f"{server.url_of(url.rpartition('/')[2], f'{user}:x')}?schema={schema}"
    refused = db("upgrade", "--store", theirs)
    assert refused.exit_code == 3
    assert "shiftwork db sql --grant-to USER" in refused.stderr
    psql(server, url, output("sql", "--grant-to", user, "--store", theirs))
    works(theirs)
    assert document("status", "--store", theirs)["steps"] == STEPS
    tables = run(url, f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")
    run(url, "TRUNCATE " + ", ".join(f'"{schema}".{table}' for (table,) in tables))
    works(theirs)  # it only writes rows
    assert document("status", "--store", theirs)["steps"] == STEPS


def test_the_printed_sql_is_all_or_nothing(server: postgres.Server, url: str) -> None:
    sql = output("sql", "--store", url)
    run(url, "CREATE SCHEMA shiftwork", "CREATE TABLE shiftwork.events (a int)")
    with pytest.raises(AssertionError, match='relation "events" already exists'):
        psql(server, url, sql)
    assert run(url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'shiftwork'") == [(1,)]


def test_the_sql_is_printed_without_a_server() -> None:
    nowhere = "postgresql://u@127.0.0.1:1/d"
    assert "CREATE TABLE shiftwork.jobs" in output("sql", "--store", nowhere)
    assert f"FUNCTION shiftwork.claim_{functions.current().version}(" in output("sql", "--store", nowhere)
    assert document("sql", "--store", nowhere)["sql"] == output("sql", "--store", nowhere)
    result = db("status", "--store", nowhere)
    assert result.exit_code == 3
    assert "nothing listens there" in result.stderr


# ── stores that look after themselves ────────────────────────────────────────────────────────────────────────────────


def nothing_by_hand(url: str) -> None:
    words = f"{url}, schema version 2: nothing to do by hand. Opening the store creates what it needs.\n"
    assert output("status", "--store", url) == words
    assert output("upgrade", "--store", url) == words
    printed = db("sql", "--store", url)
    assert (printed.exit_code, printed.stdout, printed.stderr) == (0, "", words)
    assert document("status", "--store", url) == {"store": url, "version": 2, "by_hand": False, "steps": []}
    assert document("upgrade", "--store", url) == {"store": url, "version": 2, "by_hand": False, "upgraded": []}
    assert document("sql", "--store", url) == {"store": url, "sql": None}


def test_redis_needs_no_hand(valkey_server: Server) -> None:
    nothing_by_hand(valkey_server.url)


async def make(path: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{path}")
    await app.control.store.open()
    await app.close()


def test_sqlite_needs_no_hand(tmp_path: Path) -> None:
    path = tmp_path / "shiftwork.db"
    missing = db("status", "--store", f"sqlite:///{path}")
    assert missing.exit_code == 3
    assert not path.exists()
    asyncio.run(make(path))
    nothing_by_hand(f"sqlite:///{path}")


def test_memory_needs_no_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "memo_db.py").write_text(
        "from shiftwork import WorkerOrchestrator\napp = WorkerOrchestrator('memory://')\n"
    )
    assert "memory://, no schema: nothing to do by hand" in output("status", "--app", "memo_db")
