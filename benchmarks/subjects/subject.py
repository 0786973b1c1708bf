"""The interface of a subject, so that all are measured the same way."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

CALLERS: Final = 100


class Subject(ABC):
    """A queue at a URL, of jobs that do nothing, or wait. Once `add` or `add_many` returns, its jobs are durable."""

    engine_work = False
    """Whether a bare subject also does the work of a real engine for each job."""

    def __init__(self, url: str, *, seconds: float = 0.0) -> None:
        self.url = url
        self.seconds = seconds
        """How long a job waits, before it counts as run."""

    @abstractmethod
    async def open(self) -> None:
        """Connect, and create the tables if there are none."""

    @abstractmethod
    async def add(self) -> None:
        """Add one job."""

    def add_blocking(self) -> None:
        """Add one job from a thread that runs no event loop, if the subject can."""
        raise NotImplementedError

    @abstractmethod
    async def add_many(self, n: int) -> None:
        """Add this many jobs, in the fastest way."""

    async def add_together(self, n: int) -> None:
        """Add this many jobs from 100 concurrent callers, each of which adds one at a time."""

        async def caller() -> None:
            for _ in range(n // CALLERS):
                await self.add()

        await asyncio.gather(*(caller() for _ in range(CALLERS)))

    @abstractmethod
    async def start(self, ran: Callable[[], None]) -> None:
        """Run jobs from now on, and call `ran` in each, from one thread at a time."""

    @abstractmethod
    async def close(self) -> None:
        """Disconnect. A subject that runs jobs is not closed: its process ends, and its store is thrown away."""
