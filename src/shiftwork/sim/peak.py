"""The busiest part of a scenario, as a short scenario: it shows what the long one would do under more load."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.sim.scenario import Configuration, Scenario, Traffic

SCENARIO_PARTS: Final = 24
"""Into how many parts a scenario is divided to find the busiest one: the hours of a day."""
BUSIEST_SHARE: Final = 0.9
"""A part that has this share of the busiest part's work belongs to the peak."""
MOST_PEAK_PARTS: Final = 2
"""How many parts of a long peak are simulated."""
PIECES_A_PART: Final = 12
"""In how many pieces the arrivals of one part are kept."""


class Peak(Struct, frozen=True):
    """The busiest part of one configuration's traffic."""

    scenario: Scenario
    """The peak alone, with half a part before it."""
    share: float
    """The share of all jobs that come at times as busy as this."""


def peak_of(scenario: Scenario, name: str) -> Peak:
    """Return the peak of a configuration."""
    configuration = scenario.configurations[name]
    part = scenario.length / SCENARIO_PARTS
    work = [_work(configuration, place * part, (place + 1) * part, scenario.length) for place in range(SCENARIO_PARTS)]
    busy = [one >= BUSIEST_SHARE * max(work) for one in work]
    first = work.index(max(work))
    while first > 0 and busy[first - 1]:
        first -= 1
    last = first
    while last + 1 < min(SCENARIO_PARTS, first + MOST_PEAK_PARTS) and busy[last + 1]:
        last += 1
    begin, end = max(0.0, (first - 0.5) * part), (last + 1) * part
    jobs = [_jobs(configuration, place * part, (place + 1) * part, scenario.length) for place in range(SCENARIO_PARTS)]
    share = sum(n for n, is_busy in zip(jobs, busy, strict=True) if is_busy) / sum(jobs)
    return Peak(part_of(scenario, name, begin, end), share)


def part_of(scenario: Scenario, name: str, begin: float, end: float) -> Scenario:
    """Return the scenario from one time to another, in seconds since its start, with one configuration."""
    configuration = scenario.configurations[name]
    pieces = round((end - begin) / scenario.length * SCENARIO_PARTS * PIECES_A_PART)
    edges = [begin + (end - begin) * place / pieces for place in range(pieces + 1)]
    workers = {worker: _traffic(traffic, edges, scenario.length) for worker, traffic in configuration.workers.items()}
    return replace(
        scenario,
        start=scenario.start + begin,
        length=end - begin,
        configurations={name: Configuration(pools=configuration.pools, workers=workers)},
    )


def _traffic(traffic: Traffic, edges: Sequence[float], length: float) -> Traffic:
    begin, end = edges[0], edges[-1]
    return replace(
        traffic,
        arrivals=[_arrivals(traffic, low, high, length) for low, high in pairwise(edges)],
        bursts=tuple(
            replace(burst, after=burst.after - begin)
            for burst in traffic.bursts
            if begin <= burst.after and burst.after + burst.seconds <= end
        ),
    )


def _work(configuration: Configuration, begin: float, end: float, length: float) -> float:
    """Return how long the jobs that come in this time run, in all."""
    return sum(
        arrivals_between(traffic, begin, end, length) * traffic.run.mean_seconds()
        for traffic in configuration.workers.values()
    )


def _jobs(configuration: Configuration, begin: float, end: float, length: float) -> float:
    return sum(arrivals_between(traffic, begin, end, length) for traffic in configuration.workers.values())


def arrivals_between(traffic: Traffic, begin: float, end: float, length: float) -> float:
    """Return how many jobs come between two times, of a scenario of this length."""
    bursts = sum(burst.jobs for burst in traffic.bursts if begin <= burst.after < end)
    return _arrivals(traffic, begin, end, length) + bursts


def _arrivals(traffic: Traffic, begin: float, end: float, length: float) -> float:
    """Return how many jobs come between two times, without bursts."""
    if not traffic.arrivals:
        return 0.0
    span = length / len(traffic.arrivals)
    first, last = int(begin / span), min(len(traffic.arrivals) - 1, int(end / span))
    return sum(
        traffic.arrivals[place] * max(0.0, min(end, (place + 1) * span) - max(begin, place * span)) / span
        for place in range(first, last + 1)
    )
