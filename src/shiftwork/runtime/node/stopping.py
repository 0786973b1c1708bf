"""How a node learns that it should stop, and how long it then waits for its store.

SIGTERM and SIGINT stop gracefully; a second signal stops at once. A node that stops gives its store some seconds in
all once its runs are over, and less if it is hurried.
"""

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

logger: Final = logging.getLogger("shiftwork")

LAST_SECONDS: Final = 12.0
"""How long everything may take that is left to do when no run is left, or the grace period is over."""

HURRIED_SECONDS: Final = 0.5
"""How long each thing may take after a second signal, and once the store has been found silent."""


@contextmanager
def stop_signals(hurry: Callable[[], None], *, patience: float) -> Iterator[asyncio.Event]:
    """Yield an event that is set at the first signal; the second calls `hurry`. `patience` is for the log line."""
    loop = asyncio.get_running_loop()
    signalled = asyncio.Event()

    def on_signal() -> None:
        if signalled.is_set():
            logger.warning("stopping now, because of a second signal")
            hurry()
        else:
            logger.info("stopping: running jobs have %g s to finish; a second signal stops them now", patience)
        signalled.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    try:
        yield signalled
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


class StopBudget:
    """Waits for what needs the store, and goes on without it when that takes too long."""

    def __init__(self, grace: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._latest = self._until = self._loop.time() + grace + LAST_SECONDS
        self._hurried = asyncio.Event()

    def begin(self) -> None:
        """Start the clock: no run is left, and the store has some seconds for everything."""
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
