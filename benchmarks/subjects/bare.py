"""The bare server: the minimum that a correct queue needs, without a framework. It is the limit for shiftwork.

Jobs are kept in rank order. One call finishes a batch of 100 and claims the next. A claim writes the end of its lease
and a fence that only grows; a finish counts only under the fence of its claim. With `engine_work`, every job is also
decoded and run as its own task, with a context, a deadline and an encoded result, as a real engine does.
"""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from msgspec import msgpack

from benchmarks.subjects.subject import Subject

BATCH: Final = 100
LEASE_SECONDS: Final = 15.0
TIMEOUT_SECONDS: Final = 60.0
PAYLOAD: Final = msgpack.encode({})

Claimed = tuple[int, int, bytes]
"""A claimed job: its id, its fence, its payload."""
Done = tuple[int, int, bytes]
"""A finished job: its id, its fence, its result."""


@dataclass(slots=True)
class Context:
    """The context of a job's function."""

    job_id: int
    fence: int
    deadline: float
    payload: Any


class Bare(Subject):
    def __init__(self, url: str, *, seconds: float = 0.0) -> None:
        super().__init__(url, seconds=seconds)
        assert not seconds, "the bare server is measured without waiting"
        self._serving: asyncio.Task[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._adding: asyncio.Task[None] | None = None

    @abstractmethod
    async def exchange(self, done: list[Done]) -> list[Claimed]:
        """Finish these jobs if their fences still hold, and claim the next ones, in one step."""

    @abstractmethod
    async def listen(self) -> None:
        """Start listening, so that `wait` notices added jobs."""

    @abstractmethod
    async def wait(self) -> None:
        """Wait until a job may have been added since the last call."""

    async def start(self, ran: Callable[[], None]) -> None:
        await self.listen()
        self._serving = asyncio.create_task(self._serve(ran))

    # ── adding: callers that arrive while one call is under way share the next one ───────────────────────────────────

    async def add_together(self, n: int) -> None:
        alone, self.add = self.add, self._share  # type: ignore[method-assign]
        try:
            await super().add_together(n)
        finally:
            self.add = alone  # type: ignore[method-assign]

    async def _share(self) -> None:
        added = asyncio.get_running_loop().create_future()
        self._waiting.append(added)
        if self._adding is None:
            self._adding = asyncio.create_task(self._add_waiting())
        await added

    async def _add_waiting(self) -> None:
        while self._waiting:
            taken, self._waiting = self._waiting, []
            await self.add_many(len(taken))
            for added in taken:
                added.set_result(None)
            await asyncio.sleep(0)  # so that they can come back before the next call
        self._adding = None

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _serve(self, ran: Callable[[], None]) -> None:
        done: list[Done] = []
        while True:
            claimed = await self.exchange(done)
            if not claimed:
                await self.wait()
            done = await self._work(claimed, ran) if self.engine_work else _count(claimed, ran)

    async def _work(self, claimed: list[Claimed], ran: Callable[[], None]) -> list[Done]:
        loop = asyncio.get_running_loop()

        async def noop(_: Context) -> Any:
            ran()

        async def run(job_id: int, fence: int, payload: bytes) -> Done:
            context = Context(job_id, fence, time.time() + TIMEOUT_SECONDS, msgpack.decode(payload))
            return job_id, fence, msgpack.encode(await noop(context))

        tasks = [loop.create_task(run(*job)) for job in claimed]
        deadlines = [loop.call_later(TIMEOUT_SECONDS, task.cancel) for task in tasks]
        done = [await task for task in tasks]
        for deadline in deadlines:
            deadline.cancel()
        return done


def _count(claimed: list[Claimed], ran: Callable[[], None]) -> list[Done]:
    for _ in claimed:
        ran()
    return claimed
