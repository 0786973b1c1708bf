"""shiftwork, as a program uses it, on the store with the given URL."""

import asyncio
import time
from collections.abc import Callable
from itertools import cycle, repeat
from typing import Any, Final, Literal

from msgspec import msgpack
from msgspec.structs import replace

from benchmarks.plan import SLOTS
from benchmarks.subjects.subject import Subject
from shiftwork import JobStatus, WorkerOrchestrator
from shiftwork.core.model.jobs import JobRecord, NewJob

Kind = Literal["async", "process"]
PROCESSES: Final = 2
PAYLOAD: Final = msgpack.encode({})
DAY: Final = 86_400.0
PAST_AT_ONCE: Final = 5_000
AT_ONCE: Final = 50_000
"""Jobs per bulk enqueue, so that a deep backlog need not fit into memory at once."""


def _nothing() -> None:
    """The callback of jobs that are not counted."""


class Shiftwork(Subject):
    """One pool of fixed size: 100 coroutines, or two processes. With `seconds`, a job waits that long, then counts.

    There is one worker, or many: then its jobs are those of one of them, or are spread over all.
    """

    def __init__(
        self, url: str, *, seconds: float = 0.0, kind: Kind = "async", workers: int = 1, spread: bool = False
    ) -> None:
        super().__init__(url, seconds=seconds)
        self.app = app = WorkerOrchestrator(url)
        size = PROCESSES if kind == "process" else SLOTS
        # Slots that declare CPU are limited to the cores; two processes are wanted on a machine with one, too.
        cpu = 0.1 if kind == "process" else None
        app.register_pool("bench", kind=kind, min_workers=size, max_workers=size, cpu=cpu)
        self._ran: Callable[[], None] = _nothing
        function = self.function(kind)
        names = ["job", *(f"tenant-{number:05}" for number in range(1, workers))]
        tasks = [app.task(name=name, pool="bench", keep_completed_seconds=0)(function) for name in names]
        self._turns = cycle(tasks) if spread else repeat(tasks[0])

    def function(self, kind: Kind) -> Callable[..., Any]:
        """What its jobs run."""

        async def noop() -> None:
            self._ran()

        async def wait() -> None:
            await asyncio.sleep(self.seconds)
            self._ran()

        def plain() -> None:
            self._ran()

        return plain if kind == "process" else wait if self.seconds else noop

    def count(self, ran: Callable[[], None]) -> None:
        """Call this in each job."""
        self._ran = ran

    async def open(self) -> None:
        """The first call that needs the store opens it."""
        await self.app.find_jobs(limit=1)

    async def add(self) -> None:
        await next(self._turns).enqueue()

    def add_blocking(self) -> None:
        next(self._turns).enqueue_blocking()

    async def add_many(self, n: int) -> None:
        for begun in range(0, n, AT_ONCE):
            await self.app.enqueue_many([next(self._turns).call() for _ in range(min(AT_ONCE, n - begun))])

    async def add_past(self, n: int, status: Literal["dead", "scheduled"]) -> None:
        """Add jobs that cannot run: dead ones, or those of tomorrow."""
        store, now = await self.app.control.store.open(), time.time()
        like = JobRecord.of(NewJob(id="", worker="job", pool="bench", payload=PAYLOAD, run_at=now), now)
        changes: dict[str, Any] = {"status": JobStatus(status)}
        if status == "dead":
            changes |= {"attempt": 4, "started_at": now, "ended_at": now, "error": "ValueError: no pages"}
        else:
            changes |= {"run_at": now + DAY}
        like = replace(like, **changes)
        for begun in range(0, n, PAST_AT_ONCE):
            numbers = range(begun, min(begun + PAST_AT_ONCE, n))
            await store.restore([replace(like, id=f"{status}-{number:07}") for number in numbers], now)

    async def tidy(self) -> None:
        """Delete the jobs that have ended, so that the next drain does not pay for that."""
        store = await self.app.control.store.open()
        while await store.prune(PAST_AT_ONCE, time.time()):
            pass

    async def start(self, ran: Callable[[], None]) -> None:
        self.count(ran)
        await self.app.start()

    async def close(self) -> None:
        await self.app.close()
