"""The functions of the database: their files, their version, and two versions of shiftwork in one schema at once."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest

import shiftwork
from shiftwork.store.postgres import queries
from shiftwork.store.postgres.server import functions, migrations, sql
from shiftwork.store.postgres.store import PostgresStore
from tests.store.conformance.acts import NOW, claim_one, finish, job, succeeded
from tests.store.servers.postgres import names, server_url

FILES: Final = dict(sql.read_folder("functions"))
CALLED: Final = re.compile(r"\bshiftwork\.(\w+)\(")
PLANNED_FREELY: Final = {"announce", "facts", "fence_above", "record", "take_state", "take_totals"}
"""Functions that are called rarely, or read jobs only by a key."""

# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def indices() -> set[str]:
    """Return the names of all indices, including those of primary keys."""
    text = "\n".join(each.before for each in migrations.migrations())
    named = set(re.findall(r"CREATE (?:UNIQUE )?INDEX (\w+)", text))
    return named | {f"{table}_pkey" for table in re.findall(r"CREATE TABLE shiftwork\.(\w+)", text)}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_names_its_data_model_and_its_indices(name: str) -> None:
    assert "\n-- Tables and indices: migrations/0001_tables.sql.\n" in FILES[name]
    listed = re.search(r"^-- Indices: (.+)\.$", FILES[name], re.MULTILINE)
    assert listed, name
    assert set(listed[1].split(", ")) <= indices()


def test_each_function_is_defined_once_and_nothing_else_is_called() -> None:
    defined = re.findall(r"FUNCTION shiftwork\.(\w+)\(", functions.current().text)
    assert len(defined) == len(set(defined)) == len(functions.current().names)
    assert set(CALLED.findall(functions.current().text + sql.read("queries.sql"))) == set(defined)


def test_functions_that_are_called_from_outside_forbid_plans_that_read_a_table_whole() -> None:
    called = set(CALLED.findall(sql.read("queries.sql"))) - PLANNED_FREELY
    for name in called:
        definition = functions.current().text.partition(f"FUNCTION shiftwork.{name}(")[2].partition("$$")[0]
        assert "SET enable_seqscan = off" in definition, name
        assert "SET plan_cache_mode = force_generic_plan" in definition, name


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_file_spells_out_settings_of_the_planner(name: str) -> None:
    text = (Path(shiftwork.__file__).parent / "store" / "postgres" / "functions" / name).read_text(encoding="utf-8")
    assert "SET enable_" not in text
    assert "SET plan_cache_mode" not in text


# ── versions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_a_changed_function_makes_a_new_version() -> None:
    ours = functions.current()
    assert functions.parse(ours.text + "\n-- A comment.\n").version == ours.version
    assert functions.parse(ours.text.replace("parked", "Parked", 1)).version != ours.version


def test_every_call_has_the_version_behind_its_name() -> None:
    version = functions.current().version
    text = functions.current().install_sql("Other_1") + "".join(queries.statements("Other_1").values())
    assert "shiftwork.jobs" not in text
    called = re.findall(r'"Other_1"\.(\w+)\(', text)
    assert called
    assert [name for name in called if not name.endswith(f"_{version}")] == []


# ── two versions at once ─────────────────────────────────────────────────────────────────────────────────────────────

OTHER: Final = """
import asyncio, sys
from shiftwork.store.postgres.store import PostgresStore
from tests.store.conformance.acts import NOW, claim_one, finish, job, succeeded

async def main(url):
    store = PostgresStore(url)
    await store.open()
    print("open", flush=True)
    while line := (await asyncio.to_thread(sys.stdin.readline)).strip():
        await store.add([job(line)], NOW)
        await finish(store, succeeded(await claim_one(store, line)))
        print(await store.hold("leader", "other", 1, 5.0, NOW), flush=True)
        await store.drop("leader", "other")
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


class OtherVersion:
    """A process of another version of shiftwork, in which the function `hold` has one more parameter."""

    def __init__(self, folder: Path, url: str) -> None:
        source = Path(shiftwork.__file__).parent
        shutil.copytree(source, folder / "shiftwork", ignore=shutil.ignore_patterns("__pycache__", "dist"))
        there = folder / "shiftwork" / "store" / "postgres"
        replace(there / "functions" / "lease.sql", "ns integer, place text", "ns integer, spare integer, place text")
        replace(there / "queries.sql", "shiftwork.hold(%s::int,", "shiftwork.hold(%s::int, 7,")
        self._process = subprocess.Popen(
            [sys.executable, "-c", OTHER, url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(folder)},
        )
        assert self.answer() == "open"

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def work(self, id: str) -> None:
        """Make it add, claim and finish a job, and hold a place."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{id}\n")
        self._process.stdin.flush()
        assert self.answer() == "True"

    def end(self) -> None:
        self._process.communicate("\n", timeout=30)
        assert self._process.returncode == 0


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.fixture
def place() -> Iterator[tuple["psycopg.Connection[Any]", str]]:
    """Yield a connection, and the URL of a schema that does not exist yet."""
    url, schema = server_url(names()[0]), f"versions_{uuid4().hex}"
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        yield conn, f"{url}?schema={schema}"
        conn.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


def versions(conn: "psycopg.Connection[Any]", url: str) -> list[str]:
    schema = url.partition("schema=")[2]
    return [version for (version,) in conn.execute(f'SELECT version FROM "{schema}".functions ORDER BY made_at')]


async def work(store: PostgresStore, id: str) -> None:
    await store.add([job(id)], NOW)
    await finish(store, succeeded(await claim_one(store, id)))


async def test_nodes_of_two_versions_work_side_by_side(
    place: tuple["psycopg.Connection[Any]", str], tmp_path: Path
) -> None:
    conn, url = place
    older = OtherVersion(tmp_path, url)
    older.work("1")
    store = PostgresStore(url)
    await store.open()
    first, second = versions(conn, url)
    assert second == functions.current().version
    for n in range(5):
        older.work(f"older {n}")
        await work(store, f"newer {n}")
    older.end()
    assert [step.name for step in await store.upgrade_schema(after=True)] == [f"drop functions {first}"]
    assert versions(conn, url) == [second]
    await work(store, "last")
    await store.close()


async def test_a_node_whose_functions_were_dropped_too_early_installs_them_again(
    place: tuple["psycopg.Connection[Any]", str], tmp_path: Path
) -> None:
    conn, url = place
    older = OtherVersion(tmp_path, url)
    older.work("1")
    store = PostgresStore(url)
    await store.open()
    await store.upgrade_schema(after=True)
    assert versions(conn, url) == [functions.current().version]
    older.work("2")
    await work(store, "3")
    assert len(versions(conn, url)) == 2
    older.end()
    await store.close()
