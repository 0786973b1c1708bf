"""What a job costs, counted without a clock: upper bounds that no change exceeds unnoticed.

A round adds a hundred jobs, claims them and finishes them. The bounds leave room for another version of a server. A
change that needs more raises them on purpose; one that needs much less lowers them.
"""

import contextlib
import re
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from benchmarks.wire import counted
from shiftwork.store.postgres import queries
from shiftwork.store.protocol import Store
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import NOW, add, claim, finish, job, succeeded
from tests.store.servers.postgres import names, server_url
from tests.store.servers.redis import Server, namespace
from tests.store.test_postgres_plans import place, reads

JOBS = 100
ROUNDS = 4
"""The cheapest round counts: a server may do work of its own meanwhile, and the first round does some things once."""
REDIS_COMMANDS = (0.25, 0.4, 0.25)
REDIS_LOG_BYTES = (240.0, 130.0, 150.0)
POSTGRES_LOG_BYTES = (500.0, 510.0, 480.0)
POSTGRES_TRIPS = (0.02, 0.02, 0.02)
SQLITE_LOG_BYTES = (500.0, 500.0, 330.0)
"""Of a job that is added, claimed, finished."""
Reading = Callable[[], float]


async def cost_of_a_job(store: Store, reading: Reading) -> list[float]:
    """What adding, claiming and finishing cost, for each job of a batch."""
    rounds = [await _round(store, reading, number) for number in range(ROUNDS)]
    return [min(costs) for costs in zip(*rounds, strict=True)]


async def _round(store: Store, reading: Reading, number: int) -> list[float]:
    readings = [reading()]
    await add(store, *(job(f"{number} {n}") for n in range(JOBS)))
    readings.append(reading())
    claimed = await claim(store, JOBS)
    readings.append(reading())
    await finish(store, *(succeeded(one, keep_until=NOW) for one in claimed))
    readings.append(reading())
    assert len(claimed) == JOBS
    return [(after - before) / JOBS for before, after in pairwise(readings)]


def within(costs: list[float], *most: float) -> None:
    """The costs of adding, claiming and finishing a job are at most these."""
    assert all(cost <= bound for cost, bound in zip(costs, most, strict=True)), f"{costs} is more than {most}"


# ── Redis ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def on_redis(valkey_url: str) -> AsyncIterator[Store]:
    store = open_store(valkey_url, namespace=namespace())
    await store.open()
    yield store
    await store.close()


async def test_commands_of_a_job_on_redis(on_redis: Store, valkey_server: Server) -> None:
    def commands() -> int:
        told = valkey_server.ask("INFO", "commandstats").decode()
        return sum(int(n) for name, n in re.findall(r"cmdstat_([\w|]+):calls=(\d+)", told) if name != "info")

    within(await cost_of_a_job(on_redis, commands), *REDIS_COMMANDS)


async def test_bytes_of_a_job_in_the_log_of_redis(on_redis: Store, valkey_server: Server) -> None:
    def logged() -> int:
        return int(valkey_server.ask("INFO", "persistence").decode().partition("aof_current_size:")[2].split()[0])

    within(await cost_of_a_job(on_redis, logged), *REDIS_LOG_BYTES)


async def test_a_job_has_no_key_of_its_own_on_redis(on_redis: Store, valkey_server: Server) -> None:
    await add(on_redis, job("warm"))
    keys = int(valkey_server.ask("DBSIZE"))
    await add(on_redis, *(job(f"{n}") for n in range(JOBS)))
    assert int(valkey_server.ask("DBSIZE")) == keys


# ── PostgreSQL ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(params=names())
async def on_postgres(request: pytest.FixtureRequest) -> AsyncIterator[tuple[str, str]]:
    """The URL of a server, and the name of an empty schema on it."""
    url, schema = server_url(request.param), f"costs_{uuid4().hex}"
    yield url, schema
    with contextlib.closing(psycopg.connect(url, autocommit=True)) as db:
        db.execute(f'DROP SCHEMA "{schema}" CASCADE'.encode())


async def test_bytes_of_a_job_in_the_log_of_postgres(on_postgres: tuple[str, str]) -> None:
    url, schema = on_postgres
    store = open_store(place(url, schema))
    await store.open()
    with contextlib.closing(psycopg.connect(url, autocommit=True)) as db:

        def logged() -> float:
            found = db.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
            return float(found[0]) if found else 0.0

        db.execute("CHECKPOINT")
        costs = await cost_of_a_job(store, logged)
    await store.close()
    within(costs, *POSTGRES_LOG_BYTES)


async def test_rows_of_a_job_on_postgres(on_postgres: tuple[str, str]) -> None:
    """Its own row is written three times; whatever else is written belongs to the batch, not to the job."""
    url, schema = on_postgres
    store = open_store(place(url, schema))
    await store.open()
    await cost_of_a_job(store, float)
    await store.close()
    with contextlib.closing(psycopg.connect(url, autocommit=True)) as db:
        reads(db, schema)  # sessions report what they did when they end
        rows: dict[str, int] = dict(
            db.execute(
                "SELECT relname, (n_tup_ins + n_tup_upd) FROM pg_stat_all_tables WHERE schemaname = %s", (schema,)
            ).fetchall()
        )
    jobs = JOBS * ROUNDS
    assert rows.pop("jobs") == 3 * jobs
    assert sum(rows.values()) <= 12 * ROUNDS + 20, rows


async def test_a_claim_among_many_workers_reads_few_rows_on_postgres(on_postgres: tuple[str, str]) -> None:
    """Reading as many of each queue as it wants in all would read 100 times as many."""
    url, schema = on_postgres
    store = open_store(place(url, schema))
    await store.open()
    workers = [f"w{number}" for number in range(100)]
    await store.add([job(f"{number:05}", workers[number % 100]) for number in range(10_000)], NOW)
    statement = queries.statements(schema)["claim"].encode()
    with contextlib.closing(psycopg.connect(url)) as db:
        found = db.execute(f'SELECT no FROM "{schema}".namespaces'.encode()).fetchone()
        number = found[0] if found else 0
        taken = db.execute(statement, (number, "i", "p", 100, NOW, workers, None, None)).fetchall()
        read = db.execute(
            "SELECT idx_tup_fetch FROM pg_stat_xact_user_tables WHERE schemaname = %s AND relname = 'jobs'", (schema,)
        ).fetchone()
    await store.close()
    assert len(taken) == 100
    assert read is not None
    assert read[0] < 15 * 100


async def test_round_trips_of_a_batch_on_postgres(on_postgres: tuple[str, str]) -> None:
    url, schema = on_postgres
    async with counted(url.partition("?")[0]) as (through, passed):
        store = open_store(f"{through}?schema={schema}")
        await store.open()
        costs = await cost_of_a_job(store, lambda: passed.trips)
        await store.close()
    within(costs, *POSTGRES_TRIPS)


# ── SQLite ───────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_bytes_of_a_job_in_the_log_of_sqlite(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "costs.db"))
    await store.open()
    log = tmp_path / "costs.db-wal"
    costs = await cost_of_a_job(store, lambda: float(log.stat().st_size))
    await store.close()
    within(costs, *SQLITE_LOG_BYTES)
