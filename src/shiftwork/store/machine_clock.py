"""Reads the clocks of this machine, and keeps the time of a store that only one process uses."""

import logging
import secrets
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

from shiftwork.core.steady_time import TOLERANCE_SECONDS, Anchor, Reading, Verdict, Vote, steady_time

logger: Final = logging.getLogger("shiftwork")

ReadClocks = Callable[[], Reading]


def read_clocks() -> Reading:
    """Read the wall clock, and the seconds since this machine was started."""
    return Reading(time.time(), _ticks(), boot())


def _ticks() -> float:
    if hasattr(time, "CLOCK_BOOTTIME"):  # unlike the monotonic clock, it goes on while the machine sleeps
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@cache
def boot() -> str:
    """Return a name for this start of this machine; one for this process alone where the system has none."""
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{started} {Path('/proc/self/ns/time').readlink()}"  # a container may count its ticks differently
    except OSError:
        return secrets.token_hex(16)


class StepLog:
    """Logs a step of the wall clock when it is noticed, and again when it is followed or gone."""

    def __init__(self) -> None:
        self._by: float | None = None

    def note(self, verdict: Verdict, now: Reading) -> None:
        """Log what is new."""
        by = now.wall - verdict.time if verdict.anchor is None else 0.0
        stepped = verdict.vote is not None and abs(by) > TOLERANCE_SECONDS
        if stepped and (self._by is None or abs(self._by - by) > TOLERANCE_SECONDS):
            logger.warning(
                "the clock of this machine was set %.0f s %s; the store follows it if it stays so for 30 s, in every "
                "process that uses the store",
                abs(by),
                "ahead" if by > 0 else "back",
            )
            self._by = by
        elif not stepped and self._by is not None:
            how = (
                "agrees with the time of the store again" if verdict.anchor is None else "is followed by the store now"
            )
            logger.warning("the clock of this machine %s", how)
            self._by = None


class SteadyClock:
    """The time of a store that only this process uses."""

    def __init__(self, read: ReadClocks = read_clocks) -> None:
        self._read = read
        self._anchor: Anchor | None = None
        self._votes: dict[str, Vote] = {}
        self._log = StepLog()

    def time(self) -> float:
        """Return the time of the store."""
        now = self._read()
        verdict = steady_time(self._anchor, now, self._votes, "me")
        self._anchor = verdict.anchor or self._anchor
        self._votes = {} if verdict.vote is None else {"me": verdict.vote}
        self._log.note(verdict, now)
        return verdict.time
