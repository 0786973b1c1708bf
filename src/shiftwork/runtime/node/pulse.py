"""The heartbeat: renew the leases of all instances here, and fetch their orders.

It beats in a thread with an event loop of its own, so a blocked user's loop does not cost a lease. When it cannot
renew, it says so before the lease can have ended: nobody may go on with jobs that somebody else may have.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from shiftwork.core.health import SILENT_SHARE
from shiftwork.core.model import Beat, Orders
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.store.protocol import Bell, Store

logger: Final = logging.getLogger("shiftwork")

BEATS_A_LEASE: Final = 3
REBIRTH_SECONDS: Final = 0.05
"""How soon to beat again when an instance is lost: it has a new name by then, under which it may not claim before."""
LATE_SECONDS: Final = 0.5
"""How long the first beat after a long silence may take: a process that was frozen may still have its jobs."""

AGAIN_SECONDS: Final = 1.0
"""How long to wait at most before the next try when a beat has failed,"""
QUIET_SECONDS: Final = 10.0
"""and how often to say so once there is nothing left to save."""


class Pulse:
    """Beats for some instances, three times a lease and whenever there are orders."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        ttl: float,
        stopwatch: Stopwatch,
        beats: Callable[[], Sequence[Beat]],
        renewed: Callable[[Sequence[str], float], None],
        obey: Callable[[Orders], None],
        step_down: Callable[[], None],
        orphaned: Callable[[], bool],
    ) -> None:
        self._store = store
        self._clock = clock
        self._ttl = ttl
        self._stopwatch = stopwatch
        self._beats = beats
        self._renewed = renewed
        self._obey = obey
        self._step_down = step_down
        self._orphaned = orphaned
        self.over = asyncio.Event()
        """Set when there is nothing left to beat for."""
        self._renewed_at = clock.monotonic()
        self._stepped_down = False
        self._said_at = 0.0
        self._bell: Bell | None = None

    def duty(self) -> Duty:
        """The duty that beats, for the running event loop."""
        self._bell = self._store.listen({"orders"})
        return Duty("pulse", self.poll, clock=self._clock, bell=self._bell, longest_sleep=self._ttl / BEATS_A_LEASE)

    def poke(self) -> None:
        """Beat soon: there is somebody new to beat for. Safe from any thread."""
        if self._bell is not None:
            self._bell.ring()

    @property
    def silence(self) -> float:
        """Seconds since the leases were last renewed. Safe from any thread."""
        return self._clock.monotonic() - self._renewed_at

    async def poll(self) -> float | None:
        """Beat once."""
        if self._orphaned():  # nobody runs those jobs any more: the lease must end
            self.over.set()
            return None
        # The store may fail, but it may also just not answer: the watch does not wait for it.
        watch = self._clock.call_in(max(self._left(), LATE_SECONDS), self._give_up)
        try:
            return await self.beat()
        except Exception as error:  # noqa: BLE001 - whatever it is, the lease is not renewed
            return self._failed(error)
        finally:
            watch.cancel()

    async def beat(self) -> float:
        """Renew the leases now, and obey; answers when to do it again. Raises what the store raises."""
        began = self._clock.monotonic()
        self._clock.follow(await self._store.server_time())
        now = self._clock.now()
        beats = self._beats()
        orders = await self._stopwatch.time(self._store.beat(beats, self._ttl, now))
        self._renewed_at = began
        self._stepped_down = False
        until = began + self._ttl * SILENT_SHARE
        self._renewed([beat.instance for beat in beats if beat.instance not in orders.lost], until)
        if orders.cancel or orders.lost:
            self._obey(orders)
        return now + (REBIRTH_SECONDS if orders.lost else self._ttl / BEATS_A_LEASE)

    def _failed(self, error: Exception) -> float:
        left, now = self._left(), self._clock.monotonic()
        if not self._stepped_down or now >= self._said_at + QUIET_SECONDS:
            self._said_at = now
            logger.warning(
                "cannot renew the lease: %s; %s",
                error,
                f"{left:.1f} s left until running jobs are stopped" if left > 0 else "running jobs are stopped",
                exc_info=None if isinstance(error, StoreError) else error,
            )
        if left <= 0:
            self._give_up()
            return self._clock.now() + AGAIN_SECONDS
        return self._clock.now() + min(max(left, 0.05), AGAIN_SECONDS)

    def _left(self) -> float:
        """Seconds until running jobs must be stopped, unless the lease is renewed."""
        return self._renewed_at + self._ttl * SILENT_SHARE - self._clock.monotonic()

    def _give_up(self) -> None:
        if not self._stepped_down:
            self._stepped_down = True
            self._step_down()


class PulseThread:
    """Runs a pulse in a thread of its own, and what else must go on while the program's event loop is held up."""

    def __init__(self, pulse: Pulse, beside: Callable[[], Sequence[Duty]]) -> None:
        self._pulse = pulse
        self._beside = beside
        """Makes the other duties, on the thread's own event loop."""
        self._thread = threading.Thread(target=self._main, name="shiftwork pulse", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ready = threading.Event()

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()
        self._ready.wait()

    async def stop(self) -> None:
        """End, without holding up the caller's loop."""
        if self._loop is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._pulse.over.set)
        await asyncio.to_thread(self._thread.join)

    def _main(self) -> None:
        asyncio.run(self._beat())

    async def _beat(self) -> None:
        self._loop = asyncio.get_running_loop()
        duties = [self._pulse.duty(), *self._beside()]
        for duty in duties:
            duty.start()
        self._ready.set()
        await self._pulse.over.wait()
        for duty in duties:
            await duty.stop()
