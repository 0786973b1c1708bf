"""How many slots may a pool have now: by registration, by the clock, or by hand?

`min_workers` and `max_workers` hold as registered, unless the pool has bounds by the clock: then the entry whose cron
expression fired last holds, until another one fires. What a person sets at run time wins over both, until it is reset.
"""

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from math import floor
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.schedules.cron import last_fired
from shiftwork.core.schedules.timing import zone_named
from shiftwork.sentences import sentence

LOOK_BACK_SECONDS: Final = 32 * 86_400.0
"""How long ago an entry may have fired in order to hold: long enough for one that fires every month."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS_NAMED: Final = 6
"""How many days ago a day is still named by its weekday alone."""


class Bounds(Struct, frozen=True, kw_only=True):
    """The fewest and the most slots that a pool may have, and where these numbers come from."""

    low: int
    high: int
    by: Literal["registration", "clock", "hand"] = "registration"
    since: str | None = None
    """Since when the clock's bounds hold, in words: "10:00 Europe/Vienna"."""

    @property
    def why(self) -> str:
        """Return where they come from, in words."""
        if self.by == "clock":
            return sentence("by the clock since {when}", when=self.since)
        return sentence("set by hand") if self.by == "hand" else sentence("as registered")


def bounds_at(pool: PoolConfig, change: PoolDoc | None, now: float) -> Bounds:
    """Return the bounds that hold now.

    If a person has set one bound only and the other one, by registration or by the clock, does not fit it, that other
    one gives way.
    """
    found = _by_clock(pool, now) or Bounds(low=pool.min_workers, high=pool.max_workers)
    if change is None or (change.min_workers is None and change.max_workers is None):
        return found
    low = found.low if change.min_workers is None else change.min_workers
    high = found.high if change.max_workers is None else change.max_workers
    if low > high:
        low, high = (high, high) if change.min_workers is None else (low, low)
    return Bounds(low=low, high=high, by="hand")


def bounded(pool: PoolConfig, change: PoolDoc | None, now: float) -> PoolConfig:
    """Return the pool with the bounds that hold now as its `min_workers` and `max_workers`."""
    found = bounds_at(pool, change, now)
    return replace(pool, min_workers=found.low, max_workers=found.high)


def _by_clock(pool: PoolConfig, now: float) -> Bounds | None:
    """Return the bounds of the entry that fired last; of several that fired at the same time, those of the last one."""
    held: tuple[float, tuple[int, int]] | None = None
    for cron, pair in pool.bounds.items():
        at = last_fired(cron, pool.timezone, now)
        if at is not None and now - at <= LOOK_BACK_SECONDS and (held is None or at >= held[0]):
            held = at, pair
    if held is None:
        return None
    at, (low, high) = held
    return Bounds(low=low, high=high, by="clock", since=f"{_shown(at, floor(now / 60), pool.timezone)} {pool.timezone}")


@lru_cache(maxsize=1024)
def _shown(at: float, minute: int, timezone: str) -> str:
    """Return a time on the zone's clock, with its day unless that is today. `minute` is the present one."""
    then, today = ((_EPOCH + timedelta(seconds=one)).astimezone(zone_named(timezone)) for one in (at, minute * 60))
    days = (today.date() - then.date()).days
    if days == 0:
        return f"{then:%H:%M}"
    return f"{then:%A %H:%M}" if days <= _DAYS_NAMED else f"{then:%B} {then.day} {then:%H:%M}"
