"""TaskIQ, with the best reasonable settings: a receiver in this process, 100 tasks, 100 prefetched, no results."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from taskiq.api import run_receiver_task
from taskiq_redis import RedisStreamBroker

from benchmarks.plan import SLOTS
from benchmarks.subjects.subject import Subject

PREFETCH: Final = 100
AT_ONCE: Final = 100
"""TaskIQ cannot add several jobs at once; as many calls as help are under way together."""


class OnStream(Subject):
    """On a stream: a job is acknowledged after it has run."""

    def __init__(self, url: str, *, seconds: float = 0.0) -> None:
        super().__init__(url, seconds=seconds)
        logging.getLogger("taskiq").setLevel(logging.ERROR)
        self._ran: Callable[[], None] | None = None
        self._receiving: asyncio.Task[None] | None = None
        self._broker = RedisStreamBroker(url, consumer_id="0", xread_count=PREFETCH)

        async def job() -> None:
            if seconds:
                await asyncio.sleep(seconds)
            if self._ran is not None:
                self._ran()

        self._job = self._broker.register_task(job, task_name="job")

    async def open(self) -> None:
        await self._broker.startup()

    async def add(self) -> None:
        await self._job.kiq()

    async def add_many(self, n: int) -> None:
        async def caller(number: int) -> None:
            for _ in range(number, n, AT_ONCE):
                await self._job.kiq()

        await asyncio.gather(*(caller(number) for number in range(AT_ONCE)))

    async def start(self, ran: Callable[[], None]) -> None:
        self._ran = ran
        receiving = run_receiver_task(
            self._broker,
            validate_params=False,
            max_async_tasks=SLOTS,
            max_prefetch=PREFETCH,
        )
        self._receiving = asyncio.create_task(receiving)

    async def close(self) -> None:
        await self._broker.shutdown()
