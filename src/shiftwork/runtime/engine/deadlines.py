"""The deadlines of running jobs, watched by one timer instead of one each: most runs end long before theirs."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Final

from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.engine.run import Run

SLACK: Final = 1_000
"""How many ended runs may stay in the heap before they are swept out."""


class Deadlines:
    """Calls `expire` for every run that reaches its deadline."""

    def __init__(self, clock: Clock, expire: Callable[[Run], None]) -> None:
        self._clock = clock
        self._expire = expire
        self._order = count()
        self._heap: list[tuple[float, int, Run]] = []
        self._largest = SLACK
        self._armed_for = float("inf")
        self._timer: Timer | None = None

    def watch(self, run: Run, seconds: float) -> None:
        """Expire this run after this many seconds, by the monotonic clock, unless it has ended by then."""
        deadline = self._clock.monotonic() + seconds
        heappush(self._heap, (deadline, next(self._order), run))
        if deadline < self._armed_for:
            self._arm()
        if len(self._heap) > self._largest:
            self._sweep()

    def close(self) -> None:
        """Forget every deadline."""
        self._heap.clear()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._armed_for = self._heap[0][0] if self._heap else float("inf")
        if self._heap:
            self._timer = self._clock.call_in(self._armed_for - self._clock.monotonic(), self._ring)

    def _ring(self) -> None:
        now = self._clock.monotonic()
        try:
            while self._heap and (self._heap[0][2].ended or self._heap[0][0] <= now):
                run = heappop(self._heap)[2]
                if not run.ended:
                    self._expire(run)
        finally:
            self._arm()

    def _sweep(self) -> None:
        self._heap = [entry for entry in self._heap if not entry[2].ended]
        heapify(self._heap)
        self._largest = 2 * len(self._heap) + SLACK
