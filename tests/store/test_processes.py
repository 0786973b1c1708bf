"""Several processes on one store: what a store promises to threads, it promises to processes."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.postgres.store import PostgresStore
from shiftwork.store.protocol import Store
from shiftwork.store.sqlite.store import SqliteStore
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import NOW, add, claim, claim_one, finish, job, succeeded
from tests.store.conformance.expect import soon
from tests.store.servers.postgres import names, server_url

PROCESSES: Final = 3

CLAIM_ALL: Final = """
import asyncio, sys
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import add, claim, finish, succeeded

async def main(url, instance):
    store = open_store(url)
    await store.open()
    print("ready", flush=True)
    sys.stdin.readline()
    while taken := await claim(store, 3, instance=instance):
        for claimed in taken:
            print(claimed.id, claimed.fence)
            await finish(store, succeeded(claimed))
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""

ADD_ONE: Final = """
import asyncio, sys
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import add, job

async def main(url):
    store = open_store(url)
    await store.open()
    await add(store, job("from afar"))
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""

CLAIM_AND_DIE: Final = """
import asyncio, os, signal, sys
from shiftwork.store.urls import open_store
from tests.store.conformance.acts import beat, claim, job

async def main(url):
    store = open_store(url)
    await store.open()
    await beat(store, "gone", ttl=15)
    await claim(store, 2, instance="gone")
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["sqlite", "valkey", "cluster", *names()])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that other processes can open, too; not open yet."""
    if request.param == "sqlite":
        return SqliteStore(str(tmp_path / "shared.db"))
    if request.param in names():
        return PostgresStore(f"{server_url(request.param)}?schema=processes_{uuid4().hex}")
    return open_store(request.getfixturevalue(f"{request.param}_url"))


def script(text: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", text, *arguments]


async def start(text: str, *arguments: str) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    return await asyncio.to_thread(subprocess.Popen, script(text, *arguments), stdin=pipe, stdout=pipe, text=True)


async def test_every_job_is_claimed_by_one_process(store: Store) -> None:
    await store.open()
    total = 300
    await add(store, *(job(f"{n:03}", "wv"[n % 2], key=f"{n % 50}" if n % 3 == 0 else None) for n in range(total)))
    children = [await start(CLAIM_ALL, store.url, f"i{n}") for n in range(PROCESSES)]
    for child in children:
        assert child.stdout
        assert await asyncio.to_thread(child.stdout.readline) == "ready\n"
    answers = await asyncio.gather(*(asyncio.to_thread(child.communicate, "go\n", 50) for child in children))
    assert [child.returncode for child in children] == [0] * PROCESSES
    taken = [line.split() for out, _ in answers for line in out.splitlines()]
    assert sorted(id for id, _ in taken) == [f"{n:03}" for n in range(total)]
    assert len({fence for _, fence in taken}) == total
    assert len(await store.find(JobFilter(status=(JobStatus.COMPLETED,), limit=1_000))) == total
    await store.close()


async def test_a_write_in_one_process_rings_in_another(store: Store) -> None:
    await store.open()
    bell = store.listen({"pool:p"})
    child = asyncio.to_thread(subprocess.run, script(ADD_ONE, store.url), check=True, timeout=90)
    running = asyncio.ensure_future(child)
    while not (claimed := await claim(store, 1)):  # a bell also rings when its connection begins
        await soon(bell.wait(), "a ring from another process")
    assert [one.id for one in claimed] == ["from afar"]
    await running
    bell.close()
    await store.close()


async def test_what_a_killed_process_held_is_taken_when_its_lease_ends(store: Store) -> None:
    await store.open()
    await add(store, job("1"), job("2"), job("3"))
    died = await asyncio.to_thread(subprocess.run, script(CLAIM_AND_DIE, store.url), check=False, timeout=90)
    assert died.returncode == -9
    assert await store.reap("r", 10, NOW + 14) == []
    taken = await store.reap("r", 10, NOW + 15)
    assert sorted((record.id, record.instance) for record in taken) == [("1", "gone"), ("2", "gone")]
    await finish(store, *(succeeded(record.claimed()) for record in taken))
    await claim_one(store, "3")
    await store.close()
