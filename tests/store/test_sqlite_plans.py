"""Each statement is served by the index it names, and none looks at a whole table of jobs."""

import re
import sqlite3
from collections.abc import Iterator

import pytest

from shiftwork.store.sqlite import sql
from shiftwork.store.sqlite.claim import _merged
from shiftwork.store.sqlite.file import driver, schema
from shiftwork.store.sqlite.file.call_servers import WriteTurn

SERVES = re.compile(r"^-- name: (\w+)\n(?:--(?! serves).*\n)*-- serves: (.+)$", re.MULTILINE)
PROMISES = dict(SERVES.findall(sql.read("queries.sql")))
MODIFYING = {name for name, text in sql.SQL.items() if text.startswith("INSERT")}
HUGE = ("jobs", "payloads", "results", "attempts", "needs", "tags", "steps", "signals", "flows", "events")
ONE_ROW = {"last_seq", "any_needs", "parts_in_use"}
"""What reads one row of a table, whichever."""
IN_ORDER = (
    "heads_of_lane",
    "due_jobs",
    "key_free",
    "key_parked",
    "disposable_jobs",
    "find_by_worker",
    "find_by_flow",
    "find_by_tag",
    "find_unusual",
    "newest_running",
    "next_due",
    "next_expiry",
    "expired_jobs",
    "newest_flows",
    "newest_events",
    "delete_events",
)


@pytest.fixture(scope="module", params=[driver.driver, sqlite3], ids=lambda module: module.sqlite_version)
def db(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[driver.Connection]:
    path = str(tmp_path_factory.mktemp("plans") / "plans.db")
    connection: driver.Connection = request.param.connect(path, isolation_level=None)
    driver.prepare_writer(connection, "normal")
    turn = WriteTurn(path, f"{path}.turn")
    schema.prepare(connection, turn, path=path, namespace="default")
    turn.close()
    yield connection
    connection.close()


class Anything(dict[str, int]):
    def __missing__(self, name: str) -> int:
        return 1


def plan(db: driver.Connection, text: str) -> str:
    """What SQLite would do, one step a line."""
    text = f"EXPLAIN QUERY PLAN {text}"
    if re.search(r":[a-z]", text):
        return "\n".join(row[3] for row in db.execute(text, Anything()))
    for n in range(100):
        try:
            return "\n".join(row[3] for row in db.execute(text, [1] * n))
        except (driver.driver.ProgrammingError, sqlite3.ProgrammingError):
            continue
    raise AssertionError(text)


def statement(name: str) -> str:
    place = "tags" if name == "find_by_tag" else "jobs"
    wanted = f"jobs.status = :status AND instr(jobs.error, :error) > 0 AND {place}.created_at > :after"
    text = sql.SQL[name].replace("{wanted}", wanted)
    return sql.for_rows(name, 4) if "{(" in text else text


def promises(name: str) -> list[str]:
    """The single promises of "pools (namespace, name), lanes (pool, worker)" or "jobs_running, whole: …"."""
    return re.findall(r"\w+(?: \([^)]*\))?", PROMISES[name].split(", whole")[0])


def kept(promise: str, steps: str) -> bool:
    """Whether a plan keeps a promise such as "jobs_by_id", "jobs (rowid)" or "lanes (pool, worker)"."""
    table, _, columns = promise.partition(" (")
    if columns.startswith("all"):
        return True
    if columns.startswith(("rowid", "one row")) or promise == "store":
        return f"SEARCH {table} USING INTEGER PRIMARY KEY" in steps
    if columns:
        own_index = rf"(PRIMARY KEY|(COVERING )?INDEX sqlite_autoindex_{table})"
        return bool(re.search(rf"SEARCH {table} (EXISTS )?USING {own_index}", steps))
    return bool(re.search(rf"USING (COVERING )?INDEX {promise}\b", steps))


def test_every_statement_says_what_serves_it() -> None:
    assert set(sql.SQL) - MODIFYING - {"read_data_version"} - set(PROMISES) == set()


def test_a_statement_is_served_by_its_index(db: driver.Connection) -> None:
    broken = [
        f"{promise} does not serve {name}:\n{steps}"
        for name in sorted(set(PROMISES) - MODIFYING - {"last_seq"})
        for steps in [plan(db, statement(name))]
        for promise in promises(name)
        if not kept(promise, steps)
    ]
    assert broken == []


def test_no_statement_scans_a_table_that_grows(db: driver.Connection) -> None:
    scans = [
        f"{name}: {line}"
        for name in sorted(set(sql.SQL) - ONE_ROW)
        for line in plan(db, statement(name)).splitlines()
        for table in HUGE
        if line == f"SCAN {table}" or (line.startswith(f"SCAN {table}") and "whole" not in PROMISES.get(name, ""))
    ]
    assert scans == []


@pytest.mark.parametrize("lanes", [1, 2, 30])
def test_lanes_are_merged_without_sorting(db: driver.Connection, lanes: int) -> None:
    steps = plan(db, _merged(lanes))
    assert "TEMP B-TREE" not in steps
    assert steps.count("USING INDEX jobs_ready (pool=? AND worker=?)") == lanes


def test_what_comes_in_order_is_not_sorted(db: driver.Connection) -> None:
    assert [name for name in IN_ORDER if "TEMP B-TREE" in plan(db, statement(name))] == []
