"""What a `Worker` needs in order to add jobs. `shiftwork.app.submitting` implements it."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from shiftwork.core.model import Claimed
from shiftwork.handles.call import Call
from shiftwork.handles.job import Job

R = TypeVar("R")


class Submitter(Protocol):
    """Adds jobs to a store."""

    async def submit(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs in one step: all of them, or none."""

    async def extend_flow(self, job: Claimed, calls: Sequence[Call[Any]], before: Sequence[str]) -> list[str]:
        """Add calls to the flow of a running job that has added `before`, and return the ids of their jobs."""

    async def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection."""

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection, from synchronous code."""

    def run_blocking(self, work: Callable[[], Coroutine[Any, Any, R]], instead: str) -> R:
        """Run a coroutine from synchronous code and wait for its result. Where a loop runs, `instead` is the remedy."""
