"""The one loop for everything that goes on forever: poll, sleep until the next time or the bell, poll again.

A duty survives whatever its poll raises: it reports, backs off, and tries again. Failures of the store go to the
`OutageLog`; everything else is a surprise, and logged here.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from shiftwork.core.words import counted
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.store.protocol import Bell

logger: Final = logging.getLogger("shiftwork")

FIRST_BACKOFF_SECONDS: Final = 0.1
LONGEST_BACKOFF_SECONDS: Final = 10.0
HAIR_SECONDS: Final = 0.001
"""A timer may be this early."""


async def together(*work: Awaitable[Any]) -> list[Any]:
    """Do all of this at the same time, and return the results in order. When all has ended, raises the first error."""
    done = await asyncio.gather(*work, return_exceptions=True)
    for one in done:
        if isinstance(one, BaseException):
            raise one
    return done


class Duty:
    """Calls `poll` when it is due or when the bell rings. `poll` returns when it wants the next call, or None."""

    def __init__(
        self,
        name: str,
        poll: Callable[[], Awaitable[float | None]],
        *,
        clock: Clock,
        bell: Bell,
        longest_sleep: float,
        outages: OutageLog,
    ) -> None:
        self._name = name
        self._poll = poll
        self._clock = clock
        self._bell = bell
        self._longest_sleep = longest_sleep
        self._outages = outages
        self._failures = 0
        self._surprised = False
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin, on the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"shiftwork {self._name}")

    @property
    def over(self) -> bool:
        """Whether it was started, and has ended."""
        return self._task is not None and self._task.done()

    def ring(self) -> None:
        """Poll soon. Safe from any thread."""
        self._bell.ring()

    async def stop(self) -> None:
        """Let the poll in progress end, then end."""
        self._stopping = True
        self._bell.ring()
        if self._task is not None:
            await self._task
        self._bell.close()

    async def _run(self) -> None:
        while not self._stops():
            next_at = await self._once()
            sleep = self._longest_sleep
            if next_at is not None:
                sleep = min(sleep, max(0.0, next_at - self._clock.now()))
            wake_at = self._clock.monotonic() + sleep
            timer = self._clock.call_in(sleep, self._bell.ring)
            await self._bell.wait()
            while self._failures and self._clock.monotonic() < wake_at - HAIR_SECONDS and not self._stops():
                await self._bell.wait()  # a failing poll may ring the bell itself: only time ends a back-off
            timer.cancel()

    def _stops(self) -> bool:
        return self._stopping or self._bell.closed

    async def _once(self) -> float | None:
        try:
            next_at = await self._poll()
        except Exception as error:  # noqa: BLE001 - a duty outlives every surprise, and reports it to the log
            return self._back_off(error)
        if self._failures:
            self._got_through()
        return next_at

    def _got_through(self) -> None:
        if self._surprised:
            with suppress(Exception):  # a log handler of the user's must not end a duty
                logger.info("%s works again after %s", self._name, counted(self._failures, "failure"))
        self._failures, self._surprised = 0, False
        self._outages.passed(self._name)

    def _back_off(self, error: Exception) -> float:
        self._failures += 1
        seconds = min(LONGEST_BACKOFF_SECONDS, FIRST_BACKOFF_SECONDS * 2.0 ** min(self._failures - 1, 10))
        if isinstance(error, StoreError):
            self._outages.failed(self._name, error)
        else:
            self._surprised = True
            with suppress(Exception):
                logger.error("%s failed unexpectedly; trying again in %.1f s", self._name, seconds, exc_info=error)
        return self._clock.now() + seconds
