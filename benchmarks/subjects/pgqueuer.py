"""PgQueuer, with the best reasonable settings: asyncpg, batches of 100, and no limit but for jobs that wait."""

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

from benchmarks.plan import SLOTS
from benchmarks.subjects.subject import Subject

BATCH: Final = 100
AT_ONCE: Final = 10_000
"""Jobs per bulk enqueue."""


class OnPgQueuer(Subject):
    """Added through one connection, and run through another."""

    def __init__(self, url: str, *, seconds: float = 0.0) -> None:
        super().__init__(url, seconds=seconds)
        logging.getLogger("pgqueuer").setLevel(logging.ERROR)
        self._running: asyncio.Task[None] | None = None
        self._connections: list[Any] = []

    async def _queries(self) -> Any:
        self._connections.append(await asyncpg.connect(self.url))
        return Queries(AsyncpgDriver(self._connections[-1]))

    async def open(self) -> None:
        self._adding = await self._queries()
        if not await self._adding.has_table("pgqueuer"):
            await self._adding.install()

    async def add(self) -> None:
        await self._adding.enqueue("job", None)

    async def add_many(self, n: int) -> None:
        for begun in range(0, n, AT_ONCE):
            size = min(AT_ONCE, n - begun)
            await self._adding.enqueue(["job"] * size, [None] * size, [0] * size)

    async def start(self, ran: Callable[[], None]) -> None:
        queries = await self._queries()
        queue = PgQueuer(queries.driver, queries=queries)

        async def job(_: Any) -> None:
            if self.seconds:
                await asyncio.sleep(self.seconds)
            ran()

        queue.entrypoint("job")(job)
        waiting = {"batch_size": SLOTS // 2, "max_concurrent_tasks": SLOTS}
        settings = waiting if self.seconds else {"batch_size": BATCH}
        self._running = asyncio.create_task(queue.run(dequeue_timeout=timedelta(seconds=30), **settings))

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
