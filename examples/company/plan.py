"""The planner's view of the same day: the day as a scenario, with the run times that the prelude measured, simulated.

`shiftwork plan day.toml` reads the same file.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import psutil

from examples.company.day import KINDS, Day
from examples.company.outcome import Sample, Took
from shiftwork import PoolConfig
from shiftwork.sim.reading import read_scenario
from shiftwork.sim.simulate import simulate

ELASTIC: Final = "elastic"
FIXED: Final = "ten fixed slots"
SHORTEST_SECONDS: Final = 0.001
UNKNOWN_SECONDS: Final = 0.1
"""How long jobs take of which none was measured."""
OPTIONS: Final = (
    *("kind", "min_workers", "max_workers", "cpu"),
    *("scale_up_threshold", "scale_down_threshold", "scale_down_after_seconds", "target_latency_seconds"),
)
AT_ONCE_SECONDS: Final = 0.1


def scenario(day: Day, pools: Mapping[str, PoolConfig], homes: Mapping[str, str], took: Mapping[str, Took]) -> str:
    """The day as TOML. `homes` is the pool of each kind of jobs, and `took` how long they take."""
    return "\n".join(_lines(day, pools, homes, took)) + "\n"


def planned(text: str, configuration: str) -> list[Sample]:
    """Simulate one configuration of a scenario, and return its curves."""
    simulated = simulate(read_scenario(text, name="day.toml"), configuration)
    pools = simulated.pools.values()
    depths = (sum(values) for values in zip(*(pool.depth for pool in pools), strict=True))
    slots = (sum(values) for values in zip(*(pool.slots for pool in pools), strict=True))
    return [Sample(n * simulated.step, *values) for n, values in enumerate(zip(depths, slots, strict=True))]


def _lines(
    day: Day, pools: Mapping[str, PoolConfig], homes: Mapping[str, str], took: Mapping[str, Took]
) -> Iterator[str]:
    yield f"# The company's day, compressed to {day.seconds:g} s: an hour takes {day.at(1):.3g} s."
    yield f'name = "The company\'s day in {day.seconds:g} s"'
    yield f"length = {day.seconds}"
    yield from _table("nodes.here", {"cores": psutil.cpu_count(), "memory": psutil.virtual_memory().total})
    for name in dict.fromkeys(homes.values()):
        yield from _table(f"pools.{name}", {option: getattr(pools[name], option) for option in OPTIONS})
    for kind in KINDS:
        yield from _table(f"workers.{kind}", {"pool": homes[kind], **_traffic(day, kind, took.get(kind))})
    yield from _table(f"configurations.{ELASTIC}", {})
    yield from _table(f'configurations."{FIXED}"', {"pool": "fixed"})
    yield from _table(f'configurations."{FIXED}".pools.fixed', {"kind": "thread", "min_workers": 10, "max_workers": 10})


def _traffic(day: Day, kind: str, took: Took | None) -> dict[str, Any]:
    median = max(took.median, SHORTEST_SECONDS) if took else UNKNOWN_SECONDS
    p95 = max(took.p95, median) if took else median
    return {
        "arrivals": [round(n, 2) for n in day.jobs(kind)],
        "run_seconds": {"median": median, "p95": p95},
        "bursts": [
            {"at": _time(day.at(hour)), "jobs": kinds[kind], "seconds": AT_ONCE_SECONDS}
            for hour, kinds in day.rushes()
            if kind in kinds
        ],
    }


def _time(seconds: float) -> str:
    return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)).time().isoformat("milliseconds")


def _table(name: str, keys: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{name}]"
    yield from (f"{key} = {_toml(value)}" for key, value in keys.items() if value is not None)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)  # texts and numbers are written alike
