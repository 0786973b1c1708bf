"""A store that is emptied under running nodes: its rules are published again before the next job starts."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from secrets import token_hex

import psycopg
import pytest

from shiftwork import Context, WorkerOrchestrator
from shiftwork.store.sqlite import driver
from tests.store.servers.postgres import names, server_url

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
