"""What processes use, as the system reports it: CPU time, and the bytes that a store logs."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import psycopg
from redis import Redis

Seconds = Callable[[], float]
"""Returns the CPU seconds used so far."""
Bytes = Callable[[], float | None]
"""Returns the bytes logged so far; None where the system does not count them."""


def server_of(url: str) -> psutil.Process | None:
    """The server process behind a URL; None for a file."""
    if url.startswith("redis"):
        with contextlib.closing(Redis.from_url(url)) as client:
            return psutil.Process(client.info("server")["process_id"])
    if url.startswith("postgresql"):
        with psycopg.connect(url) as db:
            return psutil.Process(db.info.backend_pid).parent()
    return None


@contextmanager
def log_of(url: str, workers: Callable[[], list[psutil.Process]]) -> Iterator[Bytes]:
    """The length of the log of the store behind a URL; of a file, everything that the workers write."""
    if url.startswith("redis"):
        with contextlib.closing(Redis.from_url(url)) as client:
            yield lambda: float(client.info("persistence")["aof_current_size"])
    elif url.startswith("postgresql"):
        with psycopg.connect(url, autocommit=True) as db:
            yield lambda: _wal(db)
    else:
        yield lambda: _written(workers())


def _wal(db: psycopg.Connection) -> float:
    found = db.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
    return float(found[0]) if found else 0.0


def _written(processes: list[psutil.Process]) -> float | None:
    if not psutil.LINUX:
        return None
    return float(sum(process.io_counters().write_chars for process in processes))


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
