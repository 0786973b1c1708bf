"""What a subject can do, so that everything is measured the same way for all of them."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

CALLERS: Final = 100


class Subject(ABC):
    """A queue of no-op jobs at a URL. A job that `add` or `add_many` has returned from is durable."""

    engine_work = False
    """Whether a bare subject also does, for each job, what a real engine does."""

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    async def open(self) -> None:
        """Connect, and make the tables if there are none."""

    @abstractmethod
    async def add(self) -> None:
        """Add one job."""

    @abstractmethod
    async def add_many(self, n: int) -> None:
        """Add so many jobs, the fastest way there is."""

    async def add_together(self, n: int) -> None:
        """Add so many jobs by 100 callers at once, each of which adds one after the other."""

        async def caller() -> None:
            for _ in range(n // CALLERS):
                await self.add()

        await asyncio.gather(*(caller() for _ in range(CALLERS)))

    @abstractmethod
    async def start(self, ran: Callable[[], None]) -> None:
        """Run jobs from now on, and call `ran` in each, from one thread at a time."""

    @abstractmethod
    async def close(self) -> None:
        """Stop running jobs, and disconnect."""
