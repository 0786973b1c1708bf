"""The command is killed in the middle of a move, while jobs are still being added; run again, all is there once."""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.protocol import Store
from shiftwork.store.sqlite.store import SqliteStore
from shiftwork.store.urls import open_store
from tests.polling import pass_time
from tests.store.conformance.acts import claim, job, succeeded
from tests.store.servers.postgres import names, server_url

JOBS = 4_000
NAMESPACE = "killed"


def command(source: str, destination: str) -> subprocess.Popen[str]:
    words = [
        sys.executable,
        "-m",
        "shiftwork",
        "move",
        source,
        destination,
        "--namespace",
        f"{NAMESPACE} {os.getpid()}",
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_at(process: subprocess.Popen[str], word: str) -> None:
    """Kill it as soon as it says this."""
    assert process.stderr is not None
    assert any(word in line for line in process.stderr)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


async def produce(store: Store, stop: asyncio.Event, added: list[str]) -> None:
    """Add a few jobs at a time, until told to stop."""
    while not stop.is_set():
        new = [job(f"new {len(added) + n}", "wv"[n % 2], run_at=0.0) for n in range(5)]
        await store.add(new, await store.server_time())
        added += [one.id for one in new]
        await pass_time(0.02)  # the pace of a busy shop, not of a benchmark


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        pytest.param("valkey", "copying: ", marks=pytest.mark.soak),
        pytest.param("postgres", "checking the destination: ", marks=pytest.mark.soak),
    ],
)
async def test_killed_and_run_again_nothing_is_lost_and_nothing_doubled(
    kind: str, word: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    namespace = f"{NAMESPACE} {os.getpid()}"
    destination = request.getfixturevalue("valkey_url") if kind == "valkey" else server_url(names()[0])
    source = f"sqlite:///{tmp_path}/old.db"
    old = SqliteStore(f"{tmp_path}/old.db", namespace=namespace)
    await old.open()
    now = await old.server_time()
    await old.add([job(f"{n}", "wv"[n % 2], run_at=0.0) for n in range(JOBS)], now)
    ran = await claim(old, JOBS // 2, now=now, instance="gone", workers=["w"])
    await old.finish([succeeded(one, now=now, keep_until=now + 999) for one in ran[10:]], now)
    stop, added = asyncio.Event(), list[str]()
    producer = asyncio.create_task(produce(old, stop, added))
    await asyncio.to_thread(kill_at, command(source, destination), word)
    new = open_store(destination, namespace=namespace)
    await new.open()
    arrived = len(await new.find(JobFilter(limit=JOBS + len(added))))
    assert 0 < arrived < JOBS if kind == "valkey" else arrived >= JOBS
    out, err = await asyncio.to_thread(command(source, destination).communicate)
    assert "on both sides" in out, err
    stop.set()
    await producer
    out, err = await asyncio.to_thread(command(source, destination).communicate)
    assert "everything had moved before" in out, err
    found = Counter[str]()
    after = None
    while page := await new.find(JobFilter(after=after, limit=1_000)):
        found.update(record.id for record in page)
        after = page[-1].id
    assert set(found) == {*map(str, range(JOBS)), *added}
    assert set(found.values()) == {1}
    live = (await new.stats(now)).pools["p"]
    assert (live.queued, live.processing) == (JOBS // 2 + 10 + len(added), 0)
    started: list[str] = []
    while claimed := await claim(new, 1_000, now=now):
        started += [one.id for one in claimed]
    assert len(started) == len(set(started)) == JOBS // 2 + 10 + len(added)
    done = await new.find(JobFilter(status=(JobStatus.COMPLETED,), limit=JOBS))
    assert {record.id for record in done} == {one.id for one in ran[10:]}
    await new.close()
    await old.close()
