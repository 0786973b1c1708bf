"""How large a scenario may be. A file that someone else wrote must neither fill the memory nor run for hours.

The limits are far above a day of a large system: a simulation of the most jobs takes about two minutes and half a
gigabyte. Everything is counted before anything is drawn or simulated.
"""

from collections.abc import Iterator
from typing import Final

from shiftwork.core.scaling.plan import SOON_SECONDS
from shiftwork.errors import ConfigurationError
from shiftwork.sim.scenario import Configuration, Scenario, Traffic

MOST_FILE_BYTES: Final = 1_048_576
"""The largest file."""
MOST_KEY_PARTS: Final = 32
"""How many parts a dotted key may have: the time to read one grows with the square."""
MOST_TABLES: Final = {"nodes": 200, "pools": 500, "workers": 2_000, "targets": 2_000, "configurations": 50}
"""How many tables a section may have."""
MOST_SIMULATED_NODES: Final = 2_000
MOST_POOL_SLOTS: Final = 100_000
"""How many slots a pool may have."""
MOST_SIMULATED_RUNS: Final = 2_000_000
"""How many runs of jobs a configuration may have, with those that are retried."""
MOST_ATTEMPTS_IN_ALL: Final = 10_000_000
"""How many all configurations may have together: simulating them takes about ten minutes."""
LONGEST_SCENARIO_SECONDS: Final = 31 * 86_400.0
MOST_POOL_LOOKS: Final = 300_000_000
"""How many looks at a pool all configurations may need together: 30 pools for a day are 13 million."""


def refuse_long_text(text: str, name: str) -> None:
    """Raise `ConfigurationError` if a document is too large, or has keys that take too long to read."""
    if len(text) > MOST_FILE_BYTES:
        message = f"{name} has more than {MOST_FILE_BYTES:,} characters, which is too large for a scenario"
        raise ConfigurationError(message)
    for mark in ",=[]{}":
        text = text.replace(mark, "\n")
    if any(line.count(".") >= MOST_KEY_PARTS for line in text.split("\n") if not line.lstrip().startswith("#")):
        message = f"{name} has a key or a text with {MOST_KEY_PARTS} dots or more: write tables such as [pools.NAME]"
        raise ConfigurationError(message)


def refuse_size(scenario: Scenario, *, load: float = 1.0) -> None:
    """Raise `ConfigurationError` if a simulation under this load would take too much time or memory."""
    problem = next(_problems(scenario, load), None)
    if problem is not None:
        message = f"{scenario.name} is too large to simulate: {problem}"
        raise ConfigurationError(message)


def _problems(scenario: Scenario, load: float) -> Iterator[str]:
    if scenario.length > LONGEST_SCENARIO_SECONDS:
        yield f"length is at most {LONGEST_SCENARIO_SECONDS / 86_400:.0f} days, not {scenario.length / 86_400:,.0f}"
    nodes = sum(group.count for group in scenario.nodes.values())
    if nodes > MOST_SIMULATED_NODES:
        yield f"it has {nodes:,} nodes; at most {MOST_SIMULATED_NODES:,} are allowed"
    for name, one in scenario.configurations.items():
        yield from _of_configuration(name, one, load)
    attempts = sum(_attempts(one, load) for one in scenario.configurations.values())
    if attempts > MOST_ATTEMPTS_IN_ALL:
        yield (
            f"its configurations have {attempts:,.0f} runs of jobs together; at most {MOST_ATTEMPTS_IN_ALL:,} are "
            "allowed: shorten length and arrivals, or compare fewer configurations"
        )
    looks = scenario.length / SOON_SECONDS * sum(len(one.pools) for one in scenario.configurations.values())
    if looks > MOST_POOL_LOOKS:
        at_most = f"at most {MOST_POOL_LOOKS:,} are allowed: shorten length, or compare fewer pools"
        yield f"{looks:,.0f} looks at pools; {at_most}"


def _of_configuration(name: str, one: Configuration, load: float) -> Iterator[str]:
    for pool in one.pools.values():
        slots = max([pool.min_workers, pool.max_workers, *(high for _, high in pool.bounds.values())])
        if slots > MOST_POOL_SLOTS:
            yield f"pool {pool.name!r} has up to {slots:,} slots; at most {MOST_POOL_SLOTS:,} are allowed"
    attempts = _attempts(one, load)
    if attempts > MOST_SIMULATED_RUNS:
        yield (
            f"configuration {name!r} has {attempts:,.0f} runs of jobs; at most {MOST_SIMULATED_RUNS:,} are allowed: "
            "shorten length and arrivals, or lower the load"
        )


def _attempts(one: Configuration, load: float) -> float:
    return sum(map(_attempts_of, one.workers.values())) * load


def _attempts_of(traffic: Traffic) -> float:
    """Return how many runs the jobs of a worker are expected to have."""
    jobs = sum(traffic.arrivals) + sum(burst.jobs for burst in traffic.bursts)
    return jobs * min(traffic.max_retries + 1.0, 1 / (1 - traffic.failing))
