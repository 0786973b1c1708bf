"""Renews the leases of all instances of a node, and fetches their orders.

It beats in a thread with an event loop of its own, so that a function that blocks the other loop does not cost a lease.
When it cannot renew the leases, it stops the running jobs before the leases can have ended: no job may go on that
another node may have.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from shiftwork.core.observing.beats import LEASE_STOP_SHARE, Beat, Orders
from shiftwork.errors import StoreError, StoreUnavailableError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.runtime.outage_log import BEATS, OutageLog
from shiftwork.store.protocol import Bell, Store

logger: Final = logging.getLogger("shiftwork")

BEATS_A_LEASE: Final = 3
REBIRTH_SECONDS: Final = 0.05
"""How soon to beat again when an instance has lost its lease: it has a new name by then, which needs a lease."""
LATE_BEAT_SECONDS: Final = 0.5
"""How long the first beat after a long silence may take: a process that was frozen may still have its jobs."""
BEAT_RETRY_SECONDS: Final = 1.0
"""How long to wait at most before the next try when a beat has failed."""
WRONG_SHARE: Final = 0.1
"""A clock that was wrong by more than this share of a lease cannot renew it: the machine has slept, for instance."""
BEAT_QUIET_SECONDS: Final = 10.0
"""How often to log that beats fail, once the running jobs are stopped."""


class LeaseHolders(Protocol):
    """The instances whose leases are renewed. Everything is called in the pulse's thread."""

    def beats(self) -> Sequence[Beat]:
        """Return a beat for each of them."""

    def renewed(self, instances: Sequence[str], until: float) -> None:
        """Note that the leases of these hold until then, by the monotonic clock, with some time to spare."""

    def obey(self, orders: Orders) -> None:
        """Carry out what the store asks for."""

    def step_down(self) -> None:
        """Stop all running jobs: the leases could not be renewed, and may end soon."""

    def orphaned(self) -> bool:
        """Return whether nothing runs the jobs: then the leases must end."""


class RenewSoon:
    """Asks the pulse to beat early. It is made before the `LeaseRenewer`, so that other parts can hold it."""

    def __init__(self) -> None:
        self._bell: Bell | None = None

    def reach(self, bell: Bell) -> None:
        """Ring this bell from now on."""
        self._bell = bell

    def __call__(self) -> None:
        """Beat soon: there is a new instance to beat for. Safe from any thread."""
        if self._bell is not None:
            self._bell.ring()


