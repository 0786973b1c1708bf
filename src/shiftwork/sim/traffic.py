"""The jobs of a scenario, drawn from its seed: when each one comes, how long it runs, how often it fails first.

A worker's jobs depend on the seed, its name and its traffic alone. So two configurations are compared under the same
jobs, and a second simulation sees the same ones as the first.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import accumulate
from math import exp
from random import Random

from msgspec.structs import replace

from shiftwork.core.observing.run_histograms import BOUNDS
from shiftwork.sim.scenario import RunTime, Scenario, Traffic

SimJob = tuple[float, float, int]
"""When a job comes, in seconds since the start; how long one attempt runs; how many of its attempts fail."""


def jobs_of(scenario: Scenario, worker: str, traffic: Traffic, *, load: float = 1.0) -> list[SimJob]:
    """Return the jobs of a worker, the first one first."""
    random = Random(f"{scenario.seed} {worker}")
    times = [*_times(scenario.length, traffic, load, random)]
    times.sort()
    run = _drawing(traffic.run, random)
    if not traffic.failing:
        return [(at, run(), 0) for at in times]
    return [(at, run(), _failures(traffic, random)) for at in times]


def multiplied(scenario: Scenario, load: float) -> Scenario:
    """Return the scenario with this many times its traffic."""
    return replace(
        scenario,
        configurations={
            name: replace(one, workers={worker: _more(traffic, load) for worker, traffic in one.workers.items()})
            for name, one in scenario.configurations.items()
        },
    )


def _more(traffic: Traffic, load: float) -> Traffic:
    return replace(
        traffic,
        arrivals=[n * load for n in traffic.arrivals],
        bursts=tuple(replace(burst, jobs=round(burst.jobs * load)) for burst in traffic.bursts),
    )


def _times(length: float, traffic: Traffic, load: float, random: Random) -> Iterator[float]:
    span = length / max(1, len(traffic.arrivals))
    for place, expected in enumerate(traffic.arrivals):
        yield from _within(place * span, span, _whole(expected * load, random), traffic, random)
    for burst in traffic.bursts:
        yield from _within(burst.after, burst.seconds, _whole(burst.jobs * load, random), traffic, random)


def _within(start: float, seconds: float, n: int, traffic: Traffic, random: Random) -> Iterator[float]:
    """Yield the times of `n` jobs. Those of a Poisson process, once their number is known, are independent."""
    if traffic.spread == "even":
        return (start + seconds * (place + 0.5) / n for place in range(n))
    chance = random.random
    return (start + seconds * chance() for _ in range(n))


def _whole(expected: float, random: Random) -> int:
    """Return the number of jobs: the part after the decimal point is the chance of one more."""
    return int(expected) + (random.random() < expected % 1)


def _failures(traffic: Traffic, random: Random) -> int:
    """Return how many attempts of a job fail before one succeeds."""
    n = 0
    while n <= traffic.max_retries and random.random() < traffic.failing:
        n += 1
    return n


def _drawing(run: RunTime, random: Random) -> Callable[[], float]:
    if run.seconds is not None:
        seconds = run.seconds
        return lambda: seconds
    if run.counts is not None:
        return _from_histogram(run, run.counts, random)
    middle, deviation = run.lognormal()
    gauss = random.gauss
    return lambda: exp(gauss(middle, deviation))


def _from_histogram(run: RunTime, counts: tuple[int, ...], random: Random) -> Callable[[], float]:
    ranks, lows, highs = [*accumulate(counts)], (0.0, *BOUNDS), (*BOUNDS, BOUNDS[-1])
    factor = 1.0 if run.mean is None else run.mean / run.histogram_mean()

    def draw() -> float:
        bucket = bisect_left(ranks, random.random() * ranks[-1])
        low, high = lows[bucket], highs[bucket]
        return factor * (low + (high - low) * random.random())

    return draw
