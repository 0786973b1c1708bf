"""What would other bounds have done yesterday? The last day of one pool, simulated again.

The day is known by the minute: how many attempts became due, how many slots there were, how many jobs waited. The
simulation gets these arrivals and the histogram of the pool's run times. Workers with a limit of their own get the
share of each minute's arrivals that they had in its hour; the others are simulated as one. The machines are those of
now, and the pool has them to itself. Like `shiftwork plan`, it does not look ahead.
"""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.pool_history import DAY, HOUR, MINUTE, EndedTotals, Moment, Point, last_day, point_of
from shiftwork.core.observing.run_histograms import since, wait_quantile
from shiftwork.core.scaling.system_record import SystemRecord
from shiftwork.core.words import counted
from shiftwork.errors import HistoryError
from shiftwork.sentences import sentence
from shiftwork.sim.recorded import (
    LEAST_MINUTES,
    guessed_node,
    limited,
    mean_seconds,
    node_groups,
    run_counts,
    run_time,
    sums_of,
)
from shiftwork.sim.scenario import Configuration, RunTime, Scenario, Traffic
from shiftwork.sim.scenario_limits import MOST_SIMULATED_RUNS, refuse_size
from shiftwork.sim.simulate import simulate
from shiftwork.sim.simulated import PoolCourse, Simulated

MOST_DAY_JOBS: Final = 200_000
"""How many jobs of a day are simulated at most: about ten seconds."""
TRIED: Final = "tried"
"""The name of the configuration that is simulated, and of its only worker."""


class PoolDay(Struct, frozen=True, kw_only=True):
    """The last day of one pool, as it was."""

    pool: PoolConfig
    start: float
    minutes: list[Point | None]
    """One for each minute; None where nothing is known."""
    run: RunTime
    wait_p95: float | None
    wait_p99: float | None
    slot_hours: float

    @property
    def arrivals(self) -> list[int]:
        """How many attempts became due in each minute; 0 where it is not known."""
        return [0 if one is None else max(0, one.arrived or 0) for one in self.minutes]

    @property
    def unknown(self) -> int:
        """Of how many minutes nothing is known."""
        return sum(one is None or one.arrived is None for one in self.minutes)


def pool_day(record: SystemRecord, name: str) -> PoolDay:
    """Return the last day of a pool. Raises `HistoryError` if it is not known, or if too much has happened."""
    moments = last_day(record.hours, record.now)
    if len(moments) < LEAST_MINUTES:
        message = sentence(
            "no day of history yet: {time} of {n} at least", time=counted(len(moments), "minute"), n=LEAST_MINUTES
        )
        raise HistoryError(message)
    end = moments[-1].at
    start = max(end - DAY, moments[0].at - MINUTE)
    minutes = _by_minute(name, moments, start, end)
    run_seconds = sum(one.run_seconds or 0.0 for one in minutes if one)
    ended = sum((one.completed or 0) + (one.failed or 0) for one in minutes if one)
    p95, p99 = _waits(record, name)
    day = PoolDay(
        pool=record.pool(name),
        start=start,
        minutes=minutes,
        run=run_time(run_seconds / ended if ended else None, run_counts(record.hours).get(name)),
        wait_p95=p95,
        wait_p99=p99,
        slot_hours=sum(one.slots for one in minutes if one) * MINUTE / HOUR,
    )
    _refuse_size(sum(day.arrivals), name)
    return day


def what_if(day: PoolDay, pool: PoolConfig, record: SystemRecord) -> tuple[Simulated, PoolCourse]:
    """Return how the day would have gone with the pool configured like this."""
    scenario = _scenario(day, pool, record)
    refuse_size(scenario)
    simulated = simulate(scenario, TRIED)
    return simulated, simulated.pools[pool.name]


def tried(day: PoolDay, *, low: int, high: int, scale_up_threshold: int) -> PoolConfig:
    """Return the pool with other bounds, which hold all day."""
    return replace(day.pool, min_workers=low, max_workers=high, scale_up_threshold=scale_up_threshold, bounds={})


def _scenario(day: PoolDay, pool: PoolConfig, record: SystemRecord) -> Scenario:
    machines = [one for one in record.machines if pool.name in one.pools]
    return Scenario(
        name=TRIED,
        start=day.start,
        length=len(day.minutes) * MINUTE,
        nodes=node_groups(machines) if machines else {"node": guessed_node([pool])},
        configurations={
            TRIED: Configuration(pools={pool.name: pool}, workers=_workers(day, pool.name, record)),
        },
    )


