"""shiftwork, as a program uses it, on the store with the given URL."""

import asyncio
from collections.abc import Callable
from typing import Final, Literal

from benchmarks.plan import SLOTS
from benchmarks.subjects.subject import Subject
from shiftwork import WorkerOrchestrator

Kind = Literal["async", "process"]
PROCESSES: Final = 2
AT_ONCE: Final = 50_000
"""Jobs per bulk enqueue, so that a deep backlog need not fit into memory at once."""


def _nothing() -> None:
    """The callback of jobs that are not counted."""


class Shiftwork(Subject):
    """One pool of fixed size: 100 coroutines, or two processes. With `seconds`, a job waits that long, then counts."""

    def __init__(self, url: str, *, seconds: float = 0.0, kind: Kind = "async") -> None:
        super().__init__(url, seconds=seconds)
        self.app = app = WorkerOrchestrator(url)
        size = PROCESSES if kind == "process" else SLOTS
        # Slots that declare CPU are limited to the cores; two processes are wanted on a machine with one, too.
        cpu = 0.1 if kind == "process" else None
        app.register_pool("bench", kind=kind, min_workers=size, max_workers=size, cpu=cpu)
        self._ran: Callable[[], None] = _nothing

        async def noop() -> None:
            self._ran()

        async def wait() -> None:
            await asyncio.sleep(seconds)
            self._ran()

        def plain() -> None:
            self._ran()

        function = plain if kind == "process" else wait if seconds else noop
        self._job = app.task(name="job", pool="bench", keep_completed_seconds=0)(function)

    def count(self, ran: Callable[[], None]) -> None:
        """Call this in each job."""
        self._ran = ran

    async def open(self) -> None:
        """The first call that needs the store opens it."""
        await self.app.find_jobs(limit=1)

    async def add(self) -> None:
        await self._job.enqueue()

    async def add_many(self, n: int) -> None:
        for begun in range(0, n, AT_ONCE):
            await self.app.enqueue_many([self._job.call() for _ in range(min(AT_ONCE, n - begun))])

    async def start(self, ran: Callable[[], None]) -> None:
        self.count(ran)
        await self.app.start()

    async def close(self) -> None:
        await self.app.close()
