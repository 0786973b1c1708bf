"""A store that is emptied under running nodes: its rules are published again before the next job starts."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing
from secrets import token_hex

import psycopg
import pytest

from shiftwork import Context, WorkerOrchestrator
from shiftwork.store.sqlite.file import driver
from tests.polling import eventually
from tests.runtime.stage import worker_of
from tests.store.servers.postgres import names, server_url
from tests.store.servers.redis import Plain

DEADLINE = 30.0
Empty = Callable[[], None]
Place = tuple[str, Empty]


def on_sqlite(request: pytest.FixtureRequest) -> Place:
    path = request.getfixturevalue("tmp_path") / "shiftwork.db"

    def empty() -> None:
        with closing(driver.driver.connect(path, timeout=DEADLINE)) as db, db:  # another library would break its locks
            for table in ("jobs", "lanes", "docs", "instances", "events", "places"):
                db.execute(f"DELETE FROM {table}")

    return f"sqlite:///{path}", empty


def on_valkey(request: pytest.FixtureRequest) -> Place:
    server = request.getfixturevalue("valkey_server")
    return server.url, lambda: server.ask("FLUSHALL") and None


def on_postgres(_: pytest.FixtureRequest) -> Place:
    bare = server_url(names()[0])
    schema = f"emptied_{token_hex(4)}"

    def empty() -> None:
        with psycopg.connect(bare, autocommit=True) as conn:
            found = conn.execute("SELECT tablename FROM pg_tables WHERE schemaname = %s", (schema,)).fetchall()
            conn.execute(f"TRUNCATE {', '.join(f'{schema}.{table}' for (table,) in found)}".encode())

    return f"{bare}{'&' if '?' in bare else '?'}schema={schema}", empty


@pytest.fixture(params=[on_sqlite, on_valkey, on_postgres], ids=["sqlite", "valkey", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    """The URL of a store, and how to empty it."""
    made: Callable[[pytest.FixtureRequest], Place] = request.param
    return made(request)


def lose_on_sqlite(url: str) -> None:
    with closing(driver.driver.connect(url.removeprefix("sqlite:///"), timeout=DEADLINE)) as db, db:
        db.execute("DELETE FROM docs WHERE kind = 'edition'")


def lose_on_valkey(url: str) -> None:
    port = int(url.removeprefix("redis://127.0.0.1:").partition("/")[0])
    with Plain(port) as server:
        for key in server.ask("KEYS", "*}:gates"):
            server.ask("DEL", key)


def lose_on_postgres(url: str) -> None:
    bare, _, schema = url.rpartition("schema=")
    with psycopg.connect(bare.rstrip("?&"), autocommit=True) as conn:
        conn.execute(f"UPDATE {schema}.docs SET guard = NULL WHERE kind = 'edition'".encode())


LOSE = {"sqlite": lose_on_sqlite, "redis": lose_on_valkey, "postgresql": lose_on_postgres}


async def test_definitions_that_are_lost_again_and_again_are_written_again(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    """What claims read of the definitions is lost, and the definitions themselves are not."""
    url, _ = place
    lose = LOSE[url.partition(":")[0]]
    namespace = token_hex(4)
    running, overlaps = list[str](), list[str]()

    async def run(ctx: Context) -> None:
        running.append(ctx.name)
        overlaps.extend(running if len(set(running)) > 1 else ())
        await asyncio.sleep(0.02)  # long enough to be seen by another one
        running.remove(ctx.name)

    def node() -> WorkerOrchestrator:
        app = WorkerOrchestrator(url, namespace=namespace, tick_interval=0.5)
        app.register_worker("left", run, execution_mode="triggered", blocks=["right"])
        app.register_worker("right", run, execution_mode="triggered")
        return app

    async def work(app: WorkerOrchestrator) -> None:
        jobs = [await worker_of(app, name).enqueue() for _ in range(2) for name in ("left", "right")]
        assert [await job.ended(DEADLINE) for job in jobs] == ["completed"] * 4

    caplog.set_level(logging.INFO, "shiftwork")
    first, later = node(), node()
    try:
        await first.start()
        await work(first)
        for _ in range(3):
            await asyncio.to_thread(lose, url)
            await work(first)
        await first.stop()
        await asyncio.to_thread(lose, url)
        await later.start()
        await work(later)
    finally:
        await first.stop()
        await later.stop()
        await later.close()
    assert overlaps == []
    assert len([line for line in caplog.messages if "emptied or replaced" in line]) <= 4


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_a_storm_of_losses_stops_no_pool_and_floods_no_log(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    url, _ = place
    lose = LOSE[url.partition(":")[0]]
    namespace, done = token_hex(4), list[int]()
    apps = [WorkerOrchestrator(url, namespace=namespace, tick_interval=0.5) for _ in range(2)]

    async def count(n: int) -> None:
        done.append(n)

    for app in apps:
        app.register_worker("count", count, execution_mode="triggered")
    try:
        for app in apps:
            await app.start()
        for n in range(300):
            await worker_of(apps[0], "count").enqueue(n=n)
            await asyncio.to_thread(lose, url)
        await eventually(lambda: len(done) == 300, "the end of all jobs")
    finally:
        for app in apps:
            await app.stop()
    assert sorted(done) == list(range(300))
    assert len([line for line in caplog.messages if "emptied or replaced" in line]) <= 20


async def test_rules_hold_in_a_store_that_was_emptied(place: Place) -> None:
    """Two workers exclude each other, also in what is enqueued right after the store was emptied."""
    url, empty = place
    app = WorkerOrchestrator(url, tick_interval=0.5, lease_seconds=6.0)
    client = WorkerOrchestrator(url)  # it opens the store when that is empty
    running, overlaps, fences = list[str](), list[str](), list[int]()

    async def run(ctx: Context) -> None:
        fences.append(ctx.fence)
        running.append(ctx.name)
        overlaps.extend(running if len(set(running)) > 1 else ())
        await asyncio.sleep(0.02)  # long enough to be seen by another one
        running.remove(ctx.name)

    left = app.register_worker("left", run, execution_mode="triggered", blocks=["right"])
    right = app.register_worker("right", run, execution_mode="triggered")
    await app.start()
    try:
        await (await left.enqueue()).ended(timeout_seconds=DEADLINE)
        highest = max(fences)
        await asyncio.to_thread(empty)  # on the loop it might wait for a transaction that the loop must end
        workers = (left, right, *(client.task(name=name)(run) for name in ("left", "right")))
        jobs = [await worker.enqueue() for _ in range(2) for worker in workers]
        for job in jobs:
            assert await job.ended(timeout_seconds=DEADLINE) == "completed"
        assert overlaps == [], "workers that exclude each other ran at the same time"
        assert len(fences) == 9, "a job ran twice"
        assert min(fences[1:]) > highest, "a fence came again"
        assert {"left", "right"} <= (await app.workers()).keys()
        [event] = [event for event in await app.events() if event.name == "store.emptied"]
        assert "2 workers and 1 pool were published again" in event.message
        problems = (await app.get_health())["problems"]
        assert [problem["subject"] for problem in problems if problem["code"] == "store_emptied"] == ["store"]
    finally:
        await app.stop()
        await client.close()
