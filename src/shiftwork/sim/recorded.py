"""The last day of a running system as a scenario, from the history that its leader keeps.

What each worker did is known by the hour (`core.observing.worker_hours`), how long runs took as a histogram for each
pool. The jobs of a pool's only worker, or of workers whose jobs take about as long as each other's, get the shape of
that histogram and the worker's own mean. Where means are far apart, the histogram is a mixture that fits none of them:
then each worker gets its own mean and an assumed spread.

What is left out or estimated is said in `Recorded.notes`, in words for the file.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Final, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.observing.beats import NodeBeat
from shiftwork.core.observing.pool_history import HOUR, MINUTE, Hour
from shiftwork.core.observing.worker_hours import MOST_WORKERS, WorkerHour
from shiftwork.core.scaling.system_record import SystemRecord
from shiftwork.core.words import counted
from shiftwork.errors import HistoryError
from shiftwork.sim.reading import AS_WRITTEN
from shiftwork.sim.scenario import BUCKETS, Configuration, NodeGroup, RunTime, Scenario, Traffic

DAY_HOURS: Final = 24
LEAST_MINUTES: Final = 60
"""Less history than this is not a scenario."""
WHOLE_MINUTES: Final = 58
"""From this many known minutes on, an hour counts as it is: moments are a minute apart, more or less."""
USABLE_MINUTES: Final = 10
"""An hour with fewer known minutes is left empty. One with more is estimated from them."""
ALIKE_FACTOR: Final = 3.0
"""By which factor the mean run times of a pool's workers may differ, for its histogram to have the shape of each."""
ASSUMED_P95: Final = 2.0
"""The assumed 95th percentile of a run time, in multiples of its mean."""
LEAST_RUN_SECONDS: Final = 0.001
MOST_FAILING: Final = 0.99
LISTED: Final = 5
"""How many names a note lists."""
GUESSED: Final = NodeGroup(cores=8.0, memory=16 * 2**30)
"""The machine of a system that has no running node."""
WORTH_SAYING: Final = 0.01
"""A share of a pool's jobs below this may be left out without a note."""


class Limits(TypedDict, total=False):
    """The limits of a worker, as `Traffic` has them."""

    rate_limit: str
    max_running: int


class Recorded(Struct, frozen=True, kw_only=True):
    """A recorded scenario, and what it does not say."""

    scenario: Scenario
    notes: list[str]
    """What was left out or estimated, and why: one sentence each."""


def recorded(record: SystemRecord) -> Recorded:
    """Return the last day as a scenario. Raises `HistoryError` if there is too little of it."""
    hours = _last_day(record)
    counts, sums = run_counts(hours), sums_of(hours)
    workers = {name: one for name, one in sums.items() if name in record.workers and _jobs(one) > 0}
    if not workers:
        message = f"no job has come in {counted(len(hours), 'recorded hour')}; record again when there was work"
        raise HistoryError(message)
    pools = {record.workers[name].pool for name in workers}
    mixed = {pool for pool in pools if _is_mixed(pool, workers, record)}
    traffic = {
        name: _traffic(record.workers[name], done, hours, counts, mixed=mixed) for name, done in sorted(workers.items())
    }
    nodes, about_nodes = _nodes(record.machines, [record.pool(pool) for pool in pools])
    zones = {record.pool(pool).timezone for pool in pools} - {"UTC"}
    scenario = Scenario(
        name="recorded",
        start=hours[0].number * float(HOUR),
        timezone=zones.pop() if len(zones) == 1 else "UTC",
        length=len(hours) * float(HOUR),
        nodes=nodes,
        configurations={
            AS_WRITTEN: Configuration(pools={pool: record.pool(pool) for pool in sorted(pools)}, workers=traffic)
        },
    )
    notes = [*_about_hours(hours), *about_nodes, *_about_mixed(mixed), *_about_left_out(record, sums, workers, hours)]
    if held := unsimulated(record.workers[name] for name in workers):
        notes.append(
            f"Concurrency keys and breakers hold back nothing in a simulation; these have some: {_listed(held)}."
        )
    return Recorded(scenario=scenario, notes=notes)


# ── which hours ──────────────────────────────────────────────────────────────────────────────────────────────────────


def known_minutes(hour: Hour) -> int:
    """Return how many minutes of an hour are known. After a gap, it is not known what happened in it."""
    return sum(all(point.arrived is not None for point in one.pools.values()) for one in hour.moments)