def _workers(day: PoolDay, pool: str, record: SystemRecord) -> dict[str, Traffic]:
    """Return the jobs of the workers that have a limit, and those of all others as `TRIED`."""
    sums = sums_of(record.hours)
    mine = {name: one for name, one in record.workers.items() if one.pool == pool and name in sums}
    limits = {name: limited(one) for name, one in mine.items()}
    shares = {name: _shares(day, name, mine, record) for name, limit in limits.items() if limit}
    found = {
        f"{TRIED} {name}": Traffic(
            pool=pool,
            arrivals=tuple(n * part for n, part in zip(day.arrivals, share, strict=True)),
            run=run_time(mean_seconds([sums[name]]), run_counts(record.hours).get(pool)),
            **limits[name],
        )
        for name, share in shares.items()
    }
    left = [1.0 - sum(parts) for parts in zip(*shares.values(), strict=True)] or [1.0] * len(day.arrivals)
    others = [sums[name] for name in mine if name not in shares]
    run = run_time(mean_seconds(others), run_counts(record.hours).get(pool)) if shares and others else day.run
    arrivals = tuple(n * max(0.0, part) for n, part in zip(day.arrivals, left, strict=True))
    return {TRIED: Traffic(pool=pool, arrivals=arrivals, run=run)} | found


def _shares(day: PoolDay, worker: str, mine: Collection[str], record: SystemRecord) -> list[float]:
    """Return which share of the pool's arrivals of each minute is this worker's: that of the hour."""
    by_hour = {}
    for hour in record.hours:
        arrived = {name: max(0, one.arrived) for name, one in hour.workers.items() if name in mine}
        by_hour[hour.number] = arrived.get(worker, 0) / (sum(arrived.values()) or 1)
    return [by_hour.get(int((day.start + place * MINUTE) // HOUR), 0.0) for place in range(len(day.minutes))]


def _by_minute(pool: str, moments: Sequence[Moment], start: float, end: float) -> list[Point | None]:
    """Return one point for each minute. Moments are a minute apart, more or less: two may fall into the same one."""
    minutes: list[Point | None] = [None] * max(1, round((end - start) / MINUTE))
    for one in moments:
        place = min(len(minutes) - 1, max(0, int((one.at - start - 0.5) // MINUTE)))
        point, other = point_of(pool, one), minutes[place]
        minutes[place] = point if point is None or other is None else _together(other, point)
    return minutes


def _together(one: Point, later: Point) -> Point:
    """Return two points that fall into one minute as one."""
    return replace(
        later,
        arrived=(one.arrived or 0) + (later.arrived or 0),
        completed=(one.completed or 0) + (later.completed or 0),
        failed=(one.failed or 0) + (later.failed or 0),
        run_seconds=(one.run_seconds or 0.0) + (later.run_seconds or 0.0),
    )


def _waits(record: SystemRecord, pool: str) -> tuple[float | None, float | None]:
    """Return the 95th and 99th percentile of the waits of the last day, from the counts at the ends of two hours."""
    hours = [hour for hour in record.hours if hour.moments and hour.moments[-1].at >= record.now - DAY - HOUR]
    then, now = (hour.totals.get(pool, EndedTotals()) for hour in (hours[0], hours[-1]))
    new, total = since(now.marks, then.marks), now.wait_seconds - then.wait_seconds
    return wait_quantile(0.95, new, total), wait_quantile(0.99, new, total)


def _refuse_size(jobs: int, pool: str) -> None:
    if not jobs:
        message = sentence("no job of the pool {pool} came in the last day", pool=pool)
        raise HistoryError(message)
    if jobs > MOST_DAY_JOBS:
        message = sentence(
            "the pool {pool} had {n} jobs in the last day, and this page simulates at most {n2}; `shiftwork "
            "record` and `shiftwork plan` simulate up to {n3}",
            pool=pool,
            n=f"{jobs:,}",
            n2=f"{MOST_DAY_JOBS:,}",
            n3=f"{MOST_SIMULATED_RUNS:,}",
        )
        raise HistoryError(message)
