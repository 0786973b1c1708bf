"""Waiting until something is so, looking whenever something has changed."""

import asyncio
from collections.abc import Callable

from shiftwork.runtime.clock import Clock


class ChangeWatch:
    """Lets one task at a time wait for a condition."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._look: Callable[[], None] | None = None

    def happened(self) -> None:
        """Something has changed: look whether the condition is met now."""
        if self._look is not None:
            self._look()

    async def until(self, met: Callable[[], bool], deadline: float | None = None) -> None:
        """Return when the condition is met, or at the deadline."""
        if deadline is not None and deadline <= self._clock.now():
            return  # a clock that a test moves by hand would not call back
        over = asyncio.Event()
        timer = None if deadline is None else self._clock.call_at(deadline, over.set)

        def look() -> None:
            if met():
                over.set()

        self._look = look
        look()
        await over.wait()
        self._look = None
        if timer is not None:
            timer.cancel()
