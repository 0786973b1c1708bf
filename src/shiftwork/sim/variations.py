"""Other options for a pool, to be tried by `sim.suggest`: one option at a time, and bounds by the clock."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from math import ceil, inf, sqrt
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec.structs import asdict

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.options.configs import pool_config
from shiftwork.errors import ConfigurationError
from shiftwork.sim.peak import arrivals_between
from shiftwork.sim.scenario import Scenario, Traffic

HOUR: Final = 3600.0
HOURS: Final = 24
MOST_ENTRIES: Final = 6
"""How many times of day the suggested bounds by the clock name at most."""
_SPARE: Final = (0.0, 0.5, 1.0, 1.5)
"""How many times the square root of an hour's busy slots the clock allows on top of them."""

Variation = Callable[[Scenario, Mapping[str, Traffic], PoolConfig], Iterator[PoolConfig]]


def fewer_slots(_: Scenario, __: Mapping[str, Traffic], pool: PoolConfig) -> Iterator[PoolConfig]:
    """Vary the maximum, unless the clock has its own."""
    if pool.bounds:
        return
    most = pool.max_workers
    yield from _each(
        pool, "max_workers", sorted({most - 1, most - 2, most - 3, ceil(most * 0.75), ceil(most / 2)})[::-1]
    )


def lower_minimum(_: Scenario, __: Mapping[str, Traffic], pool: PoolConfig) -> Iterator[PoolConfig]:
    """Vary the minimum, unless the clock has its own."""
    if pool.bounds:
        return
    yield from _each(pool, "min_workers", sorted({0, 1, pool.min_workers // 2}))


def patience(_: Scenario, __: Mapping[str, Traffic], pool: PoolConfig) -> Iterator[PoolConfig]:
    """Vary how long the pool keeps slots that it does not need."""
    yield from _each(pool, "scale_down_after_seconds", [15.0, 30.0])


def growth(_: Scenario, __: Mapping[str, Traffic], pool: PoolConfig) -> Iterator[PoolConfig]:
    """Vary from how many queued jobs on the pool grows."""
    yield from _each(pool, "scale_up_threshold", [5, 10, 40])


def shrinking(_: Scenario, __: Mapping[str, Traffic], pool: PoolConfig) -> Iterator[PoolConfig]:
    """Vary below how many queued jobs the pool shrinks."""
    yield from _each(pool, "scale_down_threshold", [1, 4, 8])


def by_the_clock(scenario: Scenario, workers: Mapping[str, Traffic], pool: PoolConfig) -> Iterator[PoolConfig]:
    """Vary the bounds by the clock: at each time of day little more than what keeps up with its arrivals."""
    if scenario.length < HOURS * HOUR:
        return
    busy = _busy_by_hour(scenario, workers)
    for low in sorted({0, min(1, pool.min_workers)}):
        for spare in _SPARE:
            needed = [max(1, ceil(n + spare * sqrt(n))) for n in busy]
            bounds = {f"0 {hour} * * *": (low, high) for hour, high in _parted(tuple(needed))}
            yield from _each(pool, "bounds", [bounds], timezone=scenario.timezone)


VARIATIONS: Final[Sequence[Variation]] = (by_the_clock, fewer_slots, lower_minimum, patience, growth, shrinking)


def _each(pool: PoolConfig, option: str, values: Sequence[Any], **others: Any) -> Iterator[PoolConfig]:
    """Yield the pool with each value of an option that is valid and new."""
    defaults = asdict(PoolConfig(name=pool.name))
    written = {name: value for name, value in asdict(pool).items() if value != defaults[name]}
    for value in values:
        options = {**written, option: value, **others}
        try:
            made = pool_config(pool.name, options)
        except ConfigurationError:
            continue
        if made != pool:
            yield made


def _busy_by_hour(scenario: Scenario, workers: Mapping[str, Traffic]) -> list[float]:
    """Return how many slots each hour of the clock keeps busy; of several days, on the busiest one."""
    zone = ZoneInfo(scenario.timezone)
    busy = [0.0] * HOURS
    for place in range(int(scenario.length / HOUR)):
        begin = place * HOUR
        hour = datetime.fromtimestamp(scenario.start + begin, zone).hour
        work = sum(
            arrivals_between(one, begin, begin + HOUR, scenario.length) * one.run.mean_seconds()
            for one in workers.values()
        )
        busy[hour] = max(busy[hour], work / HOUR)
    return busy


def _parted(needed: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return at which hours the bounds change, and to what: as few slots too many as `MOST_ENTRIES` allow."""

    @cache
    def best(begin: int, entries: int) -> tuple[float, tuple[tuple[int, int], ...]]:
        if begin == HOURS:
            return 0.0, ()
        if not entries:
            return inf, ()
        found: tuple[float, tuple[tuple[int, int], ...]] = (inf, ())
        for end in range(begin + 1, HOURS + 1):
            high = max(needed[begin:end])
            surplus = sum(high - n for n in needed[begin:end])
            rest, after = best(end, entries - 1)
            found = min(found, (surplus + rest, ((begin, high), *after)))
        return found

    entries = best(0, MOST_ENTRIES)[1]
    return [one for place, one in enumerate(entries) if not place or one[1] != entries[place - 1][1]]
