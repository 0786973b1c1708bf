"""All measurements of the dashboard, in order: fill the store, open every page, watch. Runs in a child process."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final

import psutil
from httpx2 import AsyncClient

from benchmarks.dashboard.filling import add_workers, fill, settle
from benchmarks.dashboard.pages import after_pauses, pages, visits
from benchmarks.dashboard.report import PREFIX
from benchmarks.dashboard.watching import watched
from benchmarks.load import Seconds, server_of, shares, used_by, used_by_threads
from benchmarks.plan import Sizes

Figures = dict[str, float]
"""The figures, named by row, a slash, and column."""
VIEWERS: Final = (1, 5)
SETTLE_SECONDS: Final = 3.0
AFTER_A_PAUSE: Final = ("overview", "dead letters")


async def dashboard(_name: str, url: str, sizes: Sizes) -> Figures:
    """Measure everything on one store."""
    await fill(url, sizes.jobs)
    settle(url)
    found: Figures = {}
    found |= await _pages(url, sizes)
    found |= await _load(url, sizes)
    await add_workers(url, sizes.many_workers)
    async with _web(url) as (client, _):
        for label in ("overview", "workers", "pools"):
            page = replace(pages(sizes.jobs)[label], label=f"{label}, {sizes.many_workers:,} workers")
            found |= await visits(client, page, sizes.visits)
    return {f"{PREFIX}{name}": value for name, value in found.items()}


async def _pages(url: str, sizes: Sizes) -> Figures:
    found: Figures = {}
    async with _web(url) as (client, _):
        every = pages(sizes.jobs)
        for page in every.values():
            found |= await visits(client, page, sizes.visits)
        found |= await after_pauses(client, [every[label] for label in AFTER_A_PAUSE], sizes.pauses)
    return found


async def _load(url: str, sizes: Sizes) -> Figures:
    """Measure the load that watching adds while a few jobs run.

    The jobs' own load grows over time, so it is measured before and after, and the mean is subtracted.
    """
    server = server_of(url)
    with _company(url):
        before = await _alone(server, sizes)
        async with _web(url) as (client, web):
            used = {"store": used_by(server) if server else used_by_threads(web), "web": used_by(web)}
            seen = {viewers: await _watching(client, viewers, used, sizes) for viewers in VIEWERS}
        alone = (before + await _alone(server, sizes)) / 2
    found: Figures = {}
    for viewers, share in seen.items():
        row = f"watched by {viewers}"
        found |= {f"{row}/store": max(0.0, share["store"] - alone), f"{row}/web": share["web"]}
    return found


async def _alone(server: psutil.Process | None, sizes: Sizes) -> float:
    if server is None:
        return 0.0
    await asyncio.sleep(SETTLE_SECONDS)
    return (await shares({"store": used_by(server)}, sizes.watch_seconds))["store"]


async def _watching(client: AsyncClient, viewers: int, used: dict[str, Seconds], sizes: Sizes) -> Figures:
    async with watched(client, viewers):
        await asyncio.sleep(SETTLE_SECONDS)
        return await shares(used, sizes.watch_seconds)


@contextmanager
def _company(url: str) -> Iterator[None]:
    """Add and run a few jobs each second meanwhile."""
    command = [sys.executable, "-m", "benchmarks.dashboard.company", url]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n", "the company did not start"
        yield
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def _web(url: str) -> AsyncIterator[tuple[AsyncClient, psutil.Process]]:
    """`shiftwork web` on this store: a client for it, and its process."""
    command = [sys.executable, "-m", "shiftwork", "web", "--store", url, "--port", "0"]
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
    try:
        assert process.stderr is not None
        address = (await process.stderr.readline()).decode().split()[-1]
        async with AsyncClient(base_url=f"{address}api/v1/", timeout=60) as client:
            yield client, psutil.Process(process.pid)
    finally:
        process.terminate()
        await process.communicate()
