"""Behind a PgBouncer that pools by transaction: no statement may rely on the session of another one."""

import asyncio
from collections.abc import Iterator
from uuid import uuid4

import pytest

from shiftwork import Context, JobStatus, WorkerOrchestrator
from shiftwork.errors import StoreUnavailableError
from shiftwork.store.postgres.store import PostgresStore
from tests.runtime.stage import worker_of
from tests.store.conformance.acts import NOW, add, claim, finish, job, succeeded
from tests.store.conformance.expect import soon
from tests.store.servers.pgbouncer import pgbouncer
from tests.store.servers.postgres import names, server_url

pytestmark = pytest.mark.needs("pgbouncer")


@pytest.fixture(scope="module")
def pooled() -> Iterator[str]:
    """Yield the URL of a server behind a proxy that pools by transaction."""
    with pgbouncer(server_url(names()[0])) as url:
        yield url


async def test_many_stores_share_few_sessions(pooled: str) -> None:
    namespace = uuid4().hex
    stores = [PostgresStore(pooled, namespace=namespace) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    for turn in range(10):  # often enough that statements would be prepared
        new = [add(store, *(job(f"{turn} {n} {m}", key=f"{m}") for m in range(5))) for n, store in enumerate(stores)]
        await asyncio.gather(*new)
    done = 0
    while taken := await asyncio.gather(*(claim(store, 20, instance=f"{n}") for n, store in enumerate(stores))):
        await asyncio.gather(*(finish(stores[n], *map(succeeded, some)) for n, some in enumerate(taken) if some))
        done += sum(map(len, taken))
        if not any(taken):
            break
    assert done == 300
    assert (await stores[0].stats(NOW)).pools["p"].completed == 300
    assert "polling" in (await stores[0].check())["wake-up"].text
    await asyncio.gather(*(store.close() for store in stores))


async def test_without_the_parameter_for_a_proxy_the_error_names_it(pooled: str) -> None:
    store = PostgresStore(pooled.partition("?")[0])
    with pytest.raises(StoreUnavailableError, match="pooling=transaction"):
        await store.open()
    await store.close()


async def test_an_app_runs_by_polling_alone(pooled: str) -> None:
    namespace = uuid4().hex
    client, app = (WorkerOrchestrator(pooled, namespace=namespace) for _ in range(2))
    running: set[str] = set()
    together: list[set[str]] = []

    async def run(name: str, ctx: Context) -> None:
        running.add(name)
        together.append(set(running))
        async with ctx.transaction() as connection:
            await connection.execute("SELECT 1")
        running.discard(name)

    for each in (client, app):

        @each.task(blocks=["pull"])
        async def push(ctx: Context) -> None:
            await run("push", ctx)

        @each.task()
        async def pull(ctx: Context) -> None:
            await run("pull", ctx)

    await app.start()
    waiting = [worker_of(client, name) for _ in range(10) for name in ("push", "pull")]
    jobs = [await worker.enqueue() for worker in waiting]
    ended = await soon(asyncio.gather(*(each.ended(30) for each in jobs)), "the end of every job")
    assert ended == [JobStatus.COMPLETED] * 20
    assert {"push", "pull"} not in together
    await app.stop()
    await asyncio.gather(app.close(), client.close())
