"""From a recorded `Scenario` to the TOML that `sim.reading` reads, with the notes as comments."""

import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from shiftwork.core.model.workers import PoolConfig
from shiftwork.sim.reading import AS_WRITTEN
from shiftwork.sim.recorded import Recorded
from shiftwork.sim.scenario import NodeGroup, RunTime, Traffic

WIDE: Final = 100
"""How wide comments are."""
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A key that needs no quotes."""
HOW: Final = (
    "Jobs come at random within each hour. Schedules, dependencies, conflicts, concurrency keys and breakers of "
    "workers are not part of a scenario. Add price_per_core_hour, and [targets.NAME] with wait_p95_seconds, to compare "
    "and to suggest."
)


def written(recorded: Recorded) -> str:
    """Return the scenario as TOML."""
    return "\n".join(_lines(recorded)) + "\n"


def _lines(recorded: Recorded) -> Iterator[str]:
    scenario = recorded.scenario
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (scenario.start, scenario.start + scenario.length))
    yield from _comment(f"Recorded by `shiftwork record`, from {begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC.")
    yield from _comment(HOW)
    for note in recorded.notes:
        yield from _comment(note, bullet="- ")
    yield ""
    yield f"name = {_value(scenario.name)}"
    yield f"start = {begin:%Y-%m-%dT%H:%M:%SZ}"
    yield f"timezone = {_value(scenario.timezone)}"
    yield f"length = {_value(scenario.length)}"
    configuration = scenario.configurations[AS_WRITTEN]
    for name, node in scenario.nodes.items():
        yield from _table("nodes", name, _node(node))
    for name, pool in configuration.pools.items():
        yield from _table("pools", name, _changed(pool))
    for name, traffic in configuration.workers.items():
        yield from _table("workers", name, _worker(traffic))


def _comment(text: str, bullet: str = "") -> list[str]:
    indent = " " * len(bullet)
    text = " ".join(text.split())  # a name may hold a line break
    return textwrap.wrap(text, WIDE, initial_indent=f"# {bullet}", subsequent_indent=f"# {indent}")


def _table(section: str, name: str, keys: Mapping[str, Any]) -> Iterator[str]:
    yield ""
    yield f"[{section}.{_key(name)}]"
    for key, value in keys.items():
        yield f"{key} = {_value(value)}"


def _node(node: NodeGroup) -> dict[str, Any]:
    known = {"count": node.count, "cores": node.cores, "memory": node.memory}
    return {**known, "labels": node.labels} if node.labels else known


def _changed(pool: PoolConfig) -> dict[str, Any]:
    """Return the options of a pool that are not at their defaults, and its bounds in any case."""
    always = {"kind", "min_workers", "max_workers"}
    given = {one.name: getattr(pool, one.name) for one in fields(pool)}
    defaults = {one.name: _default(one) for one in fields(pool)}
    return {
        name: value
        for name, value in given.items()
        if name != "name" and value is not None and (name in always or value != defaults[name])
    }


def _default(field: Any) -> Any:
    return field.default if field.default_factory is NODEFAULT else field.default_factory()


def _worker(traffic: Traffic) -> dict[str, Any]:
    return {
        "pool": traffic.pool,
        "priority": traffic.priority.name.lower(),
        "arrivals": list(traffic.arrivals),
        "run_seconds": _run(traffic.run),
        "failing": traffic.failing,
        "max_retries": traffic.max_retries,
        **({} if traffic.rate_limit is None else {"rate_limit": traffic.rate_limit}),
        **({} if traffic.max_running is None else {"max_running": traffic.max_running}),
    }


def _run(run: RunTime) -> Any:
    return run.seconds if run.seconds is not None else _given(run)


def _given(one: Struct) -> dict[str, Any]:
    return {name: value for name in one.__struct_fields__ if (value := getattr(one, name)) is not None}


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case int():
            return str(int(value))
        case float():
            return f"{int(value)}" if value.is_integer() else repr(value)
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return f"{{ {', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())} }}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """Return a text in quotes. TOML reads what JSON writes, but for one character that JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
