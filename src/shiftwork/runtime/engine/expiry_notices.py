"""Notices of jobs that have expired: one at once, then at most one a minute, however many jobs it is."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from shiftwork.core.plurals import counted
from shiftwork.runtime.clock import Clock, Timer

NOTICE_SECONDS: Final = 60.0
MOST_NAMED: Final = 5
"""How many workers a notice names."""


class ExpiryNotices:
    """Counts the jobs that have expired, by worker, and calls `notify` with the counts now and then."""

    def __init__(self, clock: Clock, notify: Callable[[Mapping[str, int]], None]) -> None:
        self._clock = clock
        self._notify = notify
        self._counts: Counter[str] = Counter()
        self._timer: Timer | None = None

    def add(self, expired: Mapping[str, int]) -> None:
        """Take note that this many jobs of each worker have expired."""
        self._counts.update(expired)
        if self._timer is None:
            self._look()

    def close(self) -> None:
        """Send the last notice now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._flush()

    def _look(self) -> None:
        self._timer = self._clock.call_in(NOTICE_SECONDS, self._look) if self._flush() else None

    def _flush(self) -> bool:
        counts = dict(self._counts.most_common())
        self._counts.clear()
        if counts:
            self._notify(counts)
        return bool(counts)


def expiry_notice(counts: Mapping[str, int]) -> str:
    """Return the text of a notice."""
    named = [f"{number:,} of {worker}" for worker, number in list(counts.items())[:MOST_NAMED]]
    others = len(counts) - len(named)
    if others:
        named.append(f"and those of {counted(others, 'more worker')}")
    return f"{counted(sum(counts.values()), 'job')} expired before being started: {', '.join(named)}"
