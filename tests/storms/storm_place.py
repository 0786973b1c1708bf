"""A store for a storm, and how it can be harmed."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.polling import pass_time
from tests.store.proxy import Proxy
from tests.store.servers.small_disk import SmallDisk, small_disk

Harm = Callable[[float], Awaitable[None]]
DISK_MEGABYTES: Final = 600


class StormPlace:
    """A store for a storm. Each harm lasts for some seconds, and is then undone; one at a time."""

    def __init__(
        self, url: str, harms: Mapping[str, Harm], *folders: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.url = url
        self.environment = dict(environment or {})
        """What nodes and clients need besides the URL."""
        self.keys = self.environment.get("SHIFTWORK_ENCRYPTION_KEYS", "").split()
        self._harms = harms
        self._folders = folders
        self._turn = asyncio.Lock()

    @property
    def harms(self) -> tuple[str, ...]:
        """How it can be harmed."""
        return tuple(self._harms)

    async def harm(self, how: str, seconds: float) -> None:
        """Do it, wait, and undo it."""
        async with self._turn:
            await self._harms[how](seconds)

    def size(self) -> int:
        """Return how many bytes the files of the store take."""
        files = (each for folder in self._folders for each in folder.rglob("*") if each.is_file())
        return sum(each.stat().st_size for each in files if each.name != "filling")


def of_the_network(proxy: Proxy) -> dict[str, Harm]:
    """Return how the connection to a server can be harmed."""

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


@contextmanager
def own_disk(folder: Path) -> Iterator[dict[str, Harm]]:
    """Mount a disk in this new folder and yield how it is filled; where none can be mounted, only make the folder."""
    with ExitStack() as stack:
        harms: dict[str, Harm] = {}
        try:
            disk = stack.enter_context(small_disk(folder, megabytes=DISK_MEGABYTES))
            harms["full disk"] = partial(_fill, disk)
        except pytest.skip.Exception:
            folder.mkdir(exist_ok=True)
        yield harms


async def _fill(disk: SmallDisk, seconds: float) -> None:
    await asyncio.to_thread(disk.fill)
    await pass_time(seconds)
    disk.free()
