"""The CPU use of processes, as the system reports it: the store's server and the web."""

import asyncio
import contextlib
from collections.abc import Callable

import psutil
import psycopg
from redis import Redis

Seconds = Callable[[], float]
"""Returns the CPU seconds used so far."""


def server_of(url: str) -> psutil.Process | None:
    """The server process behind a URL; None for a file."""
    if url.startswith("redis"):
        with contextlib.closing(Redis.from_url(url)) as client:
            return psutil.Process(client.info("server")["process_id"])
    if url.startswith("postgresql"):
        with psycopg.connect(url) as db:
            return psutil.Process(db.info.backend_pid).parent()
    return None


def used_by(process: psutil.Process) -> Seconds:
    """CPU time of a process and its children; its own total includes children that have exited."""

    def used() -> float:
        times = process.cpu_times()
        mine = times.user + times.system + times.children_user + times.children_system
        return mine + sum(_own(child) for child in process.children(recursive=True))

    return used


def _own(process: psutil.Process) -> float:
    with contextlib.suppress(psutil.NoSuchProcess):
        return sum(process.cpu_times()[:2])
    return 0.0


def used_by_threads(process: psutil.Process) -> Seconds:
    """CPU time of all threads of a process but the first: only an embedded store works there."""

    def used() -> float:
        return sum(one.user_time + one.system_time for one in process.threads() if one.id != process.pid)

    return used


async def shares(of: dict[str, Seconds], seconds: float) -> dict[str, float]:
    """The CPU use of each from now on, over this many seconds, in percent of a core."""
    before, loop = {name: used() for name, used in of.items()}, asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(seconds)
    taken = loop.time() - began
    return {name: 100 * (used() - before[name]) / taken for name, used in of.items()}