def _last_day(record: SystemRecord) -> list[Hour]:
    """Return the last 24 whole hours; or all there are, and the present one if that is half over."""
    number = int(record.now // HOUR)
    found = {hour.number: hour for hour in record.hours if number - DAY_HOURS <= hour.number <= number}
    known = sum(known_minutes(hour) for hour in found.values())
    if known < LEAST_MINUTES:
        raise HistoryError(_too_short(known))
    first = min(found)
    whole = first == number - DAY_HOURS or known_minutes(found.get(number, Hour(number))) < LEAST_MINUTES / 2
    return [found.get(one, Hour(one)) for one in range(first, number + (not whole))]


def _too_short(known: int) -> str:
    if not known:
        return (
            "there is no history yet: the leader writes it once a minute while a node runs. "
            "Start one with `shiftwork run`, and record after an hour or more"
        )
    left = counted(LEAST_MINUTES - known, "minute")
    return f"the history has {counted(known, 'minute')}, and a record needs an hour: record again in {left} or later"


def _factor(hour: Hour) -> float:
    """Return by which factor the numbers of an hour are multiplied, because a part of it is not known."""
    known = known_minutes(hour)
    if known < USABLE_MINUTES:
        return 0.0
    return 1.0 if known >= WHOLE_MINUTES else HOUR / MINUTE / known


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def sums_of(hours: Iterable[Hour]) -> dict[str, WorkerHour]:
    sums: dict[str, WorkerHour] = {}
    for hour in hours:
        for name, done in hour.workers.items():
            sums[name] = sums.get(name, WorkerHour()).plus(done)
    return sums


def run_counts(hours: Iterable[Hour]) -> dict[str, tuple[int, ...]]:
    """Return how long runs took in all these hours, by pool."""
    found: dict[str, tuple[int, ...]] = {}
    for hour in hours:
        for pool in hour.pools_with_runs:
            known = found.get(pool, (0,) * BUCKETS)
            found[pool] = tuple(n + m for n, m in zip(known, hour.runs(pool), strict=True))
    return found


def _jobs(done: WorkerHour) -> int:
    """Return how many jobs came: an attempt that is repeated is due again, and is not a new job."""
    return max(0, done.arrived - done.retried)


def mean_seconds(done: Iterable[WorkerHour]) -> float | None:
    """Return how long runs took on average; None if none has ended."""
    of = [*done]
    ended = sum(one.completed + one.failed for one in of)
    return max(LEAST_RUN_SECONDS, sum(one.run_seconds for one in of) / ended) if ended else None


def _is_mixed(pool: str, workers: Mapping[str, WorkerHour], record: SystemRecord) -> bool:
    means = [
        mean for name, done in workers.items() if record.workers[name].pool == pool and (mean := mean_seconds([done]))
    ]
    return len(means) > 1 and max(means) > ALIKE_FACTOR * min(means)


def _traffic(
    worker: WorkerConfig,
    done: WorkerHour,
    hours: Sequence[Hour],
    counts: Mapping[str, tuple[int, ...]],
    *,
    mixed: set[str],
) -> Traffic:
    by_hour = [_jobs(hour.workers.get(worker.name, WorkerHour())) * _factor(hour) for hour in hours]
    ended = done.completed + done.failed
    return Traffic(
        pool=worker.pool,
        priority=worker.priority,
        arrivals=tuple(round(n, 1) for n in by_hour),
        run=run_time(mean_seconds([done]), None if worker.pool in mixed else counts.get(worker.pool)),
        failing=round(min(MOST_FAILING, done.failed / ended), 4) if ended else 0.0,
        max_retries=worker.max_retries,
        **limited(worker),
    )


def limited(worker: WorkerConfig) -> Limits:
    """Return the limits of a worker that a simulation has: `max_running` with a concurrency key holds for each key."""
    limits: Limits = {}
    if worker.rate_limit is not None:
        limits["rate_limit"] = worker.rate_limit
    if worker.max_running is not None and worker.concurrency_key is None:
        limits["max_running"] = worker.max_running
    return limits


def unsimulated(workers: Iterable[WorkerConfig]) -> list[str]:
    """Return which of these workers have limits that a simulation does not have."""
    return sorted(one.name for one in workers if one.concurrency_key is not None or one.breaker is not None)


def run_time(mean: float | None, counts: tuple[int, ...] | None) -> RunTime:
    """Return a distribution by the mean of run times and by their histogram, as far as they are known."""
    known = counts if counts is not None and any(counts) else None
    if mean is None or not isfinite(mean):
        return RunTime(seconds=1.0) if known is None else RunTime(counts=known)
    mean = max(LEAST_RUN_SECONDS, round(mean, 4))
    return RunTime(mean=mean, counts=known) if known else RunTime(mean=mean, p95=round(mean * ASSUMED_P95, 4))


# ── machines ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def node_groups(machines: Iterable[NodeBeat]) -> dict[str, NodeGroup]:
    alike = Counter((one.cores, one.memory, tuple(sorted(one.labels))) for one in machines)
    names = ["node"] if len(alike) == 1 else [f"node-{n}" for n in range(1, len(alike) + 1)]
    return {
        name: NodeGroup(count=count, cores=cores, memory=memory, labels=labels)
        for name, ((cores, memory, labels), count) in zip(names, sorted(alike.items()), strict=True)
    }


def guessed_node(pools: Iterable[PoolConfig]) -> NodeGroup:
    """Return a machine that can host all these pools."""
    needed = [*pools]
    return replace(
        GUESSED,
        cores=max([GUESSED.cores, *(pool.cpu or 0.0 for pool in needed)]),
        memory=max([GUESSED.memory, *(pool.memory or 0 for pool in needed)]),
        labels=tuple(sorted({label for pool in needed for label in pool.labels})),
    )


def _nodes(machines: Sequence[NodeBeat], pools: Sequence[PoolConfig]) -> tuple[dict[str, NodeGroup], list[str]]:
    if machines:
        return node_groups(machines), []
    return {"node": guessed_node(pools)}, ["No node runs now: the machine below is a guess. Write what yours have."]


# ── notes ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _about_hours(hours: Sequence[Hour]) -> list[str]:
    empty = [n for n, hour in enumerate(hours) if known_minutes(hour) < USABLE_MINUTES]
    partial = [n for n, hour in enumerate(hours) if n not in empty and known_minutes(hour) < WHOLE_MINUTES]
    notes = []
    if len(hours) < DAY_HOURS:
        notes.append(f"There were only {counted(len(hours), 'hour')} of history, so this is not a whole day.")
    if partial:
        estimated = _listed(f"{n + 1} ({known_minutes(hours[n])} min)" for n in partial)
        notes.append(f"Hours that are known in part, estimated from the minutes in brackets: {estimated}.")
    if empty:
        notes.append(f"Hours of which nothing is known, and that are empty here: {_listed(str(n + 1) for n in empty)}.")
    return notes


def _about_mixed(mixed: Iterable[str]) -> list[str]:
    return [
        f"The workers of the pool {pool} take very different times: each has its own mean here, and a spread that is "
        f"assumed (95 % within {ASSUMED_P95:g} times the mean)."
        for pool in sorted(mixed)
    ]


def _about_left_out(
    record: SystemRecord, sums: Mapping[str, WorkerHour], kept: Mapping[str, WorkerHour], hours: Sequence[Hour]
) -> list[str]:
    gone = sorted(name for name, done in sums.items() if name not in record.workers and _jobs(done))
    idle = len(record.workers.keys() - kept.keys())
    notes = []
    if gone:
        notes.append(f"Left out, because they are no longer registered: {_listed(gone)}.")
    if idle:
        notes.append(f"Left out, because no job of theirs came: {counted(idle, 'worker')}.")
    for pool, share in sorted(_missing(record, sums, hours).items()):
        notes.append(
            f"Left out: {share:.0%} of the jobs of the pool {pool}. Their workers are not among the {MOST_WORKERS} "
            "busiest ones, for which the history has numbers."
        )
    return notes


def _missing(record: SystemRecord, sums: Mapping[str, WorkerHour], hours: Sequence[Hour]) -> dict[str, float]:
    """Return which share of the attempts of each pool is of no known worker, where it is worth saying."""
    came: Counter[str] = Counter()
    for hour in hours:
        for one in hour.moments:
            came.update({pool: point.arrived for pool, point in one.pools.items() if point.arrived})
    known: Counter[str] = Counter()
    for name, done in sums.items():
        if name in record.workers:
            known[record.workers[name].pool] += done.arrived
    short = {pool: 1 - known[pool] / n for pool, n in came.items()}
    return {pool: share for pool, share in short.items() if share > WORTH_SAYING and len(sums) >= MOST_WORKERS}


def _listed(names: Iterable[str]) -> str:
    found = [*names]
    return ", ".join(found[:LISTED]) + (f" and {len(found) - LISTED} more" if len(found) > LISTED else "")
