"""Processes of a pool that cannot be started: how long to wait before the next try, and when to raise the alarm."""

import logging
from collections.abc import Callable
from typing import Final

from shiftwork.events import Emit
from shiftwork.runtime.clock import Clock, Timer

logger: Final = logging.getLogger("shiftwork")

FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_WAIT_SECONDS: Final = 30.0
"""How long to wait at most before a process is started again that could not begin; the wait doubles from the first."""
LONGEST_WAIT_AFTER_KILL_SECONDS: Final = 1.0
"""How long to wait at most where the process was killed from outside: that says little about the next."""
FAILING_AFTER: Final = 3
"""After this many failures in a row the pool is failing, and an event says so."""


class StartFailures:
    """Counts the failed starts in a row of one pool, and calls `retry` when it is time for the next try."""

    def __init__(self, pool: str, *, clock: Clock, emit: Emit, retry: Callable[[], None]) -> None:
        self.count = 0
        self.failing: str | None = None
        """Why the processes of the pool cannot be started, if they cannot."""
        self._pool = pool
        self._clock = clock
        self._emit = emit
        self._retry = retry
        self._timer: Timer | None = None

    @property
    def waiting(self) -> bool:
        """Whether it is too early for the next try."""
        return self._timer is not None

    def failed(self, error: str, longest: float = LONGEST_WAIT_SECONDS) -> None:
        """A process could not be started."""
        self.count += 1
        wait = min(longest, FIRST_WAIT_SECONDS * 2.0 ** min(self.count - 1, 10))
        logger.error("cannot start a process of pool %s: %s; trying again in %.1f s", self._pool, error, wait)
        if self.count >= FAILING_AFTER and self.failing is None:
            self.failing = error
            self._emit("pool.failing", self._pool, f"pool {self._pool} is failing: cannot start its processes: {error}")
        if self._timer is None:
            self._timer = self._clock.call_in(wait, self._try_again)

    def succeeded(self) -> None:
        """A process began, and stays."""
        self.count = 0
        if self.failing is not None:
            self.failing = None
            self._emit("pool.recovered", self._pool, f"pool {self._pool} has recovered: its processes start again")

    def close(self) -> None:
        """Try no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _try_again(self) -> None:
        self._timer = None
        self._retry()
