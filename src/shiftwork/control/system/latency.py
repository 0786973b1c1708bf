"""How long the store takes, and whether its clock agrees with ours: measured, for `shiftwork doctor`."""

import time
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Any, Final

from shiftwork.core.health.health_values import Finding
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.store.abilities import try_room
from shiftwork.store.protocol import Store

TRIPS: Final = 5
"""How often each call is timed: an odd number, so that one of them is the median."""
SLOW_WRITE_SECONDS: Final = 0.1
"""A write slower than this slows everything down: a job needs two of them in a row."""
REPORTED_SKEW_SECONDS: Final = 1.0
"""A difference of clocks above this is reported."""
PLACE: Final = "doctor"
NO_LIMIT: Final = 1_000_000
"""A limit on holders that is never reached."""


async def try_write(store: Store, now: float) -> None:
    """Take and return a place that has no limit, and find out whether there is room for more. Raises what fails."""
    holder = f"{PLACE} {token_hex(4)}"
    await store.hold(PLACE, holder, NO_LIMIT, 60.0, now)
    await store.drop(PLACE, holder)
    await try_room(store)


async def measure(store: Store, clock: Clock) -> dict[str, Finding]:
    """Return findings about the latency and the clock."""
    trip = await _median(store.server_time)
    return {"latency": await _latency(store, clock, trip), "clock": await _clock(store)}


async def _latency(store: Store, clock: Clock, trip: float) -> Finding:
    holder = f"{PLACE} {time.time_ns()}"

    async def write() -> None:
        await store.hold(PLACE, holder, NO_LIMIT, 60.0, clock.now())

    try:
        written = await _median(write)
        await store.drop(PLACE, holder)
        await try_room(store)
    except StoreError as error:
        return Finding(
            f"{_ms(trip)} per round trip; A WRITE FAILS: {error}", "fix the cause that the message names", "critical"
        )
    text = f"{_ms(trip)} per round trip, {_ms(written)} per write (median of {TRIPS})"
    if written <= SLOW_WRITE_SECONDS:
        return Finding(text)
    return Finding(f"slow: {text}", "check the store's disk, its load, and the network in between", "warning")


async def _clock(store: Store) -> Finding:
    began = time.time()
    theirs = await store.server_time()
    ahead = (began + time.time()) / 2 - theirs
    if abs(ahead) <= REPORTED_SKEW_SECONDS:
        return Finding(f"agrees with the store's, within {_ms(abs(ahead))}")
    text = f"this machine's is {abs(ahead):.1f} s {'ahead of' if ahead > 0 else 'behind'} the store's"
    return Finding(text, "let NTP set the clocks of all machines", "warning")


async def _median(call: Callable[[], Awaitable[Any]]) -> float:
    taken: list[float] = []
    for _ in range(TRIPS):
        began = time.perf_counter()
        await call()
        taken.append(time.perf_counter() - began)
    return sorted(taken)[TRIPS // 2]


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms" if seconds < 1 else f"{seconds:.1f} s"
