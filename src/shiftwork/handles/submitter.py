"""What a `Worker` needs in order to add jobs. `shiftwork.app.submitting` implements it."""

from collections.abc import Sequence
from typing import Any, Protocol

from shiftwork.core.model.job import Claimed
from shiftwork.handles.call import Call
from shiftwork.handles.job import Job


class Submitter(Protocol):
    """Adds jobs to a store."""

    async def submit(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs in one step: all of them, or none."""

    def submit_blocking(self, calls: Sequence[Call[Any]], instead: str) -> list[Job[Any]]:
        """Add jobs in one step, from synchronous code. Where an event loop runs, `instead` is the remedy."""

    async def extend_flow(self, job: Claimed, calls: Sequence[Call[Any]], before: Sequence[str]) -> list[str]:
        """Add calls to the flow of a running job that has added `before`, and return the ids of their jobs."""

    async def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection."""

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection, from synchronous code."""