class LeaseRenewer:
    """Renews the leases of a node's instances, three times in their length and whenever there are orders."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        ttl: float,
        stopwatch: Stopwatch,
        outages: OutageLog,
        holders: LeaseHolders,
        renew_soon: RenewSoon,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ttl = ttl
        self._stopwatch = stopwatch
        self._outages = outages
        self._holders = holders
        self._renew_soon = renew_soon
        self.over: asyncio.Event = asyncio.Event()
        """Set when there is no instance left to beat for."""
        self._renewed_at = clock.monotonic()
        self._stepped_down = False
        self._failing = False
        """Whether the last beat failed."""
        self._logged_at = 0.0

    def duty(self) -> Duty:
        """Return the duty that beats, for the running event loop."""
        bell = self._store.listen({"orders"})
        self._renew_soon.reach(bell)
        longest = self._ttl / BEATS_A_LEASE
        return Duty("pulse", self.poll, clock=self._clock, bell=bell, longest_sleep=longest, outages=self._outages)

    @property
    def silence(self) -> float:
        """Seconds since the leases were last renewed. Safe from any thread."""
        return self._clock.monotonic() - self._renewed_at

    async def poll(self) -> float | None:
        """Beat once."""
        if self._holders.orphaned():
            self.over.set()
            return None
        # The store may fail, or just not answer: this timer does not wait for it.
        watch = self._clock.call_in(self._patience(), self._give_up)
        try:
            return await self.beat()
        except Exception as error:  # noqa: BLE001 - whatever it is, the lease is not renewed
            return self._failed(error)
        finally:
            watch.cancel()

    async def beat(self) -> float:
        """Renew the leases now, and obey; returns when to do it again. Raises what the store raises."""
        beats, began, orders, wrong = await self._ask()
        if wrong or self._until(began) <= self._clock.monotonic():
            # The leases were renewed by a clock that was wrong, or the reply took longer than they last.
            beats, began, orders, _ = await self._ask()
        until = self._until(began)
        if until <= self._clock.monotonic():
            raise StoreUnavailableError(f"renewing the leases took {self._clock.monotonic() - began:.0f} s")
        now, took = self._clock.now(), self._clock.monotonic() - began
        self._renewed_at = began
        self._stepped_down = self._failing = False
        self._holders.renewed([beat.instance for beat in beats if beat.instance not in orders.lost], until)
        if orders.cancel or orders.lost:
            self._holders.obey(orders)
        # Counted from the question: after a reply that took long, the leases do not last until a whole share later.
        return now + (REBIRTH_SECONDS if orders.lost else self._ttl / BEATS_A_LEASE - took)

    async def _ask(self) -> tuple[Sequence[Beat], float, Orders, bool]:
        """Beat, in one round trip, and follow the store's clock.

        Returns the beats, when that began, the reply, and whether our clock was wrong.
        """
        beats, asked = self._holders.beats(), self._clock.monotonic()
        ahead = self._clock.now() - asked
        orders = await self._stopwatch.time(BEATS, self._store.beat(beats, self._ttl, self._clock.now()))
        self._clock.follow(orders.server_time, asked, self._clock.monotonic())
        wrong = abs(self._clock.now() - self._clock.monotonic() - ahead) > self._ttl * WRONG_SHARE
        return beats, asked, orders, wrong

    def _failed(self, error: Exception) -> float:
        left = self._left()
        self._failing = True
        self._report(error)
        if left <= 0:
            self._give_up()
            return self._clock.now() + BEAT_RETRY_SECONDS
        return self._clock.now() + min(max(left, 0.05), BEAT_RETRY_SECONDS)

    def _report(self, error: Exception) -> None:
        now = self._clock.monotonic()
        if isinstance(error, StoreError):
            self._outages.failed(BEATS, error)
        elif not self._stepped_down or now >= self._logged_at + BEAT_QUIET_SECONDS:
            self._logged_at = now
            logger.error("cannot renew the leases: %s; trying again", error, exc_info=error)

    def _patience(self) -> float:
        """Return for how long a beat that begins now may take before running jobs are stopped."""
        left = self._left()
        return LATE_BEAT_SECONDS if left < -LATE_BEAT_SECONDS else max(left, 0.0)

    def _left(self) -> float:
        """Return the seconds until running jobs must be stopped, unless the lease is renewed."""
        return self._until(self._renewed_at) - self._clock.monotonic()

    def _until(self, renewed_at: float) -> float:
        """Return until when running jobs may go on after a renewal that began then."""
        return renewed_at + self._ttl * LEASE_STOP_SHARE

    def _give_up(self) -> None:
        if not self._stepped_down:
            self._stepped_down = True
            if not self._failing:  # the store has not failed, but not replied either
                self._outages.failed(BEATS, StoreUnavailableError(f"no reply for {self.silence:.0f} s"))
            self._holders.step_down()


class LeaseRenewerThread:
    """Runs a `LeaseRenewer` in its own thread, with other duties that must go on while the main loop is blocked."""

    def __init__(self, pulse: LeaseRenewer, beside: Callable[[], Sequence[Duty]]) -> None:
        self._pulse = pulse
        self._beside = beside
        """Makes the other duties, on the thread's own event loop."""
        self._thread = threading.Thread(target=self._main, name="shiftwork pulse", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()
        self._home = asyncio.get_running_loop()
        self._gone = asyncio.Event()

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()
        self._ready.wait()

    async def stop(self) -> None:
        """End, without blocking the caller's loop."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._pulse.over.set)
        await self._gone.wait()  # not in a thread of the loop's own, for which the loop would wait when it ends
        self._thread.join()

    def _main(self) -> None:
        try:
            asyncio.run(self._beat())
        finally:
            with suppress(RuntimeError):  # that loop has ended
                self._home.call_soon_threadsafe(self._gone.set)

    async def _beat(self) -> None:
        self._loop = asyncio.get_running_loop()
        duties = [self._pulse.duty(), *self._beside()]
        for duty in duties:
            duty.start()
        self._ready.set()
        await self._pulse.over.wait()
        for duty in duties:
            await duty.stop()
