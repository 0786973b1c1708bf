"""The doctor: the store's real settings, its speed, whether its clock agrees with ours, and what is wrong."""

import platform
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from shiftwork.control.access.encryption import Encryption
from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.system.overview import NO_LIMIT, TRIED_PLACE, System
from shiftwork.core.health.health_values import Finding, Problem, in_order
from shiftwork.core.words import counted
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.store.abilities import try_room
from shiftwork.store.protocol import Store
from shiftwork.transfer.late import Left
from shiftwork.version import __version__
from shiftwork.views.diagnosis import Report

TRIPS: Final = 5
"""How often each call is timed: an odd number, so that one of them is the median."""
SLOW_WRITE_SECONDS: Final = 0.1
"""A write slower than this slows everything down: a job needs two of them in a row."""
REPORTED_SKEW_SECONDS: Final = 1.0
"""A difference of clocks above this is reported."""


class Doctor:
    """Examines a store and what runs on it."""

    def __init__(self, access: StoreAccess, clock: Clock, system: System, encryption: Encryption) -> None:
        self._access = access
        self._encryption = encryption
        self._clock = clock
        self._system = system

    async def check(self) -> dict[str, Finding]:
        """Return the store's settings as it reports them, its encryption, its latency, and whether its clock agrees
        with ours.
        """
        store = await self._access.open()
        return (
            await store.check() | {"encryption": await self._encryption.finding()} | await measure(store, self._clock)
        )

    async def examine(self) -> Report:
        """Return the store's settings and everything that is wrong, critical problems first."""
        found = await self.check()
        here = f"{__version__}, Python {platform.python_version()}, {platform.system()}"
        findings = {"shiftwork": here, **{about: finding.text for about, finding in found.items()}}
        problems = [
            Problem(about, "store", f"{about}: {finding.text}", finding.remedy, finding.severity, target="store")
            for about, finding in found.items()
            if finding.severity
        ]
        problems += (await self._system.overview()).health.problems
        left = await self._access.left_behind()
        if left is not None:
            problems = [_moved(left)]
        return Report(store=self._access.url, findings=findings, problems=in_order(problems))


def _moved(left: Left) -> Problem:
    """Return the only problem that matters for a store whose content has moved."""
    if not left.late:
        message, remedy = f"its content has moved to {left.to}", "use that store, and delete this one"
        return Problem("moved", "store", message, remedy, target="store")
    late = counted(left.late, "job")
    message = f"its content has moved to {left.to}; added here since, and not moved: {late}"
    remedy = "give every process the new URL, then run the same `shiftwork move` again: it carries them over"
    return Problem("moved", "store", message, remedy, "critical", target="store")


async def measure(store: Store, clock: Clock) -> dict[str, Finding]:
    """Return findings about the latency and the clock."""
    trip = await _median(store.server_time)
    return {"latency": await _latency(store, clock, trip), "clock": await _clock(store)}


async def _latency(store: Store, clock: Clock, trip: float) -> Finding:
    holder = f"{TRIED_PLACE} {time.time_ns()}"

    async def write() -> None:
        await store.hold(TRIED_PLACE, holder, NO_LIMIT, 60.0, clock.now())

    try:
        written = await _median(write)
        await store.drop(TRIED_PLACE, holder)
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
