"""Processes that die or freeze with jobs in hand: every job completes, and no late result counts."""

import asyncio
import os
import signal
from collections import Counter
from contextlib import closing
from pathlib import Path

from shiftwork import JobStatus, WorkerOrchestrator
from shiftwork.store.sqlite.file.driver import Error, connect
from tests.polling import wait_until
from tests.system.conftest import Start

JOBS = 100
LONG = 600.0
"""A lease that does not end during a test, so that nothing may wait for it."""


def started(log: Path) -> Counter[int]:
    """How often each process has started a job."""
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter(int(line.split()[0]) for line in lines if line.endswith("start"))


async def enqueue(url: str) -> list[str]:
    app = WorkerOrchestrator(url)

    @app.task()
    async def nap(number: int) -> int:
        return number

    jobs = await app.enqueue_many([nap.call(number=number) for number in range(JOBS)])
    await app.close()
    return [job.id for job in jobs]


async def outcomes(url: str, ids: list[str]) -> Counter[JobStatus]:
    app = WorkerOrchestrator(url)
    jobs = [await app.get_job(job_id) for job_id in ids]
    await app.close()
    return Counter(job.status for job in jobs)


def test_every_job_of_a_killed_process_completes(start: Start, tmp_path: Path) -> None:
    log, gate = tmp_path / "runs.log", tmp_path / "open"
    url = f"sqlite:///{tmp_path / 'shiftwork.db'}"
    ids = asyncio.run(enqueue(url))

    victim = start("sleepers.py", url, log, gate, LONG)
    wait_until(lambda: started(log)[victim.pid] >= JOBS)
    victim.kill()
    victim.wait()
    gate.touch()

    heir = start("sleepers.py", url, log, gate, LONG)
    wait_until(lambda: asyncio.run(outcomes(url, ids)) == {JobStatus.COMPLETED: JOBS})
    heir.send_signal(signal.SIGTERM)
    assert heir.wait(timeout=30) == 0
    assert started(log)[heir.pid] == JOBS


def test_a_frozen_process_loses_its_jobs_and_cannot_finish_them_late(start: Start, tmp_path: Path) -> None:
    log, gate = tmp_path / "runs.log", tmp_path / "open"
    url = f"sqlite:///{tmp_path / 'shiftwork.db'}"
    ids = asyncio.run(enqueue(url))

    frozen = start("sleepers.py", url, log, gate, "5")
    wait_until(lambda: started(log)[frozen.pid] >= JOBS)
    wait_until(lambda: is_frozen_between_writes(frozen.pid, tmp_path / "shiftwork.db"))
    heir = start("sleepers.py", url, log, gate, "5")
    wait_until(lambda: started(log)[heir.pid] >= JOBS, within=120)  # once the lease has ended
    gate.touch()
    wait_until(lambda: asyncio.run(outcomes(url, ids)) == {JobStatus.COMPLETED: JOBS})
    fences = asyncio.run(fences_of(url, ids))

    os.kill(frozen.pid, signal.SIGCONT)
    said = tmp_path / "sleepers.py-0.log"
    wait_until(lambda: "rejected" in said.read_text() or "other nodes" in said.read_text())
    for process in (frozen, heir):
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
    assert asyncio.run(outcomes(url, ids)) == {JobStatus.COMPLETED: JOBS}
    assert asyncio.run(fences_of(url, ids)) == fences


def is_frozen_between_writes(pid: int, file: Path) -> bool:
    """Freeze a process; let it go on if it holds the lock of the file, which keeps all others from writing."""
    os.kill(pid, signal.SIGSTOP)
    with closing(connect(str(file))) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except Error:
            os.kill(pid, signal.SIGCONT)
            return False
        db.execute("ROLLBACK")
    return True


async def fences_of(url: str, ids: list[str]) -> list[int]:
    app = WorkerOrchestrator(url)
    fences = [(await app.get_job(job_id)).record.fence for job_id in ids]
    await app.close()
    return fences
