"""Several processes on one file: nothing is done twice, nothing is lost, and each hears the others at once."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.protocol import Bell
from shiftwork.store.sqlite import SqliteStore
from shiftwork.store.sqlite.file import doorbell
from tests.store.conformance.acts import NOW, add, claim, job

DEADLINE = 30.0

CLAIMER = """
import asyncio, json, sys
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.model.job_changes import Outcome
from shiftwork.store.sqlite import SqliteStore

async def main(path, name):
    store = SqliteStore(path)
    await store.open()
    print("ready", flush=True)
    sys.stdin.readline()
    claimed = []
    while jobs := (await store.claim(name, "p", 7, 1e6, {"w"})).jobs:
        claimed += [(one.id, one.fence) for one in jobs]
        outcomes = [
            Outcome(id=one.id, fence=one.fence, worker="w", pool="p", status=JobStatus.COMPLETED, ended_at=1e6,
                    run_at=one.run_at, attempt=one.attempt, crashes=0, verdict="success")
            for one in jobs
        ]
        assert all((await store.finish(outcomes, 1e6)).accepted)
    await store.close()
    print(json.dumps(claimed), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

ADDER = """
import asyncio, sys
from shiftwork.core.model.jobs import NewJob
from shiftwork.store.sqlite import SqliteStore

async def main(path):
    store = SqliteStore(path)
    await store.open()
    n = 0

    async def keep_adding(caller):
        nonlocal n
        while True:
            n += 1
            id = f"{caller}-{n}"
            await store.add([NewJob(id=id, worker="w", pool="p", payload=b"x" * 100, run_at=1e6)], 1e6)
            print(id, flush=True)

    await asyncio.gather(*(keep_adding(caller) for caller in range(5)))

asyncio.run(main(*sys.argv[1:]))
"""

RINGER = """
import asyncio, sys
from shiftwork.core.model.jobs import NewJob
from shiftwork.store.sqlite import SqliteStore

async def main(path):
    store = SqliteStore(path)
    await store.open()
    for line in sys.stdin:
        await store.add([NewJob(id=line.strip(), worker="w", pool="p", payload=b"", run_at=1e6)], 1e6)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


@contextmanager
def process(script: str, *args: str) -> Iterator[subprocess.Popen[str]]:
    """A Python of its own, gone in the end."""
    with subprocess.Popen(
        [sys.executable, "-c", script, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as started:
        try:
            yield started
        finally:
            started.kill()


def tell(started: subprocess.Popen[str], line: str) -> None:
    assert started.stdin is not None
    started.stdin.write(line + "\n")
    started.stdin.flush()


def hear(started: subprocess.Popen[str]) -> str:
    assert started.stdout is not None
    return started.stdout.readline().strip()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "shiftwork.db")


@pytest.fixture
async def store(path: str) -> AsyncIterator[SqliteStore]:
    opened = SqliteStore(path)
    await opened.open()
    yield opened
    await opened.close()


def sockets(path: str) -> list[Path]:
    return list(Path(f"{path}.side").glob("*.bell"))


async def rung(bell: Bell) -> None:
    """Wait for a bell."""
    async with asyncio.timeout(DEADLINE):
        await bell.wait()


async def test_each_job_is_claimed_once_under_a_growing_fence(store: SqliteStore, path: str) -> None:
    await add(store, *(job(f"{n:05}") for n in range(2_000)))
    with process(CLAIMER, path, "a") as a, process(CLAIMER, path, "b") as b, process(CLAIMER, path, "c") as c:
        everybody = [a, b, c]
        assert [hear(one) for one in everybody] == ["ready"] * 3
        for one in everybody:
            tell(one, "go")
        lists = [[(id, fence) for id, fence in json.loads(hear(one))] for one in everybody]
    claimed = [one for some in lists for one in some]
    assert len(claimed) == 2_000
    assert len({id for id, _ in claimed}) == 2_000
    assert len({fence for _, fence in claimed}) == 2_000
    for some in lists:
        assert [fence for _, fence in some] == sorted(fence for _, fence in some)
    stats = (await store.stats(NOW)).pools["p"]
    assert (stats.completed, stats.queued, stats.processing) == (2_000, 0, 0)


@pytest.mark.parametrize("after", [1, 20, 200])
async def test_what_was_acknowledged_survives_kill_9(store: SqliteStore, path: str, after: int) -> None:
    acknowledged: list[str] = []
    with process(ADDER, path) as adder:
        acknowledged += [hear(adder) for _ in range(after)]
        os.kill(adder.pid, signal.SIGKILL)
        assert adder.stdout is not None
        # The last line may have been cut off by the kill.
        acknowledged += [line.strip() for line in adder.stdout if line.endswith("\n")]
        adder.wait(DEADLINE)
    found = await store.get(acknowledged)
    assert None not in found
    stats = (await store.stats(NOW)).pools["p"]
    assert stats.added == stats.queued == len(await store.find(JobFilter(limit=100_000)))
    assert (await store.check())["integrity"].text == "ok"
    await add(store, job("after"))


async def test_a_write_in_another_process_rings_here_at_once(store: SqliteStore, path: str) -> None:
    bell = store.listen(["pool:p"])
    assert isinstance(store._threads._listener, doorbell.DoorbellListener), "it polls instead of being rung"
    with process(RINGER, path) as ringer:
        for n in range(20):
            tell(ringer, f"{n}")
            await rung(bell)
            assert (await store.get([f"{n}"]))[0] is not None
    bell.close()


async def test_an_idle_store_is_not_woken(store: SqliteStore, path: str) -> None:
    bell = store.listen(["pool:p"])
    listener = store._threads._listener
    assert isinstance(listener, doorbell.DoorbellListener)
    other = SqliteStore(path)
    await other.open()
    assert listener.heard == 0
    await add(other, job("1"))
    await rung(bell)
    assert listener.heard == 1
    await other.close()
    assert listener.heard == 1


async def test_nothing_is_rung_where_nothing_listens(store: SqliteStore, path: str) -> None:
    await add(store, job("1"))
    assert sockets(path) == []


async def test_other_namespaces_and_topics_are_not_rung(store: SqliteStore, path: str) -> None:
    bell = store.listen(["pool:p", "ended"])
    other = SqliteStore(path)
    foreign = SqliteStore(path, namespace="foreign")
    await add(foreign, job("1"))
    await add(other, job("2", pool="another"))
    listener = store._threads._listener
    assert isinstance(listener, doorbell.DoorbellListener)
    rings: list[set[str] | None] = []
    loop, heard = asyncio.get_running_loop(), asyncio.Event()

    def hear_topics(topics: Collection[str] | None) -> None:
        rings.append(None if topics is None else set(topics))
        if topics and "pool:p" in topics:
            loop.call_soon_threadsafe(heard.set)

    listener._ring = hear_topics
    await add(foreign, job("3"))
    await add(other, job("4"))
    async with asyncio.timeout(DEADLINE):
        await heard.wait()
    assert all(topics is not None and topics <= {"pool:p", "pool:another"} for topics in rings)
    for each in (other, foreign):
        await each.close()
    bell.close()


async def test_a_bell_of_a_dead_process_is_removed(store: SqliteStore, path: str) -> None:
    listener = """
import asyncio, sys
from shiftwork.store.sqlite import SqliteStore

async def main(path):
    store = SqliteStore(path)
    await store.open()
    store.listen(["pool:p"])
    print("listening", flush=True)
    await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""
    with process(listener, path) as one:
        assert hear(one) == "listening"
    assert len(sockets(path)) == 1
    await add(store, job("1"))
    assert sockets(path) == []


async def test_a_long_path_has_a_doorbell_too(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 20) / ("longer" * 20)
    folder.mkdir(parents=True)
    store, other = (SqliteStore(str(folder / "shiftwork.db")) for _ in range(2))
    await store.open()
    bell = store.listen(["pool:p"])
    assert isinstance(store._threads._listener, doorbell.DoorbellListener)
    await add(other, job("1"))
    await rung(bell)
    await store.close()
    await other.close()


async def test_without_sockets_the_file_is_looked_at(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("no sockets here")

    monkeypatch.setattr(doorbell.DoorbellListener, "__init__", refuse)
    store, other = SqliteStore(path), SqliteStore(path)
    await store.open()
    bell = store.listen(["pool:p"])
    await add(other, job("1"))
    await rung(bell)
    assert [one.id for one in await claim(store)] == ["1"]
    await store.close()
    await other.close()


async def test_a_store_whose_files_were_deleted_can_be_closed(path: str) -> None:
    store = SqliteStore(path)
    await store.open()
    store.listen({"state"})
    await asyncio.to_thread(shutil.rmtree, f"{path}.side")
    async with asyncio.timeout(30):
        await store.close()


async def test_a_full_doorbell_rings_everything(store: SqliteStore, path: str) -> None:
    bells = [store.listen([topic]) for topic in ("pool:p", "ended", "orders")]
    listener = store._threads._listener
    assert isinstance(listener, doorbell.DoorbellListener)
    assert listener._topics([b""] * doorbell.FULL_AFTER) is None
    store._threads._ring(None)
    for bell in bells:
        await rung(bell)


async def test_a_stranger_s_message_is_ignored(store: SqliteStore) -> None:
    store.listen(["pool:p"])
    listener = store._threads._listener
    assert isinstance(listener, doorbell.DoorbellListener)
    assert listener._topics([b"", b"\xc1", b"hello", b"\x91\xa7default"]) is None
    assert listener._topics([b"", b"\xc1", b"hello", b"\x93\xa5other\xa1x\xa1y"]) == set()


async def test_drained_by_two_processes_none_starves(store: SqliteStore, path: str) -> None:
    await add(store, *(job(f"{n:05}") for n in range(3_000)))
    with process(CLAIMER, path, "a") as a, process(CLAIMER, path, "b") as b:
        for one in (a, b):
            assert hear(one) == "ready"
        for one in (a, b):
            tell(one, "go")
        counts = sorted(len(json.loads(hear(one))) for one in (a, b))
    assert sum(counts) == 3_000
    assert counts[0] > 100
    left = await store.find(JobFilter(status=(JobStatus.QUEUED, JobStatus.PROCESSING)))
    assert left == []
