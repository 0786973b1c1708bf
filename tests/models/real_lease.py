"""The renewal of leases as it really is, taking the steps of the model, on an event loop that runs when they say so."""

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from shiftwork.core.observing.beats import Beat, Orders
from shiftwork.errors import StoreUnavailableError
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.runtime.node.lease_renewer import LeaseRenewer, RenewSoon
from shiftwork.runtime.outage_log import OutageLog
from tests.models.lease import BEAT, LATE, NEVER, TICK, TTL, World
from tests.models.real_outbox import turn


class OneTimer(ManualClock):
    """A clock whose only timer goes off when the walk says so."""

    def __init__(self) -> None:
        super().__init__(0.0)
        self.timer: tuple[float, Callable[[], None]] | None = None

    def call_in(self, seconds: float, callback: Callable[[], None]) -> Any:
        self.timer = self.monotonic() + seconds, callback
        return SimpleNamespace(cancel=self._cancel)

    def _cancel(self) -> None:
        self.timer = None


class RealLease:
    """Takes the steps of the model one by one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._clock = clock = OneTimer()
        outages = OutageLog(clock.monotonic)
        self._pulse = LeaseRenewer(
            cast("Any", self),
            clock,
            ttl=TTL * TICK,
            stopwatch=Stopwatch(clock.monotonic, outages),
            outages=outages,
            holders=cast("Any", SimpleNamespace(**self._as_holders())),
            renew_soon=RenewSoon(),
        )
        self._runs = True
        self._next_at = BEAT * TICK
        self._poll: asyncio.Task[float | None] | None = None
        self._reply: asyncio.Future[Orders]

    def close(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
            turn(self._loop)
        self._loop.close()

    def _as_holders(self) -> dict[str, Callable[..., object]]:
        return {
            "beats": tuple,
            "renewed": lambda instances, until: setattr(self, "_runs", True),
            "step_down": lambda: setattr(self, "_runs", False),
            "orphaned": lambda: False,
        }

    def beat(self, _beats: Sequence[Beat], _ttl: float, _now: float) -> "asyncio.Future[Orders]":
        """Do what the store is asked to, when the walk says so."""
        self._reply = self._loop.create_future()
        return self._reply

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def a_tick(self) -> None:
        self._clock.jump(TICK)

    def node_beats(self) -> None:
        self._poll = self._loop.create_task(self._pulse.poll())
        self._go_on()

    def node_stops_what_runs(self) -> None:
        assert self._clock.timer is not None
        _, stop = self._clock.timer
        self._clock.timer = None
        stop()

    def store_renews_the_lease(self) -> None:
        """The node does not know of it yet."""

    def store_replies(self) -> None:
        self._reply.set_result(Orders([], []))
        self._go_on()

    def store_fails(self) -> None:
        self._reply.set_exception(StoreUnavailableError("the store is away, says the model"))
        self._go_on()

    def _go_on(self) -> None:
        turn(self._loop)
        if self._poll is not None and self._poll.done():
            next_at, self._poll = self._poll.result(), None
            assert next_at is not None
            self._next_at = next_at

    def seen(self) -> Any:
        now, timer = self._clock.monotonic(), self._clock.timer
        beats = self._poll is not None
        next_beat = None if beats else max(0, (self._next_at - now) / TICK)
        left = max(self._pulse._left() / TICK, -LATE - 1)
        return self._runs, left, next_beat, NEVER if timer is None else (timer[0] - now) / TICK


def expected(world: World) -> Any:
    """What can be seen where the model is in this state."""
    return world.runs, world.left, world.next_beat if world.asked is None else None, world.watch
