"""How often a job was handed back in the last minute although nothing had asked its run to stop.

That should never happen: a run ends, or is asked to stop. If it happens all the same, the job would be claimed again at
once, over and over, without using up an attempt; so `core.retry` stops it. The node that runs the job keeps the count,
and forgets it when it stops.
"""

from collections import deque
from typing import Final

from shiftwork.core.retry import HAND_BACK_LIMIT, HAND_BACK_SECONDS

MOST_JOBS: Final = 1_000
"""Beyond this many jobs, those that were not handed back for a minute are forgotten."""


class UnaskedHandBacks:
    """Counts for all instances of one node."""

    def __init__(self) -> None:
        self._times: dict[str, deque[float]] = {}

    def count(self, job_id: str, now: float) -> int:
        """Count one more hand-back of a job; returns how many there were within the last minute."""
        if len(self._times) >= MOST_JOBS:
            self._times = {id: times for id, times in self._times.items() if times[-1] > now - HAND_BACK_SECONDS}
        times = self._times.setdefault(job_id, deque(maxlen=HAND_BACK_LIMIT + 1))
        times.append(now)
        while times[0] <= now - HAND_BACK_SECONDS:
            times.popleft()
        return len(times)
