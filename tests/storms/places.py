"""The stores of the storms: real servers, and how each of them can be harmed."""

import asyncio
import signal
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import psutil

from tests.polling import hold_thread, pass_time
from tests.store.proxy import Proxy
from tests.store.servers import postgres, redis

Harm = Callable[[float], Any]


class StormPlace:
    """A store for a storm. Each harm lasts for some seconds, and is then undone."""

    def __init__(self, url: str, harms: dict[str, Harm], measured: Callable[[], int]) -> None:
        self.url = url
        self.harms = harms
        self.size = measured
        """How many bytes the store takes."""


@asynccontextmanager
async def on_sqlite(folder: Path) -> AsyncIterator[StormPlace]:
    """A file, which can be locked by another program."""
    path = folder / "shiftwork.db"

    def lock(seconds: float) -> None:
        with sqlite3.connect(path, timeout=30) as db:
            db.execute("BEGIN IMMEDIATE")
            hold_thread(seconds)
            db.rollback()
        db.close()

    yield StormPlace(
        f"sqlite:///{path}",
        {"lock": lambda seconds: asyncio.to_thread(lock, seconds)},
        lambda: sum(each.stat().st_size for each in folder.glob("shiftwork.db*") if each.is_file()),
    )


@asynccontextmanager
async def on_valkey(_folder: Path) -> AsyncIterator[StormPlace]:
    """A server behind a proxy, which writes every command to the disk before it replies."""
    program = redis.required(redis.wheel_binary() or redis.binary("valkey-server", "redis-server"), "valkey-server")
    with redis.Server(program, *redis.KILLED) as server:
        async with Proxy(server.port) as proxy:

            async def restart(seconds: float) -> None:
                server.kill()
                await pass_time(seconds)
                await asyncio.to_thread(server.start)

            async def freeze(seconds: float) -> None:
                process = psutil.Process(server.pid)
                process.send_signal(signal.SIGSTOP)
                await pass_time(seconds)
                process.send_signal(signal.SIGCONT)

            yield StormPlace(
                f"redis://127.0.0.1:{proxy.port}/0",
                {"restart": restart, "freeze": freeze, **_of_the_network(proxy)},
                lambda: sum(each.stat().st_size for each in server.folder.rglob("*") if each.is_file()),
            )


@asynccontextmanager
async def on_postgres(_folder: Path) -> AsyncIterator[StormPlace]:
    """A server behind a proxy."""
    server = postgres.own_server()
    server.start()
    try:
        async with Proxy(server.socket) as proxy:

            async def restart(seconds: float) -> None:
                await asyncio.to_thread(server.stop)
                await pass_time(seconds)
                await asyncio.to_thread(server.start)

            yield StormPlace(
                f"postgresql://shiftwork@127.0.0.1:{proxy.port}/postgres",
                {"restart": restart, **_of_the_network(proxy)},
                lambda: sum(each.stat().st_size for each in server.folder.rglob("*") if each.is_file()),
            )
    finally:
        server.remove()


def _of_the_network(proxy: Proxy) -> dict[str, Harm]:
    async def silence(seconds: float) -> None:
        proxy.fall_silent()
        await pass_time(seconds)
        proxy.speak()

    async def half_open(seconds: float) -> None:
        proxy.forget_connections()
        await pass_time(seconds)

    async def lose(_seconds: float) -> None:
        proxy.lose_the_next_answer()

    return {"silence": silence, "half-open": half_open, "lost reply": lose}


STORM_PLACES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[StormPlace]]]] = {
    "sqlite": on_sqlite,
    "redis": on_valkey,
    "postgresql": on_postgres,
}
