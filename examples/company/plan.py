"""The same day as it is planned: the day as a scenario, with the run times that were measured, simulated.

`shiftwork plan day.toml` reads the same file.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import psutil

from examples.company.day import KINDS, Day, percentile
from examples.company.journal import Journal
from examples.company.outcome import Sample
from shiftwork import PoolConfig
from shiftwork.sim.reading import read_scenario
from shiftwork.sim.simulate import simulate

ELASTIC: Final = "elastic"
FIXED: Final = "ten fixed slots"
SHORTEST_SECONDS: Final = 0.001
OPTIONS: Final = (
    *("kind", "min_workers", "max_workers", "cpu"),
    *("scale_up_threshold", "scale_down_threshold", "scale_down_after_seconds", "target_latency_seconds"),
)
AT_ONCE_SECONDS: Final = 0.1


class Took(NamedTuple):
    """How long the runs of a worker took, in seconds."""

    median: float
    p95: float


UNKNOWN: Final = Took(0.1, 0.1)
"""How long jobs take of which none was measured."""


def measured(journal: Journal) -> dict[str, Took]:
    """How long the successful runs of each kind took."""
    times = {kind: [run.ended - run.began for run in journal.of(kind) if run.how == "ok"] for kind in KINDS}
    return {kind: Took(percentile(all_of, 0.5), percentile(all_of, 0.95)) for kind, all_of in times.items() if all_of}


def scenario(
    day: Day,
    pools: Mapping[str, PoolConfig],
    homes: Mapping[str, str],
    *,
    elastic: Mapping[str, Took],
    fixed: Mapping[str, Took],
) -> str:
    """The day as TOML. `homes` is the pool of each kind of jobs; `elastic` and `fixed` are how long they take there."""
    tables = [
        *(_table(f"pools.{name}", {one: getattr(pools[name], one) for one in OPTIONS}) for name in homes.values()),
        *(_table(f"workers.{kind}", _traffic(day, kind, homes[kind]) | _run(elastic, kind)) for kind in KINDS),
        _table(f"configurations.{ELASTIC}", {}),
        _table(f'configurations."{FIXED}"', {"pool": "fixed"}),
        _table(f'configurations."{FIXED}".pools.fixed', {"kind": "thread", "min_workers": 10, "max_workers": 10}),
        *(_table(f'configurations."{FIXED}".workers.{kind}', _run(fixed, kind)) for kind in KINDS),
    ]
    top = [
        f"# The company's day, compressed to {day.seconds:g} s: an hour takes {day.at(1):.3g} s.",
        f'name = "The company\'s day in {day.seconds:g} s"',
        f"length = {day.seconds}",
        _table("nodes.here", {"cores": psutil.cpu_count(), "memory": psutil.virtual_memory().total}),
    ]
    return "\n".join([*top, *tables])


def planned(text: str, configuration: str) -> list[Sample]:
    """Simulate one configuration of a scenario, and return its curves."""
    simulated = simulate(read_scenario(text, name="day.toml"), configuration)
    pools = simulated.pools.values()
    depths = (sum(values) for values in zip(*(pool.depth for pool in pools), strict=True))
    slots = (sum(values) for values in zip(*(pool.slots for pool in pools), strict=True))
    return [Sample(n * simulated.step, *values) for n, values in enumerate(zip(depths, slots, strict=True))]


def _traffic(day: Day, kind: str, pool: str) -> dict[str, Any]:
    bursts = [(day.at(hour), kinds[kind]) for hour, kinds in day.rushes() if kind in kinds]
    return {
        "pool": pool,
        "arrivals": [round(n, 2) for n in day.jobs(kind)],
        "bursts": [{"at": _time(at), "jobs": n, "seconds": AT_ONCE_SECONDS} for at, n in bursts],
    }


def _run(took: Mapping[str, Took], kind: str) -> dict[str, Any]:
    one = took.get(kind, UNKNOWN)
    median = max(one.median, SHORTEST_SECONDS)
    return {"run_seconds": {"median": median, "p95": max(one.p95, median)}}


def _time(seconds: float) -> str:
    return (datetime.fromtimestamp(0, UTC) + timedelta(seconds=seconds)).time().isoformat("milliseconds")


def _table(name: str, keys: Mapping[str, Any]) -> str:
    lines = [f"{key} = {_toml(value)}\n" for key, value in keys.items() if value is not None]
    return f"\n[{name}]\n{''.join(lines)}"


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)  # texts and numbers are written alike
