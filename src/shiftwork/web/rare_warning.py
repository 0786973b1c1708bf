"""A warning that others can cause at will, and that must not fill the log."""

import logging
import math
import time
from typing import Final

logger: Final = logging.getLogger("shiftwork")

EVERY_SECONDS: Final = 60.0


class RareWarning:
    """Logs at most one line a minute, and how many were left out since the last one."""

    def __init__(self, every: float = EVERY_SECONDS) -> None:
        self._every = every
        self._last = -math.inf
        self._left_out = 0

    def __call__(self, message: str, *values: object) -> None:
        """Log the message, unless another one was logged a moment ago."""
        now = time.monotonic()
        if now - self._last < self._every:
            self._left_out += 1
            return
        again = f" ({self._left_out:,} more since the last such line)" if self._left_out else ""
        self._last, self._left_out = now, 0
        logger.warning("%s%s", message % values, again)
