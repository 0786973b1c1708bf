"""No function of another role is ever called: neither in place of PostgreSQL's own, nor from a temporary schema.

Every shared server of the tests has the traps of servers/hostile.py; here they also come first in the search path.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, Final
from uuid import uuid4

import asyncpg
import psycopg
import pytest
import sqlalchemy
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict

from shiftwork import Context, JobStatus, WorkerOrchestrator
from shiftwork.core.model.job_parts import Need
from shiftwork.store.postgres import queries
from shiftwork.store.postgres.server import functions, search_path
from shiftwork.store.postgres.server.address import parse
from shiftwork.store.postgres.store import PostgresStore
from shiftwork.store.protocol import Store
from shiftwork.store.urls import open_store
from tests.runtime.stage import worker_of
from tests.store.conformance.acts import NOW
from tests.store.conformance.acts import job as new
from tests.store.conformance.checks import (
    adding,
    bells,
    claim_cost,
    core_rules,
    docs_and_events,
    durable,
    explaining,
    finding_and_amending,
    finishing,
    flows,
    leading,
    leases,
    opening_and_closing,
    restoring,
    rewriting,
)
from tests.store.conformance.expect import soon
from tests.store.conformance.suite import CHECKS, Check, run_check
from tests.store.servers.hostile import TEMPORARY, hijacks, hostile_database, remove_database, trapped_calls
from tests.store.servers.pgbouncer import pgbouncer
from tests.store.servers.postgres import names, server_url

OFTEN: Final = {
    topic.__name__
    for topic in (
        *(adding, finishing, flows, durable, leading, leases, opening_and_closing, core_rules, finding_and_amending),
        *(docs_and_events, restoring, rewriting, explaining),
    )
}
"""Topics that are checked through the proxy with every run of the tests; soak tests check all."""
OFTEN_DIRECT: Final = {topic.__name__ for topic in (adding, finishing, opening_and_closing)}
"""Directly, one setting protects all statements of a session, and these topics show it. Through the proxy, where each
statement and function has to protect itself, the same statements are tried."""


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """Yield the URL of a database in which every name without a schema is a trap."""
    server = server_url(names()[0])
    url = hostile_database(server)
    yield url
    assert hijacks(url) == 0
    remove_database(server, url)


@pytest.fixture(scope="module")
def trapped(database: str) -> Iterator[Callable[[], int]]:
    """Count the calls of traps, in one session: a new one costs more than a short test does."""
    with closing(psycopg.connect(database, autocommit=True)) as conn:
        yield partial(trapped_calls, conn)


@pytest.fixture(scope="module")
def pooled(database: str) -> Iterator[str]:
    with pgbouncer(database) as url:
        yield url


@pytest.fixture
def door(request: pytest.FixtureRequest) -> str:
    """The URL of the database, or of a proxy in front of it that keeps no setting of a session."""
    return str(request.getfixturevalue("database" if request.param == "direct" else "pooled"))


def place(url: str) -> Callable[[], Store]:
    return partial(open_store, url, namespace=uuid4().hex)


def cases() -> Iterator[Any]:
    """Yield every check through both doors, without bells where there are none."""
    for check in CHECKS:
        direct = () if check.__module__ in OFTEN_DIRECT else pytest.mark.soak
        yield pytest.param(check, "direct", marks=direct, id=f"{check.__name__[6:]}-direct")
        if check.__module__ != bells.__name__:
            marks = [pytest.mark.needs("pgbouncer"), *([] if check.__module__ in OFTEN else [pytest.mark.soak])]
            yield pytest.param(check, "pooled", marks=marks, id=f"{check.__name__[6:]}-pooled")


@pytest.mark.parametrize(("check", "door"), list(cases()), indirect=["door"])
async def test_a_store_falls_into_no_trap(
    check: Check, door: str, trapped: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_cost, "CROWD", claim_cost.BATCH)
    await run_check(check, lambda: place(door))
    assert trapped() == 0


def test_the_traps_work(database: str) -> None:
    with closing(psycopg.connect(database, autocommit=True)) as conn:
        for text in ("SELECT cardinality('{a}'::text[])", "SELECT 1 = 1", "SELECT now()", "SELECT 1.5::float8 > 0"):
            with pytest.raises(psycopg.Error, match="hijacked"):
                conn.execute(text.encode())
        conn.execute("SELECT pg_catalog.setval('public.hijacked', 1, false)")


async def test_every_function_that_is_called_from_outside_has_a_search_path(database: str) -> None:
    store = PostgresStore(database, namespace=uuid4().hex)
    await store.open()
    await store.close()
    with closing(psycopg.connect(database, options="-c search_path=pg_catalog")) as conn:
        settings: dict[str, Any] = dict(conn.execute("SELECT proname, proconfig FROM pg_proc").fetchall())
    version = functions.current().version
    assert functions.entries() <= set(functions.current().names)
    for name in functions.entries():
        assert "search_path=pg_catalog, pg_temp" in (settings[f"{name}_{version}"] or ()), name


def test_our_connections_have_it_whatever_options_the_url_has() -> None:
    for url in ("postgresql:///x", "postgresql:///x?options=-c%20search_path%3Dmine%20-c%20work_mem%3D8MB"):
        address = parse(url)
        assert address.options["options"].endswith(" -c search_path=pg_catalog,pg_temp")
        assert "pg_catalog" not in address.lent().options["options"]
    assert "work_mem=8MB" in parse(url).options["options"]
    assert "options" not in parse("postgresql:///x?pooling=transaction").options


def test_only_a_call_of_our_own_functions_needs_no_search_path() -> None:
    statements = queries.statements("Other_1")
    calls = {name for name, text in statements.items() if search_path.is_call(text)}
    assert {"add", "add_one_fast", "claim", "finish", "keep_step", "lock_for_claim"} <= calls
    assert search_path.is_call('SELECT a FROM "s".f_1(%s::pg_catalog.text[], %s::int)')
    for text in (
        "SELECT a, now() FROM s.f(%s::int)",
        "SELECT s.f(g(%s::int))",
        "SELECT s.f(%s::int + 1)",
        "SELECT f(%s::int)",
        "SELECT s.f(%s::int), s.g(%s::int)",
        "SELECT a FROM s.f(%s::int) WHERE a = 1",
    ):
        assert not search_path.is_call(text), text


# ── connections that are not only ours ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture
async def app(database: str) -> Any:
    made = WorkerOrchestrator(database, namespace=uuid4().hex)

    @made.task()
    async def send(to: str, ctx: Context) -> str:
        async with ctx.transaction() as connection:
            await connection.execute(TEMPORARY.encode())
            await connection.execute("INSERT INTO public.notes VALUES ('x')")
            await connection.execute("INSERT INTO notes VALUES ('x')")  # found by the search path of the role
            [path] = await (await connection.execute("SHOW search_path")).fetchone()
        return str(path)

    with closing(psycopg.connect(database, autocommit=True)) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS public.notes (note pg_catalog.text)")
    yield made
    await made.close()


Enqueue = Callable[[WorkerOrchestrator, str], Awaitable[Any]]


async def by_async(app: WorkerOrchestrator, url: str) -> Any:
    send = worker_of(app, "send")
    async with await AsyncConnection.connect(url) as conn:
        await conn.execute(TEMPORARY.encode())
        job = await send.enqueue_with(conn, to="a")
        store = await app.control.store.open()
        assert isinstance(store, PostgresStore)
        twins = [new("twin", flow="f"), new("twin", flow="f")]
        assert [each.created for each in await store.add_with(conn, twins, NOW)] == [True, False]
        assert await (await conn.execute("SHOW search_path")).fetchone() == ("public, pg_catalog",)
    assert [flow.worker for flow in await store.flows()] == ["w"]
    return job


async def by_asyncpg(app: WorkerOrchestrator, url: str) -> Any:
    info = conninfo_to_dict(url)
    where = {"host": info["host"], "port": int(info.get("port") or 5432), "user": info["user"]}
    conn: Any = await asyncpg.connect(**where, password=info.get("password"), database=info["dbname"])
    try:
        async with conn.transaction():
            await conn.execute(TEMPORARY)
            job = await worker_of(app, "send").enqueue_with(conn, to="a")
            store = await app.control.store.open()
            assert isinstance(store, PostgresStore)
            needy = new("needy", flow="f", tags=("t",), needs=(Need("needed"),))
            await store.add_with(conn, [new("needed", flow="f"), needy, new("needed", flow="f")], NOW)
    finally:
        await conn.close()
    return job


async def by_sqlalchemy(app: WorkerOrchestrator, url: str) -> Any:
    return await asyncio.to_thread(enqueue_with_sqlalchemy, app, url)


def enqueue_with_sqlalchemy(app: WorkerOrchestrator, url: str) -> Any:
    # SQLAlchemy itself would fall into the traps when it connects: it asks for the `current_schema()`.
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=lambda: psycopg.connect(url),
        poolclass=sqlalchemy.pool.NullPool,
        _initialize=False,
    )
    with engine.begin() as connection:
        connection.exec_driver_sql(TEMPORARY)
        return worker_of(app, "send").enqueue_with_blocking(connection, to="a")


async def by_blocking(app: WorkerOrchestrator, url: str) -> Any:
    return await asyncio.to_thread(enqueue_blocking, app, url)


def enqueue_blocking(app: WorkerOrchestrator, url: str) -> Any:
    with closing(psycopg.connect(url)) as conn:
        conn.execute(TEMPORARY.encode())
        job = worker_of(app, "send").enqueue_with_blocking(conn, to="a")
        assert conn.execute("SHOW search_path").fetchone() == ("public, pg_catalog",)
        conn.commit()
    return job


@pytest.mark.parametrize("enqueue", [by_async, by_asyncpg, by_blocking, by_sqlalchemy])
async def test_a_transaction_of_the_user_keeps_its_search_path(
    app: WorkerOrchestrator, database: str, enqueue: Enqueue
) -> None:
    job = await enqueue(app, database)
    await app.start()
    assert await soon(job.ended(30), "the job") == JobStatus.COMPLETED, await app.get_job(job.id)
    await app.stop()
    assert hijacks(database) == 0
