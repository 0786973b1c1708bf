"""Each statement uses the index it names, whatever the planner believes about the tables."""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
from msgspec import msgpack

from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.job_changes import JobFilter, Outcome
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.admission import Gates
from shiftwork.store.postgres import queries
from shiftwork.store.postgres.finish import outcome_columns
from shiftwork.store.postgres.rows import new_columns
from shiftwork.store.postgres.server import sql
from shiftwork.store.postgres.store import PostgresStore
from tests.polling import wait_until
from tests.store.conformance.acts import NOW, add, claim, finish, job, succeeded
from tests.store.servers.postgres import names, server_url

SERVES: Final = re.compile(r"^-- name: (\w+)\n(?:--(?! serves).*\n)*-- serves: (.+)$", re.MULTILINE)
PROMISES: Final = dict(SERVES.findall(sql.read("queries.sql")))
INDEX: Final = re.compile(r"using (\w+) on|Index Scan on (\w+)")
ROWS: Final = 20_000


@pytest.fixture(scope="module", params=names())
def db(request: pytest.FixtureRequest) -> Iterator[tuple["psycopg.Connection[Any]", str]]:
    """Yield a connection and the URL of a schema, which the first test fills with jobs."""
    url, schema = server_url(request.param), f"plans_{uuid4().hex}"
    with closing(psycopg.connect(url, autocommit=True, options="-c search_path=pg_catalog")) as conn:
        yield conn, place(url, schema)
        conn.execute(f'DROP SCHEMA IF EXISTS "{schema}" CASCADE')


def place(url: str, schema: str) -> str:
    """Return the URL of a schema; the sessions of a store there have its name."""
    return f"{url.partition('?')[0]}?application_name={schema}&schema={schema}"


async def fill(url: str, n: int) -> PostgresStore:
    store = PostgresStore(url)
    await store.open()
    await store.add([job(f"{uuid4()}", "wv"[n % 2]) for n in range(n)], NOW)
    return store


def arguments(text: str) -> Any:
    if "%(" in text:
        values = {
            "namespace": 1,
            "now": NOW,
            "limit": 10,
            "ids": ["1"],
            "workers": ["w", "v"],
            "pools": ["p", "p"],
            "statuses": [0, 6],
            "tag": "t",
            "flow": "f",
            "created_at": NOW,
            "id": "1",
            "after": 0,
            "fence": 1,
            "most_bytes": 100,
            "head": 10,
            "tail": 5,
        }
        carried = re.findall(r"%\((?:old_)?(?:payload|result|progress|error|attempts|steps|signals)\)", text)
        values |= {name[2:-1]: None for name in carried}
        return values | {"pool": "p", "error": "e", "id": "1"}
    kinds = {"int": 1, "float8": 1.0, "bytea[]": ["\\x"], "bigint[]": [1]}
    return [
        kinds.get(kind, ["1"] if kind.endswith("[]") else 1)
        for kind in re.findall(r"%s(?:::(?:pg_catalog\.)?([\w\[\]]+))?", text)
    ]


@pytest.mark.parametrize("name", sorted(PROMISES))
async def test_a_statement_uses_the_index_it_names(db: tuple["psycopg.Connection[Any]", str], name: str) -> None:
    conn, url = db
    schema = url.partition("schema=")[2]
    if conn.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchone() is None:
        store = await fill(url, ROWS)
        while taken := await claim(store, 5_000, workers=["w"]):
            await finish(store, *(succeeded(one) for one in taken))
        await store.close()
        conn.execute(f'VACUUM ANALYZE "{schema}".jobs')
    wanted = "j.pool = %(pool)s AND position(%(error)s in j.error) > 0"
    text = queries.statements(schema)[name].replace("{wanted}", wanted).replace("{found}", queries.BEGUN)
    args = [str(arg) if name == "place_of" else arg for arg in arguments(text)] if "%(" not in text else arguments(text)
    steps = "\n".join(row[0] for row in conn.execute(f"EXPLAIN {text}".encode(), args))
    used = {one or other for one, other in INDEX.findall(steps)}
    if "lanes_pkey" not in PROMISES[name]:  # a handful of rows, read whole
        assert set(PROMISES[name].split(", ")) <= used, steps
    assert "Seq Scan on jobs" not in steps, steps


async def test_claims_read_no_more_than_they_take_whatever_is_believed(
    db: tuple["psycopg.Connection[Any]", str],
) -> None:
    """Plans are made on an empty table, on a full one without statistics, and with statistics of an empty one."""
    conn, url = db
    schema = f"stale_{uuid4().hex}"
    store = await fill(place(url, schema), 0)
    conn.execute(f'VACUUM ANALYZE "{schema}".jobs')
    await store.add([job(f"{uuid4()}", "wv"[n % 2]) for n in range(ROWS)], NOW)
    await store.close()
    for _ in range(3):
        before = reads(conn, schema)
        await store.open()  # new sessions plan again
        for _ in range(10):
            await finish(store, *(succeeded(one) for one in await claim(store, 10)))
        await store.close()
        assert reads(conn, schema) - before < 100 * 40
        conn.execute(f'ANALYZE "{schema}".jobs')
    conn.execute(f'DROP SCHEMA "{schema}" CASCADE')


