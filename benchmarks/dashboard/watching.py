"""Browsers that have the overview open: they listen, and ask again for what the server says has changed.

At the same pace as `ui/src/data/live.ts`.
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
"""What the overview shows: where it is asked for, and how many seconds are between two times at least."""
CONCERNS: Final = dict.fromkeys(("jobs", "pools", "workers", "nodes", "events"), "overview") | {"history": "history"}


class Viewer:
    """Somebody who looks."""

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._stale = set(SHOWN)
        self._asked = dict.fromkeys(SHOWN, 0.0)

    async def look(self) -> None:
        """Until cancelled."""
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
    """While so many look."""
    looking = [asyncio.create_task(Viewer(client).look()) for _ in range(viewers)]
    try:
        yield
        for one in looking:
            if one.done():
                one.result()  # whoever stopped looking has not been measured
    finally:
        for one in looking:
            one.cancel()
        await asyncio.gather(*looking, return_exceptions=True)
