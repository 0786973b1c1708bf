"""Servers and worker processes die at work: every acknowledged job ends, and no process needs a restart."""

import asyncio
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from shiftwork import JobStatus, WorkerOrchestrator
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import SystemClock
from shiftwork.store.urls import open_store
from tests.polling import pass_time, wait_until
from tests.store.servers.redis import KILLED, Server, namespace
from tests.system.conftest import Start, start

if TYPE_CHECKING:
    import subprocess

__all__ = ["start"]

JOBS: Final = 100
LEASE: Final = 5.0
SENTINEL: Final = """
sentinel monitor shop 127.0.0.1 {port} 1
sentinel down-after-milliseconds shop 300
sentinel failover-timeout shop 2000
"""


def started(log: Path) -> Counter[int]:
    """Return how often each process has started a job."""
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter(int(line.split()[0]) for line in lines if line.endswith("start"))


async def enqueue(url: str, numbers: range) -> list[str]:
    """Enqueue jobs one by one, each again until it is acknowledged."""
    app = WorkerOrchestrator(url)

    @app.task()
    async def nap(number: int) -> int:
        return number

    ids = []
    for number in numbers:
        while True:
            try:
                ids.append((await nap.with_options(job_id=f"{number}").enqueue(number=number)).id)
                break
            except StoreError:
                await pass_time(0.02)
    await app.close()
    return ids


async def outcomes(url: str, ids: list[str]) -> Counter[JobStatus]:
    """Return the statuses of these jobs."""
    store = open_store(url)
    try:
        await store.open()
        found = await store.get(ids)
    except StoreError:
        return Counter()
    finally:
        await store.close()
    return Counter(record.status for record in found if record is not None)


def all_complete(url: str, ids: list[str]) -> Callable[[], bool]:
    return lambda: asyncio.run(outcomes(url, ids)) == {JobStatus.COMPLETED: len(ids)}


def all_busy(log: Path, workers: "list[subprocess.Popen[str]]") -> bool:
    """Whether each of them has its share of the pool's slots in use."""
    return all(started(log)[worker.pid] >= JOBS // len(workers) for worker in workers)


def test_every_job_of_a_killed_worker_process_ends(start: Start, valkey_url: str, tmp_path: Path) -> None:
    log, gate = tmp_path / "runs.log", tmp_path / "open"
    ids = asyncio.run(enqueue(valkey_url, range(JOBS)))
    victim = start("sleepers.py", valkey_url, log, gate, LEASE)
    wait_until(lambda: started(log)[victim.pid] >= JOBS)
    victim.kill()
    victim.wait()
    gate.touch()
    heir = start("sleepers.py", valkey_url, log, gate, LEASE)
    wait_until(all_complete(valkey_url, ids))
    heir.send_signal(signal.SIGTERM)
    assert heir.wait(timeout=30) == 0
    assert started(log)[heir.pid] >= JOBS


def test_every_job_ends_though_the_server_is_killed_twice(start: Start, valkey_program: Path, tmp_path: Path) -> None:
    log, gate = tmp_path / "runs.log", tmp_path / "open"
    with Server(valkey_program, *KILLED) as server:
        ids = asyncio.run(enqueue(server.url, range(2 * JOBS)))
        workers = [start("sleepers.py", server.url, log, gate, LEASE) for _ in range(2)]
        wait_until(lambda: all_busy(log, workers))
        server.kill()
        server.start()
        ids += asyncio.run(enqueue(server.url, range(2 * JOBS, 3 * JOBS)))
        gate.touch()
        server.kill()
        server.start()
        ids += asyncio.run(enqueue(server.url, range(3 * JOBS, 4 * JOBS)))
        wait_until(all_complete(server.url, ids))
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=30) == 0
        nothing_is_left(server)


def nothing_is_left(server: Server) -> None:
    """Assert that no job is live, no place is held, and no job waits."""
    kept = {key.partition(b"}:")[2] for key in server.ask("KEYS", "*")}
    assert not kept & {b"ready", b"due", b"cancels", b"groups", b"keyed", b"holding", b"run:nap", b"q:7:default:nap"}


