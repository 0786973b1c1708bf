"""What processes use of a core: the store's server and the web's, told by the system."""

import asyncio
import contextlib
from collections.abc import Callable

import psutil
import psycopg
from redis import Redis

Seconds = Callable[[], float]
"""How much of a core's time was used so far."""


def server_of(url: str) -> psutil.Process | None:
    """The server behind a URL; None for a file."""
    if url.startswith("redis"):
        with contextlib.closing(Redis.from_url(url)) as client:
            return psutil.Process(client.info("server")["process_id"])
    if url.startswith("postgresql"):
        with psycopg.connect(url) as db:
            return psutil.Process(db.info.backend_pid).parent()
    return None


def used_by(process: psutil.Process) -> Seconds:
    """By a process and its children: those that are gone were counted by their parent."""

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
    """By all threads of a process but the first: there an embedded store does its work, and nobody else."""

    def used() -> float:
        return sum(one.user_time + one.system_time for one in process.threads() if one.id != process.pid)

    return used


async def shares(of: dict[str, Seconds], seconds: float) -> dict[str, float]:
    """How much of a core each uses from now on, for so long, in percent."""
    before, loop = {name: used() for name, used in of.items()}, asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(seconds)
    taken = loop.time() - began
    return {name: 100 * (used() - before[name]) / taken for name, used in of.items()}
