"""How many slots would a pool of a fixed size need, day and night, to be as good?"""

from collections.abc import Mapping, Sequence
from heapq import heapreplace
from typing import Final

from msgspec import Struct

from shiftwork.sim.pool_queue import PoolJob
from shiftwork.sim.scenario import Scenario
from shiftwork.sim.sim_pool import SimPool, merged_jobs
from shiftwork.sim.simulated import Simulated, waits_of
from shiftwork.sim.traffic import SimJob, jobs_of

MOST_TRIED_SLOTS: Final = 4096
FAST_ENOUGH: Final = 1.0
"""A pool without a target must be as fast as it was; waits below this many seconds count as equal."""
_METRICS: Final = ("p50", "p95", "p99", "worst")


class _Demanded(Struct, frozen=True):
    """The longest wait that some workers' jobs may have, by one percentile."""

    workers: Sequence[str]
    metric: str
    seconds: float


def fixed_sizes(scenario: Scenario, name: str, simulated: Simulated) -> dict[str, int]:
    """Return for each pool of a configuration the fewest fixed slots with which it is as good.

    As good means: it meets its targets. Where the configuration itself misses one, or there is none, the 99th
    percentile of waiting, or the one of the target, is as it was.
    """
    configuration = scenario.configurations[name]
    sizes: dict[str, int] = {}
    for pool in configuration.pools:
        workers = [worker for worker, traffic in configuration.workers.items() if traffic.pool == pool]
        jobs = {worker: jobs_of(scenario, worker, configuration.workers[worker]) for worker in workers}
        sizes[pool] = _fewest(scenario, name, pool, jobs, _demanded(scenario, workers, simulated, pool))
    return sizes


def _demanded(scenario: Scenario, workers: Sequence[str], simulated: Simulated, pool: str) -> list[_Demanded]:
    found = [
        _Demanded(scenario.groups[target], metric, max(limit, getattr(simulated.groups[target], metric)))
        for target, one in scenario.targets.items()
        if set(scenario.groups[target]) <= set(workers)
        for metric in _METRICS
        if (limit := getattr(one, f"wait_{metric}_seconds")) is not None
    ]
    return found or [_Demanded(workers, "p99", max(FAST_ENOUGH, simulated.pools[pool].waits.p99))]


def _fewest(
    scenario: Scenario, name: str, pool: str, jobs: Mapping[str, list[SimJob]], demanded: Sequence[_Demanded]
) -> int:
    configuration = scenario.configurations[name]
    priorities = {configuration.workers[worker].priority for worker in jobs}
    retried = any(configuration.workers[worker].failing for worker in jobs)
    limited = any(configuration.workers[worker].is_limited for worker in jobs)
    merged = merged_jobs(jobs)

    def waited(slots: int) -> list[list[float]]:
        if len(priorities) == 1 and not (retried or limited):
            return _in_order(merged, slots, len(jobs))
        one = SimPool(configuration.pools[pool], jobs, configuration, start=scenario.start)
        one.queue.open(slots)
        one.queue.advance(scenario.length)
        return [one.queue.waits_until(scenario.length, place) for place in range(len(jobs))]

    def enough(slots: int) -> bool:
        waits = dict(zip(jobs, waited(slots), strict=True))
        return all(
            getattr(waits_of(wait for worker in each.workers for wait in waits[worker]), each.metric) <= each.seconds
            for each in demanded
        )

    low, high = 0, 1
    while high < MOST_TRIED_SLOTS and not enough(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _in_order(jobs: Sequence[PoolJob], slots: int, workers: int) -> list[list[float]]:
    """Return how long jobs wait, by worker, if they start in the order in which they come."""
    free_at = [0.0] * slots
    waits: list[list[float]] = [[] for _ in range(workers)]
    for at, run, _, worker in jobs:
        start = max(at, free_at[0])
        heapreplace(free_at, start + run)
        waits[worker].append(start - at)
    return waits