async def test_claims_and_outcomes_read_nothing_of_other_workers(
    db: tuple["psycopg.Connection[Any]", str],
) -> None:
    """Neither their gates nor their states, although there were none when the tables were analysed."""
    conn, url = db
    schema = f"gates_{uuid4().hex}"
    store = await fill(place(url, schema), 0)
    conn.execute(f'VACUUM ANALYZE "{schema}".docs, "{schema}".workers')
    others = [f"other {n}" for n in range(2_000)]
    await store.put([Doc("gates", name, msgpack.encode(Gates(worker=name, pool="p"))) for name in others])
    for n in range(0, len(others), 100):  # a call for all takes long on a busy machine
        await store.take_over([WorkerState(worker=name, failures=1) for name in others[n : n + 100]], {}, 0)
    await add(store, *(job(f"{n:03}", "wv"[n % 2]) for n in range(100)))
    await store.close()
    before = reads(conn, schema, "docs") + reads(conn, schema, "workers")
    await store.open()
    for _ in range(10):
        await finish(store, *(succeeded(one) for one in await claim(store, 10)))
    await store.close()
    assert reads(conn, schema, "docs") + reads(conn, schema, "workers") - before < 100
    conn.execute(f'DROP SCHEMA "{schema}" CASCADE')


async def test_looking_for_those_that_run_reads_no_others(db: tuple["psycopg.Connection[Any]", str]) -> None:
    conn, url = db
    schema = f"running_{uuid4().hex}"
    store = await fill(place(url, schema), ROWS)
    taken = {one.id for one in await claim(store, 10)}
    await store.close()
    before = reads(conn, schema)
    await store.open()
    assert {found.id for found in await store.find(JobFilter(status=(JobStatus.PROCESSING,)))} == taken
    assert taken <= {found.id for found in await store.find(JobFilter(limit=ROWS))}
    newest = await store.find(JobFilter(limit=5))
    await store.close()
    assert len(newest) == 5
    assert reads(conn, schema) - before < ROWS + 200
    conn.execute(f'DROP SCHEMA "{schema}" CASCADE')


async def test_a_job_writes_few_records_to_the_log(db: tuple["psycopg.Connection[Any]", str]) -> None:
    """One for each version of its row and each index entry of that, and one for the lock of a claim."""
    conn, url = db
    schema, n = f"log_{uuid4().hex}", 1_000
    store = await fill(place(url, schema), 0)
    await store.close()
    added = new_columns([job(f"{number:06}") for number in range(n)], [NOW] * n)
    assert records(conn, schema, "add", (1, *added, None)) / n < 4.1
    claimed = records(conn, schema, "claim", (1, "i", "p", n, NOW, "{w}", None, None)) / n
    fences = conn.execute(f'SELECT id, fence FROM "{schema}".jobs'.encode()).fetchall()
    ends = [
        Outcome(
            id=id, fence=fence, worker="w", pool="p", status=JobStatus.COMPLETED, ended_at=NOW, run_at=NOW, attempt=1,
            crashes=0, verdict="success", keep_until=NOW,
        )
        for id, fence in fences
    ]  # fmt: skip
    finished = records(conn, schema, "finish", (1, NOW, *outcome_columns(ends))) / n
    assert max(claimed, finished) < 5.5, (claimed, finished)
    conn.execute(f'DROP SCHEMA "{schema}" CASCADE')


def records(conn: "psycopg.Connection[Any]", schema: str, name: str, args: tuple[Any, ...]) -> int:
    """Run a statement, and return how many records it wrote to the server's log."""
    text = queries.statements(schema)[name]
    steps = "\n".join(row[0] for row in conn.execute(f"EXPLAIN (ANALYZE, WAL) {text}".encode(), args))
    found = re.search(r"WAL: records=(\d+)", steps)
    assert found is not None, steps
    return int(found[1])


def reads(conn: "psycopg.Connection[Any]", schema: str, table: str = "jobs") -> int:
    """Return how many rows of a table were read, by index or not. Sessions report it when they end: wait for that."""
    sessions = "SELECT 1 FROM pg_stat_activity WHERE application_name = %s"
    wait_until(lambda: conn.execute(sessions, (schema,)).fetchone() is None)
    conn.execute("SELECT pg_stat_clear_snapshot()")
    row = conn.execute(
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_all_tables WHERE schemaname = %s AND relname = %s",
        (schema, table),
    ).fetchone()
    return int(row[0] or 0) if row else 0
