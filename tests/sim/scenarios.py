"""Small scenarios for tests: twenty minutes of one pool, with something wrong where a test wants it."""

from pathlib import Path
from typing import Final

from shiftwork.sim.reading import read_scenario
from shiftwork.sim.scenario import Scenario

SMALL: Final = """
name = "twenty minutes"
length = "20m"
price_per_core_hour = 0.1
currency = "EUR"

[nodes.machine]
cores = 8
memory = "16GB"

[pools.images]
kind = "process"
min_workers = 4
max_workers = 8
scale_down_after_seconds = 60

[workers.resize]
pool = "images"
arrivals = [100, 800, 100]
run_seconds = { median = 2.0, p95 = 5.0 }

[targets.images]
wait_p99_seconds = "30s"
"""


BRIEF: Final = (('"20m"', '"5m"'), ("[100, 800, 100]", "[25, 200, 25]"))
"""Changes that make it last five minutes, under the same load."""


def small(*changes: tuple[str, str]) -> Scenario:
    """The small scenario, with some of its text replaced."""
    return read_scenario(changed(*changes))


def changed(*changes: tuple[str, str]) -> str:
    """Its text, with some of it replaced."""
    text = SMALL
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def company(checkout: Path) -> Scenario:
    """The company's day, as it is shipped."""
    return read_scenario((checkout / "examples" / "company.toml").read_text())
