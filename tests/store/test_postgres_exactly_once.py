"""Jobs that end in a transaction count exactly once, whatever process is killed."""

import random
import subprocess
import sys
from contextlib import closing
from typing import Final
from uuid import uuid4

import psycopg
import pytest

from shiftwork import JobStatus, WorkerOrchestrator
from tests.polling import pass_time
from tests.store.servers.postgres import names, server_url

PROGRAM: Final = """
import asyncio, random, sys
from shiftwork import Context, WorkerOrchestrator

app = WorkerOrchestrator(sys.argv[1], namespace=sys.argv[2], lease_seconds=2.0, max_concurrent=8)

@app.task()
async def count(ctx: Context) -> None:
    async with ctx.transaction() as conn:
        await conn.execute("INSERT INTO tallies VALUES (%s)", (sys.argv[2],))
        await asyncio.sleep(random.uniform(0.0, 0.004))

asyncio.run(app.run())
"""
PROCESSES: Final = 2


def start(url: str, namespace: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", PROGRAM, url, namespace], stderr=subprocess.DEVNULL)


async def count_under_fire(url: str, total: int, kills: int) -> None:
    namespace = uuid4().hex
    with closing(psycopg.connect(url, autocommit=True)) as conn:
        conn.execute("CREATE TABLE IF NOT EXISTS tallies (namespace text)")
    app = WorkerOrchestrator(url, namespace=namespace)

    @app.task()
    async def count() -> None: ...

    await app.enqueue_many([count.call() for _ in range(total)])
    processes = [start(url, namespace) for _ in range(PROCESSES)]
    store = await app.control.store.open()
    targets = sorted(random.Random(7).sample(range(total), kills))
    while (done := (await store.stats(app.control.now())).pools["default"].completed) < total:
        if targets and done >= targets[0]:
            targets.pop(0)
            victim = processes.pop(0)
            victim.kill()
            victim.wait()
            processes.append(start(url, namespace))
        await pass_time(0.01)
    for process in processes:
        process.kill()
        process.wait()
    left = [job for job in await app.find_jobs(limit=total + 1) if job.status is not JobStatus.COMPLETED]
    await app.close()
    with closing(psycopg.connect(url)) as conn:
        counted = conn.execute("SELECT count(*) FROM tallies WHERE namespace = %s", (namespace,)).fetchone()
    assert (left, counted) == ([], (total,))


async def test_increments_are_counted_once_under_random_kills() -> None:
    await count_under_fire(server_url(names()[0]), 120, 3)


@pytest.mark.soak
@pytest.mark.parametrize("server", names())
async def test_a_thousand_increments(server: str) -> None:
    await count_under_fire(server_url(server), 1_000, 40)