@pytest.fixture
def watched(valkey_program: Path) -> Iterator[tuple[Server, Server, str]]:
    """Yield a primary, its replica, and the URL of a sentinel that watches them."""
    with ExitStack() as stack:
        primary = stack.enter_context(Server(valkey_program, *KILLED, "--repl-diskless-sync-delay", "0"))
        follows = ("--replicaof", f"127.0.0.1 {primary.port}")
        replica = stack.enter_context(Server(valkey_program, *KILLED, *follows))
        wait_until(lambda: b"master_link_status:up" in replica.ask("INFO", "replication"))
        config = SENTINEL.format(port=primary.port)
        sentinel = stack.enter_context(Server(valkey_program, "--sentinel", config=config))
        wait_until(lambda: b"slaves=1" in sentinel.ask("INFO", "sentinel"))
        yield primary, replica, f"redis+sentinel://127.0.0.1:{sentinel.port}/shop/0"


def replicated(primary: Server, replica: Server) -> bool:
    """Whether the replica has everything that was acknowledged so far."""
    return offset(primary, b"master_repl_offset:") == offset(replica, b"slave_repl_offset:")


def offset(server: Server, name: bytes) -> bytes:
    lines: list[bytes] = server.ask("INFO", "replication").splitlines()
    return next(line for line in lines if line.startswith(name)).partition(b":")[2]


def test_a_failover_loses_nothing_that_was_replicated(
    start: Start, watched: tuple[Server, Server, str], tmp_path: Path
) -> None:
    primary, replica, url = watched
    log, gate = tmp_path / "runs.log", tmp_path / "open"
    ids = asyncio.run(enqueue(url, range(2 * JOBS)))
    workers = [start("sleepers.py", url, log, gate, LEASE) for _ in range(2)]
    wait_until(lambda: all_busy(log, workers))
    wait_until(lambda: replicated(primary, replica))
    primary.kill()
    gate.touch()
    ids += asyncio.run(enqueue(url, range(2 * JOBS, 3 * JOBS)))
    assert b"role:master" in replica.ask("INFO", "replication"), "what came later is on the replica that took over"
    wait_until(all_complete(url, ids))
    for worker in workers:
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=30) == 0
    nothing_is_left(replica)


# ── clocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class WrongClock(SystemClock):
    """The clock of a machine that is some minutes ahead of the server, until it learns the server's time."""

    def __init__(self, minutes: float) -> None:
        super().__init__()
        self._offset += 60 * minutes


async def test_machines_whose_clocks_differ_by_minutes_agree_on_due_times_and_leases(valkey_url: str) -> None:
    place, go_on, begun = namespace(), asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        begun.set()
        await go_on.wait()

    async def later() -> None: ...

    behind, ahead = (
        WorkerOrchestrator(valkey_url, namespace=place, clock=WrongClock(minutes), lease_seconds=5.0)
        for minutes in (-10, 10)
    )
    tasks = [(app.task(name="hold")(hold), app.task(name="later")(later)) for app in (behind, ahead)]
    await behind.start()
    held = await tasks[1][0].enqueue()
    async with asyncio.timeout(30):
        await begun.wait()
    assert await ahead.recover_stuck_jobs() == 0, "a lease that one machine renewed has not ended for the other"
    await ahead.start()
    for _, task in tasks:
        job = await task.with_options(delay_seconds=0.2).enqueue()
        await job.ended(timeout_seconds=30)
        waited = (job.record.started_at or 0.0) - job.record.created_at
        assert abs(waited) < 60, "the machines differ by twenty minutes"
    go_on.set()
    await held.ended(timeout_seconds=30)
    assert (held.attempt, held.crashes, held.status) == (1, 0, JobStatus.COMPLETED)
    await behind.stop()
    await ahead.stop()
    store = open_store(valkey_url, namespace=place)
    await store.open()
    assert len(await store.find(JobFilter(status=(JobStatus.COMPLETED,)))) == 3
    await store.close()
