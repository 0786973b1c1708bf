"""How long a node that stops waits for its store: some seconds in all once its runs are over, less if hurried."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Any, Final

logger: Final = logging.getLogger("shiftwork")

LAST_SECONDS: Final = 12.0
"""How long everything may take that is left to do when no run is left, or the grace period is over."""
HURRIED_SECONDS: Final = 0.5
"""How long each thing may take after a second signal, and once the store has been found silent."""


class StopBudget:
    """Waits for what needs the store, and goes on without it when that takes too long."""

    def __init__(self, grace: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._latest = self._until = self._loop.time() + grace + LAST_SECONDS
        self._hurried = asyncio.Event()

    def begin(self) -> None:
        """No run is left: from now on, the store has some seconds for everything."""
        self._until = min(self._loop.time() + LAST_SECONDS, self._latest)

    @property
    def left(self) -> float:
        """How many seconds the store still has."""
        return max(HURRIED_SECONDS, self._until - self._loop.time())

    def hurry(self) -> None:
        """Wait no more than a moment from now on."""
        self._hurried.set()

    async def wait(self, work: Awaitable[Any], what: str) -> None:
        """Wait until the work is done. If the store takes too long, give it up; `what` it was is for the log."""
        task = asyncio.ensure_future(work)
        hurried = asyncio.ensure_future(self._hurried.wait())
        try:
            await asyncio.wait({task, hurried}, timeout=self.left, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and hurried.done():
                await asyncio.wait({task}, timeout=HURRIED_SECONDS)
        finally:
            hurried.cancel()
            if not task.done():
                task.cancel()  # not waited for: a driver may be slow to let go, too
        if task.done() and not task.cancelled():
            task.result()
        else:
            task.add_done_callback(_retrieve)
            self.hurry()
            logger.warning("the store does not answer: stopping without %s", what)


def _retrieve(task: "asyncio.Future[Any]") -> None:
    """Keep asyncio from reporting an error that comes too late to matter."""
    if not task.cancelled():
        task.exception()
