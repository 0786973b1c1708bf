"""The stores of the storms: real servers, and how each of them can be harmed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path
from typing import Final

from shiftwork.store.sealed.key_ring import new_key
from shiftwork.store.sqlite.file import driver
from tests.polling import hold_thread
from tests.storms.postgres_places import on_postgres, on_standby
from tests.storms.redis_places import on_cluster, on_sentinel, on_valkey
from tests.storms.storm_place import StormPlace, own_disk


@asynccontextmanager
async def on_sqlite(folder: Path, environment: dict[str, str] | None = None) -> AsyncIterator[StormPlace]:
    """A file on a small disk, which can be locked by another program."""
    disk = folder / "disk"
    path = disk / "shiftwork.db"

    def lock(seconds: float) -> None:
        with closing(driver.driver.connect(path, timeout=30)) as db:
            db.execute("BEGIN IMMEDIATE")
            hold_thread(seconds)
            db.rollback()

    with own_disk(disk) as of_the_disk:
        harms = {"lock": lambda seconds: asyncio.to_thread(lock, seconds), **of_the_disk}
        yield StormPlace(f"sqlite:///{path}", harms, disk, environment=environment)


@asynccontextmanager
async def encrypted(folder: Path) -> AsyncIterator[StormPlace]:
    """The same, and everything that jobs carry is encrypted."""
    async with on_sqlite(folder, {"SHIFTWORK_ENCRYPTION_KEYS": new_key()}) as place:
        yield place


STORM_PLACES: Final[dict[str, Callable[[Path], AbstractAsyncContextManager[StormPlace]]]] = {
    "sqlite": on_sqlite,
    "encrypted": encrypted,
    "redis": on_valkey,
    "sentinel": on_sentinel,
    "cluster": on_cluster,
    "postgresql": on_postgres,
    "standby": on_standby,
}
