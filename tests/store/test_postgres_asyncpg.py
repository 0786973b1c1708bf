"""Jobs in transactions of asyncpg, alone and under SQLAlchemy: they commit with the user's writes, or not at all."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
import sqlalchemy
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from shiftwork import WorkerOrchestrator
from shiftwork.errors import LifecycleError
from shiftwork.store.postgres.store import PostgresStore
from tests.runtime.stage import worker_of
from tests.store.conformance.acts import NOW, job
from tests.store.servers.postgres import names, server_url


@pytest.fixture(scope="module", params=names())
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return the URL of the server in the form that asyncpg takes."""
    info = conninfo_to_dict(server_url(request.param))
    return {
        "url": server_url(request.param),
        "host": info["host"],
        "port": int(info.get("port") or 5432),
        "user": info["user"],
        "password": info.get("password"),
        "database": info["dbname"],
    }


@pytest.fixture
async def app(place: dict[str, Any]) -> AsyncIterator[WorkerOrchestrator]:
    """Yield an app in a namespace of its own, with a task."""
    made = WorkerOrchestrator(place["url"], namespace=uuid4().hex)

    @made.task()
    async def send(to: str) -> None: ...

    yield made
    await made.close()


def send(app: WorkerOrchestrator) -> Any:
    return worker_of(app, "send")


async def there(app: WorkerOrchestrator, *jobs: Any) -> list[bool]:
    store = await app.control.store.open()
    return [record is not None for record in await store.get([one.id for one in jobs])]


async def test_asyncpg_commits_or_rolls_back(app: WorkerOrchestrator, place: dict[str, Any]) -> None:
    conn = await asyncpg.connect(**{name: value for name, value in place.items() if name != "url"})
    transaction = conn.transaction()
    await transaction.start()
    undone = await send(app).enqueue_with(conn, to='a "quoted" \\ name')
    await transaction.rollback()
    async with conn.transaction():
        done = await send(app).enqueue_with(conn, to="b")
        assert await there(app, done) == [False]
    assert await there(app, undone, done) == [False, True]
    with pytest.raises(LifecycleError, match="await enqueue_with"):
        await asyncio.to_thread(send(app).enqueue_with_blocking, conn, to="a")
    await conn.close()


async def test_asyncpg_names_a_flow_by_its_last_job_also_when_an_id_is_given_twice(place: dict[str, Any]) -> None:
    store = PostgresStore(place["url"], namespace=uuid4().hex)
    conn = await asyncpg.connect(**{name: value for name, value in place.items() if name != "url"})
    new = [job("a", "first", flow="f"), job("a", flow="f"), job("b", "last", flow="f")]
    assert [one.created for one in await store.add_with(conn, new, NOW)] == [True, False, True]
    assert [(flow.id, flow.worker) for flow in await store.flows()] == [("f", "last")]
    await conn.close()
    await store.close()


@pytest.mark.parametrize("as_session", [False, True])
async def test_sqlalchemy_on_asyncpg(app: WorkerOrchestrator, place: dict[str, Any], *, as_session: bool) -> None:
    url = sqlalchemy.URL.create(
        "postgresql+asyncpg",
        username=place["user"],
        password=place["password"],
        database=place["database"],
        query={"host": place["host"], "port": str(place["port"])},
    )
    engine = create_async_engine(url)
    async with AsyncSession(engine) if as_session else engine.connect() as conn:
        undone = await send(app).enqueue_with(conn, to="a")
        await conn.rollback()
        done = await send(app).enqueue_with(conn, to="b")
        await conn.commit()
    await engine.dispose()
    assert await there(app, undone, done) == [False, True]
