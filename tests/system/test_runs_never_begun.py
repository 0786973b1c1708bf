"""Only a run that has begun can time out, fail or count: among very many short jobs, and in processes that freeze."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from shiftwork import JobStatus
from tests.polling import eventually, pass_time
from tests.store.servers.postgres import postgres_servers
from tests.system.mill import Mill
from tests.system.shared_stores import Place, on_postgres, on_sqlite, on_valkey

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

__all__ = ["postgres_servers"]

JOBS = 200_000
FREEZES = 500
AT_ONCE = 5_000
"""How many jobs are added at a time; no more are added while twice as many are waiting."""
PLACES = [
    pytest.param(on_sqlite, id="sqlite"),
    pytest.param(on_valkey, id="valkey"),
    pytest.param(on_postgres, id="postgresql"),
]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
async def short(tmp_path: Path, place: Place) -> AsyncIterator[Mill]:
    with place(tmp_path) as url:
        mill = Mill(tmp_path, lease=15.0, program="short", store=url)
        yield mill
        await mill.close()


async def totals(mill: Mill, pool: str) -> tuple[int, int]:
    """How many jobs of a pool have completed, and how many are dead."""
    seen = (await mill.app.get_pool_dashboard())[pool]
    return seen["completed"], seen["dead"]


async def started(mill: Mill) -> set[tuple[str, int]]:
    words = (line.split() for line in mill.log.read_text().splitlines())
    return {(worker, int(number)) for worker, number in words}


async def dead_without_a_start(mill: Mill) -> list[str]:
    begun = await started(mill)
    dead = [job async for job in every(mill, JobStatus.DEAD)]
    return [f"{job.id}: {job.error}" for job in dead if (job.worker, job.payload["number"]) not in begun]


async def every(mill: Mill, status: JobStatus) -> AsyncIterator[Any]:
    after: str | None = None
    while True:
        page = await mill.app.find_jobs(status=status, limit=500, after=after)
        for job in page:
            yield job
        if len(page) < 500:
            return
        after = page[-1].id


async def test_none_of_very_many_short_jobs_is_dead_without_a_start(short: Mill) -> None:
    """One in a hundred takes 90 to 210 milliseconds, so that those behind it are taken back."""
    await short.up(short.node("--no-web"))
    dice = random.Random(1)
    task = short.module.short_apart
    for first in range(0, JOBS, AT_ONCE):
        await short.app.enqueue_many(
            [
                task.call(number=number, seconds=dice.uniform(0.09, 0.21) if dice.random() < 0.01 else 0.0)
                for number in range(first, first + AT_ONCE)
            ]
        )

        async def room(added: int = first + AT_ONCE) -> bool:
            return added - sum(await totals(short, "apart")) < AT_ONCE

        await eventually(room, within=600, failure=short.logs)

    async def all_over() -> bool:
        return sum(await totals(short, "apart")) >= JOBS

    await eventually(all_over, within=600, failure=short.logs)
    assert await totals(short, "apart") == (JOBS, 0), await dead_without_a_start(short)


async def test_no_job_of_a_frozen_process_is_dead_without_a_start(short: Mill) -> None:
    """They may take a second, and a process is stopped for up to 1.4 seconds."""
    node = await short.up(short.node("--no-web"))
    over = asyncio.Event()
    workers = {"threads": short.module.short_in_a_thread, "coroutines": short.module.short_in_a_coroutine}
    feeding = [asyncio.create_task(feed(short, pool, worker, over)) for pool, worker in workers.items()]
    freezing = [asyncio.create_task(freeze(short, pool, FREEZES // len(workers))) for pool in workers]
    await asyncio.gather(*freezing)
    over.set()
    added = dict(zip(workers, await asyncio.gather(*feeding), strict=True))

    async def all_over() -> bool:
        return all([sum(await totals(short, pool)) >= number for pool, number in added.items()])

    await eventually(all_over, within=300, failure=short.logs)
    assert await dead_without_a_start(short) == []
    assert not node.over


async def feed(mill: Mill, pool: str, worker: Any, over: asyncio.Event) -> int:
    """Keep a pool busy; returns how many jobs that took."""
    added = 0
    while not over.is_set():
        if added - sum(await totals(mill, pool)) < 200:
            await mill.app.enqueue_many([worker.call(number=added + n, seconds=0.002) for n in range(200)])
            added += 200
        await pass_time(0.02)
    return added


async def freeze(mill: Mill, pool: str, times: int) -> None:
    """Stop a process of the pool for a moment, again and again."""
    dice = random.Random(pool)
    for _ in range(times):
        pids = [entry["pid"] for entry in (await mill.app.get_pool_dashboard())[pool]["workers"]]
        pid = dice.choice([pid for pid in pids if pid] or [0])
        if not pid:
            await pass_time(0.1)
            continue
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
            await pass_time(dice.choice([0.05, 0.4, dice.uniform(0.9, 1.4)]))
            os.kill(pid, signal.SIGCONT)
        await pass_time(dice.uniform(0.0, 0.1))
