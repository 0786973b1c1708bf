"""How long a node that stops waits for its store: no longer than the grace period, and hardly at all once hurried."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, Final

logger: Final = logging.getLogger("shiftwork")

LEAST_SECONDS: Final = 2.0
"""How long it waits however short the grace period is: a store that works needs less."""
HURRIED_SECONDS: Final = 0.5
"""How long each thing may take after a second signal, and once the store has been found silent."""


class StorePatience:
    """Waits for what needs the store, and goes on without it when that takes too long."""

    def __init__(self, grace: float) -> None:
        self._grace = max(grace, LEAST_SECONDS)
        self._hurried = asyncio.Event()

    def hurry(self) -> None:
        """Wait no more than a moment from now on."""
        self._hurried.set()

    async def wait(self, work: Coroutine[Any, Any, None], what: str) -> None:
        """Wait until the work is done. If the store takes too long, give it up; `what` it was is for the log."""
        task = asyncio.ensure_future(work)
        hurried = asyncio.ensure_future(self._hurried.wait())
        try:
            await asyncio.wait({task, hurried}, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
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


def _retrieve(task: "asyncio.Task[None]") -> None:
    """Keep asyncio from reporting an error that comes too late to matter."""
    if not task.cancelled():
        task.exception()
