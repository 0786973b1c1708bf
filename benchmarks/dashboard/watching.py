"""Simulated browsers with the overview open: they listen, and fetch again what the server says has changed.

They use the same pace as `ui/src/data/live.ts`.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from httpx2 import AsyncClient

BEAT_SECONDS: Final = 0.25
SHOWN: Final[dict[str, tuple[str, dict[str, Any], float]]] = {
    "overview": ("overview", {}, 1.0),
    "history": ("history", {"seconds": 3600}, 5.0),
}
"""The requests of the overview, and the fewest seconds between two of each."""
CONCERNS: Final = dict.fromkeys(("jobs", "pools", "workers", "nodes", "events"), "overview") | {"history": "history"}


class Viewer:
    """A simulated viewer."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._stale = set(SHOWN)
        self._asked = dict.fromkeys(SHOWN, 0.0)

    async def look(self) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hear())
            group.create_task(self._ask())

    async def _hear(self) -> None:
        async with self._client.stream("GET", "live", timeout=None) as stream:
            async for line in stream.aiter_lines():
                name, _, data = line.partition(": ")
                if name == "data":
                    topics = msgspec.json.decode(data).get("topics", ["events"])
                    self._stale |= {CONCERNS[topic] for topic in topics}

    async def _ask(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            for name in tuple(self._stale):
                path, query, pace = SHOWN[name]
                if time.monotonic() - self._asked[name] >= pace:
                    self._stale.discard(name)
                    self._asked[name] = time.monotonic()
                    (await self._client.get(path, params=query)).raise_for_status()


@asynccontextmanager
async def watched(client: AsyncClient, viewers: int) -> AsyncIterator[None]:
    """Run this many viewers meanwhile."""
    looking = [asyncio.create_task(Viewer(client).look()) for _ in range(viewers)]
    try:
        yield
        for one in looking:
            if one.done():
                one.result()  # raises if a viewer stopped early: then nothing was measured
    finally:
        for one in looking:
            one.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
