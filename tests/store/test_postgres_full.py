"""A database whose disk is full: it still takes small writes, and every process that asks learns that it is full."""

import asyncio
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import psycopg
import pytest
from click.testing import CliRunner, Result

from shiftwork import WorkerOrchestrator
from shiftwork.cli.entry import main
from shiftwork.errors import StoreFullError
from shiftwork.store.postgres.store import PostgresStore
from tests.runtime.stage import worker_of
from tests.store.conformance.acts import add, job
from tests.store.servers.postgres import NOBODY, names, own_server, server_url
from tests.store.servers.small_disk import SmallDisk, small_disk

MEGABYTE: Final = 2**20
PATIENCE: Final = 120.0


async def test_room_is_found_without_leaving_anything_behind() -> None:
    url = server_url(names()[0])
    store = PostgresStore(url, namespace="room")
    await add(store, job("1"))
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        before = conn.execute("SELECT pg_database_size(current_database())").fetchone()
        await store.try_room()
        after = conn.execute("SELECT pg_database_size(current_database())").fetchone()
    await store.close()
    assert before is not None
    assert after is not None
    assert after[0] - before[0] < MEGABYTE / 2


@pytest.fixture
def small() -> Iterator[tuple[SmallDisk, str]]:
    """Yield a small disk, and the URL of a database there."""
    server = own_server()
    server.start()
    try:
        with small_disk(Path(server.socket).parent / "small") as disk:
            shutil.chown(disk.folder, NOBODY, NOBODY)
            with closing(psycopg.connect(server.url, autocommit=True)) as conn:
                conn.execute(f"CREATE TABLESPACE small LOCATION '{disk.folder}'".encode())
                conn.execute("CREATE DATABASE small TABLESPACE small")
            yield disk, server.url_of("small")
            server.stop()  # it has files open there
    finally:
        server.remove()


def command(*words: str) -> Result:
    return CliRunner().invoke(main, [*words])


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_a_full_disk_is_seen_by_every_process_until_there_is_room(small: tuple[SmallDisk, str]) -> None:
    disk, url = small
    app = WorkerOrchestrator(url, tick_interval=0.5, lease_seconds=6.0)

    @app.task()
    async def keep(payload: str) -> None: ...

    await app.start()
    try:
        await (await worker_of(app, "keep").enqueue(payload="before")).ended(30)
        disk.fill()
        with pytest.raises(StoreFullError, match="No space left on device"):
            await app.enqueue_many([worker_of(app, "keep").call(payload="x" * 2000) for _ in range(10_000)])
        examined = await asyncio.to_thread(command, "doctor", "--store", url, "--json")
        assert examined.exit_code == 1
        assert "No space left on device" in json.loads(examined.stdout)["findings"]["latency"]
        shown = await asyncio.to_thread(command, "status", "--store", url)
        assert "No space left on device" in shown.output, shown.output
        disk.free()
        await (await worker_of(app, "keep").enqueue(payload="after")).ended(30)
        examined = await asyncio.to_thread(command, "doctor", "--store", url, "--json")
        assert "per write" in json.loads(examined.stdout)["findings"]["latency"]
    finally:
        await app.stop()
