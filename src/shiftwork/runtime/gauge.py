"""How hard a process works: what it uses of the machine, how late its event loop is, how long the store takes.

Looking must cost nearly nothing: it is done every second, on every node. The results are read from any thread.
"""

import os
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from msgspec import Struct

from shiftwork.errors import StoreError
from shiftwork.runtime.machine import Usage, usage
from shiftwork.runtime.outage_log import OutageLog

T = TypeVar("T")

SPAN_SECONDS: Final = 5.0
"""Over how long the use of the processor is averaged."""


class Load(Struct, frozen=True, kw_only=True):
    """How hard a process works, as of the last look. None means that it is not known, or not yet."""

    cpu: float | None = None
    """Percent of one core, over the last few seconds: 150 is one core and a half."""
    memory: int = 0
    """Memory in use, in bytes."""
    lag: float | None = None
    """How many seconds its event loop is late: the recent maximum, halved with every look."""


class Gauge:
    """What one process uses of the machine."""

    def __init__(self, pid: int, monotonic: Callable[[], float], read: Callable[[int], Usage | None] = usage) -> None:
        self.cpu: float | None = None
        self.memory: int = 0
        self._pid = pid
        self._monotonic = monotonic
        self._read = read
        self._before: tuple[float, float] | None = None

    def look(self) -> int:
        """Look now; returns how many bytes of memory the process uses, 0 if it is gone."""
        seen = self._read(self._pid)
        if seen is None:
            self.cpu, self.memory, self._before = None, 0, None
            return 0
        self.memory = seen.memory
        now = self._monotonic()
        if self._before is None:
            self._before = now, seen.cpu_seconds
            return seen.memory
        since, spent = self._before
        if now - since >= SPAN_SECONDS or (self.cpu is None and now > since):
            self.cpu = round(100 * max(0.0, seen.cpu_seconds - spent) / (now - since), 1)
            self._before = now, seen.cpu_seconds
        return seen.memory


class Lateness:
    """How late a recurring thing is: the recent maximum, halved each time it comes."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._due: float | None = None
        self._worst: float | None = None

    def due_in(self, seconds: float) -> None:
        """Expect it after this many seconds, unless it is overdue already."""
        if self._due is None:
            self._due = self._monotonic() + seconds

    def came(self) -> None:
        """Note that it has come."""
        if self._due is not None:
            self._worst = max(self._monotonic() - self._due, (self._worst or 0.0) / 2, 0.0)
            self._due = None

    @property
    def overdue(self) -> float:
        """For how many seconds it has been due."""
        due = self._due  # another thread may reset it meanwhile
        return 0.0 if due is None else max(0.0, self._monotonic() - due)

    @property
    def seconds(self) -> float | None:
        """How late it is, or was recently; None before it came for the first time."""
        overdue = self.overdue
        if self._worst is None:
            return overdue or None
        return round(max(self._worst, overdue), 6)


class Stopwatch:
    """How long calls of the store take: the mean of those that returned since it was last read."""

    def __init__(self, monotonic: Callable[[], float], outages: OutageLog) -> None:
        self._monotonic = monotonic
        self._outages = outages
        self._seconds = 0.0
        self._calls = 0
        self._mean: float | None = None

    async def time(self, what: str, call: Awaitable[T]) -> T:
        """Wait for a call, and report how it went. One that fails is not counted.

        Two threads at once may lose one of their counts.
        """
        began = self._monotonic()
        try:
            result = await call
        except StoreError as error:
            self._outages.failed(what, error)
            raise
        self._seconds += self._monotonic() - began
        self._calls += 1
        if self._outages.faults:  # seldom: two calls less for each claim and each batch of outcomes
            self._outages.worked(what)
        return result

    def read(self) -> float | None:
        """Return the mean of the calls since the last read; if there were none, the mean as it was then."""
        seconds, calls = self._seconds, self._calls
        self._seconds, self._calls = 0.0, 0
        if calls:
            self._mean = round(seconds / calls, 6)
        return self._mean


class OwnGauge:
    """How hard this very process works, and how long the store makes it wait."""

    def __init__(
        self, monotonic: Callable[[], float], outages: OutageLog, read: Callable[[int], Usage | None] = usage
    ) -> None:
        self.stopwatch: Stopwatch = Stopwatch(monotonic, outages)
        """Measures the calls of the store."""
        self._gauge = Gauge(os.getpid(), monotonic, read)
        self._lateness = Lateness(monotonic)

    def look(self) -> None:
        """Look now, on the event loop. The loop is as late as this look is."""
        self._lateness.came()
        self._gauge.look()

    def due_in(self, seconds: float) -> None:
        """Expect the next look then."""
        self._lateness.due_in(seconds)

    def load(self) -> Load:
        """Return the result of the last look. Safe from any thread."""
        return Load(cpu=self._gauge.cpu, memory=self._gauge.memory, lag=self._lateness.seconds)
