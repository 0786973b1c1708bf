"""A database whose disk is full: it still takes small writes, and every process that asks learns that it is full."""

import asyncio
import json
import os
import shutil
import subprocess
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
from shiftwork.testing.acts import add, job
from tests.runtime.stage import worker_of
from tests.store.servers.postgres import NOBODY, names, own_server, server_url

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


class SmallDisk:
    """A disk for a database, which can be filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filling = folder / "filling"

    def fill(self) -> None:
        """Leave no room at all."""
        with self._filling.open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 4096)
            except OSError:
                return

    def free(self) -> None:
        self._filling.unlink()


@pytest.fixture
def small() -> Iterator[tuple[SmallDisk, str]]:
    """Yield a disk of 24 MB, and the URL of a database there."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a disk can be mounted by root alone")
    server = own_server()
    server.start()
    folder = Path(server.socket).parent / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(folder)], check=False)
    try:
        if mounted.returncode:
            pytest.skip("no disk can be mounted here")
        shutil.chown(folder, NOBODY, NOBODY)
        with closing(psycopg.connect(server.url, autocommit=True)) as conn:
            conn.execute(f"CREATE TABLESPACE small LOCATION '{folder}'".encode())
            conn.execute("CREATE DATABASE small TABLESPACE small")
        yield SmallDisk(folder), server.url_of("small")
    finally:
        server.stop()
        subprocess.run(["umount", str(folder)], check=False)
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
