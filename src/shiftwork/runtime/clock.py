"""The time by which everything runs: the store's clock, or one that a test moves by hand.

All waiting in the runtime is `clock.call_at` plus a bell, so a test that moves the clock moves the whole system.
"""

import asyncio
import time
from collections.abc import Callable, Sized
from heapq import heappop, heappush
from itertools import count
from typing import Final, Protocol

_IDLE_ITERATIONS: Final = 2


class Timer(Protocol):
    """A callback that will be called, and can be cancelled."""

    def cancel(self) -> None:
        """Cancel the callback; harmless once it was called."""


class Clock(Protocol):
    """The time, and callbacks at a later time."""

    def now(self) -> float:
        """Return epoch seconds, by the store's clock. Safe from any thread."""

    def follow(self, server_time: float, asked: float, heard: float) -> None:
        """Set the clock: by the store's clock it was `server_time` between these two moments, which are `monotonic`."""

    def monotonic(self) -> float:
        """Return seconds that only grow, even when the clock is set. They measure how long, not when."""

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back on this event loop at this time, as far as the clock is right now."""

    def call_in(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back on this event loop after this many seconds, even when the clock is set meanwhile."""


class SystemClock:
    """Monotonic time, set by the store's clock whenever that is read: in between it does not jump.

    The store has read its clock between the moment at which it was asked and the one at which its reply was heard. As
    long as ours agrees with that, it stays: where a reply is late, the guess would be worse than what we have.
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        return time.monotonic() + self._offset

    def follow(self, server_time: float, asked: float, heard: float) -> None:
        if not server_time - heard <= self._offset <= server_time - asked:
            self._offset = server_time - (asked + heard) / 2

    def monotonic(self) -> float:
        return time.monotonic()

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        return self.call_in(when - self.now(), callback)

    def call_in(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return asyncio.get_running_loop().call_later(max(0.0, seconds), callback)


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self._passed = now
        self._set_by = 0.0
        self._timers: list[tuple[float, int, _ManualTimer]] = []
        self._order = count()

    def now(self) -> float:
        """Return the time in epoch seconds."""
        return self._passed + self._set_by

    def follow(self, server_time: float, asked: float, heard: float) -> None:
        """Do nothing: only the test moves this clock."""

    def monotonic(self) -> float:
        """Return the seconds that the test has let pass."""
        return self._passed

    def call_in(self, seconds: float, callback: Callable[[], None]) -> Timer:
        """Call back when the test has let this many seconds pass."""
        return self._call(self._passed + seconds, callback)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Call back when the test has moved the clock to this time."""
        return self._call(when - self._set_by, callback)

    def _call(self, passed: float, callback: Callable[[], None]) -> Timer:
        timer = _ManualTimer(callback)
        heappush(self._timers, (passed, next(self._order), timer))
        return timer

    def jump(self, seconds: float) -> None:
        """Let this much time pass unnoticed, as for a machine that sleeps. Timers that are due fire with `advance`."""
        self._passed += seconds

    def step(self, seconds: float) -> None:
        """Set the clock ahead, or back, although no time passes."""
        self._set_by += seconds

    async def advance(self, seconds: float) -> None:
        """Let this much time pass, stopping at each timer on the way so that its callback sees the right time."""
        end = self._passed + seconds
        await until_idle()
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heappop(self._timers)
            if timer.cancelled:
                continue
            self._passed = max(self._passed, when)
            timer.callback()
            await until_idle()
        self._passed = end
        await until_idle()


class _ManualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


async def until_idle(iterations: int = 40) -> None:
    """Let everything that can run on this loop run, as far as it depends on nothing but the loop.

    It ends early when the loop has nothing else to run, in two iterations one after the other: in between, it has
    looked at its sockets. A loop that does not show what it will run next gets all of the iterations.
    """
    ready: Sized | None = getattr(asyncio.get_running_loop(), "_ready", None)
    idle = 0
    for _ in range(iterations):
        await asyncio.sleep(0)
        idle = 0 if ready is None or len(ready) else idle + 1
        if idle == _IDLE_ITERATIONS:
            return
