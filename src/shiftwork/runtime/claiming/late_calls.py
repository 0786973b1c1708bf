"""When to ask the store again what it holds for us, after a call that handed something out got no reply.

Its request may still be on its way, or be carried out just now: a server that stood still, or waited for its disk,
does what it was asked although the caller has given up. What that brings would stay where it is for ever.
"""

from typing import Final

from shiftwork.runtime.clock import Clock

FIRST_LATE_LOOK_SECONDS: Final = 1.0
"""How soon to ask again; each pause is twice as long as the one before."""
LATE_CALL_SECONDS: Final = 600.0
"""For how long to ask again and again."""


class LateCalls:
    """Knows when to ask again."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._again: float | None = None
        self._pause = FIRST_LATE_LOOK_SECONDS

    @property
    def due(self) -> bool:
        """Whether it is time to ask again."""
        return self._again is not None and self._clock.monotonic() >= self._again

    def expect(self) -> None:
        """Note that a call got no reply."""
        self._pause = FIRST_LATE_LOOK_SECONDS
        self._again = self._clock.monotonic() + self._pause

    def asked(self) -> None:
        """Note that the store was asked again."""
        self._pause *= 2
        self._again = None if self._pause > LATE_CALL_SECONDS / 2 else self._clock.monotonic() + self._pause
