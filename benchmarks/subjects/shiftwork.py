"""shiftwork, as a program uses it, on the store with the given URL."""

import asyncio
from collections.abc import Callable
from typing import Final

from benchmarks.subjects.subject import Subject
from shiftwork import WorkerOrchestrator

SLOTS: Final = 200
AT_ONCE: Final = 50_000
"""Jobs per bulk enqueue, so that a deep backlog need not fit into memory at once."""


def _nothing() -> None:
    """The callback of jobs that are not counted."""


class Shiftwork(Subject):
    """One pool of coroutines. With `seconds`, a job waits that long before it counts as run."""

    def __init__(self, url: str, *, slots: int = SLOTS, seconds: float = 0.0) -> None:
        super().__init__(url)
        self.app = app = WorkerOrchestrator(url, max_concurrent=slots)
        self._ran: Callable[[], None] = _nothing
        self._running = False

        @app.task(keep_completed_seconds=60)
        async def noop() -> None:
            self._ran()

        @app.task(keep_completed_seconds=60)
        async def wait() -> None:
            await asyncio.sleep(seconds)
            self._ran()

        self._job = wait if seconds else noop

    async def open(self) -> None:
        """The first call that needs the store opens it."""
        await self.app.find_jobs(limit=1)

    async def add(self) -> None:
        await self._job.enqueue()

    async def add_many(self, n: int) -> None:
        for begun in range(0, n, AT_ONCE):
            await self.app.enqueue_many([self._job.call() for _ in range(min(AT_ONCE, n - begun))])

    async def start(self, ran: Callable[[], None]) -> None:
        self._ran = ran
        await self.app.start()
        self._running = True

    async def close(self) -> None:
        await (self.app.stop() if self._running else self.app.close())
