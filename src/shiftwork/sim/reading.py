"""From TOML to a `Scenario`: every key, number and name is checked before anything is simulated.

All problems of a file are reported at once, each with its place in the file and the remedy. Pools are checked by the
code that checks `register_pool`. `docs/planning.md` shows a whole file, and lists its keys.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from itertools import islice
from math import isfinite
from typing import TYPE_CHECKING, Any, Final, TypeVar
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct, structs

from shiftwork.core.model.jobs import SECONDS_A_DAY
from shiftwork.core.options.configs import pool_config
from shiftwork.core.schedules.timing import zone_problem
from shiftwork.core.words import counted
from shiftwork.errors import ConfigurationError, UnknownOptionError, UnknownPoolError, nearest
from shiftwork.sim.hosting import why_unhosted
from shiftwork.sim.scenario import Configuration, NodeGroup, Scenario, Target, Traffic
from shiftwork.sim.scenario_limits import MOST_TABLES, refuse_long_text, refuse_size
from shiftwork.sim.tables import NodeTable, TargetTable, WorkerTable, seconds

if TYPE_CHECKING:
    from shiftwork.core.model.workers import PoolConfig

DEFAULT_START: Final = datetime(2026, 1, 5)  # noqa: DTZ001 - a Monday, in the scenario's own time zone
LARGEST_SEED: Final = 2**63 - 1
YEARS: Final = range(1971, 2200)
MOST_FILE_PROBLEMS: Final = 50
"""How many problems of a file are reported."""
AS_WRITTEN: Final = "as written"
"""The name of the one configuration of a scenario that lists none."""

Kind = TypeVar("Kind", bound=Struct)
Value = TypeVar("Value")


class _Top(Struct, forbid_unknown_fields=True):
    """The keys of a scenario that are not tables."""

    name: str | None = None
    start: Any = None
    timezone: str = "UTC"
    length: float | str = SECONDS_A_DAY
    seed: int = 1
    price_per_core_hour: float = 0.0
    currency: str = ""


class _ConfigurationTable(Struct, forbid_unknown_fields=True):
    pool: str | None = None
    pools: dict[str, dict[str, Any]] = {}
    workers: dict[str, dict[str, Any]] = {}


_SECTIONS: Final = ("nodes", "pools", "workers", "targets", "configurations")


def read_scenario(text: str, *, name: str = "scenario") -> Scenario:
    """Return the scenario that a TOML document describes; `name` is its name if it has none.

    Raises a `ConfigurationError` with every problem of the document.
    """
    refuse_long_text(text, name)
    try:
        reader = _Reader(tomllib.loads(text))
        scenario = reader.scenario(name)
        if scenario is not None and not reader.problems:
            refuse_size(scenario)
    except tomllib.TOMLDecodeError as error:
        message = f"{name} is not valid TOML: {error}"
        raise ConfigurationError(message) from None
    except (ValueError, OverflowError) as error:
        message = f"{name} has a number that is far too large: {error}"
        raise ConfigurationError(message) from None
    except RecursionError:
        message = f"{name} is nested too deeply: a scenario has tables such as [pools.NAME], and lists of numbers"
        raise ConfigurationError(message) from None
    if scenario is None or reader.problems:
        raise _all_problems(name, reader.problems)
    return scenario


def _all_problems(name: str, problems: list[ConfigurationError]) -> ConfigurationError:
    if len(problems) == 1:
        return type(problems[0])(f"{name}: {problems[0]}")
    listed = [f"{name} has {counted(len(problems), 'problem')}:", *map(str, problems)]
    return ConfigurationError("\n  - ".join(listed))


class _Reader:
    """Reads a document, and gathers what is wrong with it."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self.problems: list[ConfigurationError] = []
        self._sections = {section: self._section(section) for section in _SECTIONS}
        self._top = self._top_keys()
        self._zone = ZoneInfo(self._top.timezone)
        self._start = self._start_at(self._top.start)
        self._length = self._try(lambda: seconds(self._top.length, "length")) or SECONDS_A_DAY

    def scenario(self, name: str) -> Scenario | None:
        """Return the scenario, as far as it can be made; None if a part is missing."""
        missing = [section for section in ("nodes", "pools", "workers") if not self._sections[section]]
        if missing:
            self.problems += [ConfigurationError(_MISSING[section]) for section in missing]
            return None
        nodes = self._nodes()
        configurations = self._configurations()
        self._check_use(configurations)
        self._check_hosting(nodes, configurations)
        base = self._sections["workers"]
        top = self._top
        return Scenario(
            name=top.name or name,
            start=self._start,
            timezone=top.timezone,
            length=self._length,
            seed=top.seed,
            price_per_core_hour=top.price_per_core_hour,
            currency=top.currency,
            nodes=nodes,
            configurations=configurations,
            targets=self._targets(),
            groups={
                target: tuple(worker for worker, table in base.items() if target in (worker, table.get("pool")))
                for target in self._sections["targets"]
            },
        )

    # ── the top ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _section(self, name: str) -> dict[str, dict[str, Any]]:
        found = self._document.get(name, {})
        try:
            tables = msgspec.convert(found, dict[str, dict[str, Any]])
        except msgspec.ValidationError:
            self.problems.append(ConfigurationError(f"{name} must be tables: write [{name}.NAME] above its keys"))
            return {}
        if len(tables) > MOST_TABLES[name]:
            message = f"there are {len(tables):,} {name}; at most {MOST_TABLES[name]:,} are allowed"
            raise _all_problems("the scenario", [ConfigurationError(message)])
        return tables

    def _top_keys(self) -> _Top:
        given = {key: value for key, value in self._document.items() if key not in _SECTIONS}
        top = self._converted(given, _Top, "", also=_SECTIONS) or _Top()
        problem = zone_problem(top.timezone)
        if problem:
            self.problems.append(ConfigurationError(f"timezone {problem}"))
            top.timezone = "UTC"
        if not isfinite(top.price_per_core_hour) or top.price_per_core_hour < 0:
            self.problems.append(ConfigurationError("price_per_core_hour must be a number of at least 0"))
        if not -LARGEST_SEED <= top.seed <= LARGEST_SEED:
            self.problems.append(ConfigurationError(f"seed must be a whole number up to {LARGEST_SEED}"))
            top.seed = 1
        return top

    def _start_at(self, given: Any) -> float:
        if given is None:
            given = DEFAULT_START
        elif isinstance(given, time):
            given = datetime.combine(DEFAULT_START, given)
        elif isinstance(given, date) and not isinstance(given, datetime):
            given = datetime.combine(given, time())
        elif not isinstance(given, datetime):
            self._problem("", ConfigurationError(f"start must be a date or a time such as 2026-03-03, not {given!r}"))
            given = DEFAULT_START
        if given.year not in YEARS:
            self._problem(
                "", ConfigurationError(f"start must be between {YEARS[0]} and {YEARS[-1]}, not in {given.year}")
            )
            given = DEFAULT_START
        at: datetime = given if given.tzinfo else given.replace(tzinfo=self._zone)
        return at.timestamp()

    # ── the tables ───────────────────────────────────────────────────────────────────────────────────────────────

    def _nodes(self) -> dict[str, NodeGroup]:
        made = {
            name: self._made(table, NodeTable, f"[nodes.{name}]", NodeTable.made)
            for name, table in self._sections["nodes"].items()
        }
        return {name: node for name, node in made.items() if node is not None}

    def _targets(self) -> dict[str, Target]:
        known = {*self._sections["workers"], *self._sections["pools"]}
        targets: dict[str, Target] = {}
        for name, table in self._sections["targets"].items():
            place = f"[targets.{name}]"
            if name not in known:
                self._problem(place, UnknownPoolError(f"there is no pool or worker {name!r}; {nearest(name, known)}"))
                continue
            target = self._made(table, TargetTable, place, TargetTable.made)
            if target is not None:
                targets[name] = target
        return targets

    def _configurations(self) -> dict[str, Configuration]:
        listed = self._sections["configurations"] or {AS_WRITTEN: {}}
        found: dict[str, Configuration] = {}
        for name, table in listed.items():
            place = "" if name == AS_WRITTEN else f"[configurations.{name}]"
            change = self._converted(table, _ConfigurationTable, place)
            if change is not None:
                found[name] = self._configuration(change, place)
        return found

    def _configuration(self, change: _ConfigurationTable, place: str) -> Configuration:
        workers = self._workers(change, place)
        pools = {**self._sections["pools"], **change.pools}
        used: dict[str, PoolConfig] = {}
        for worker, traffic in workers.items():
            if traffic.pool not in pools:
                unknown = UnknownPoolError(f"there is no pool {traffic.pool!r}; {nearest(traffic.pool, pools)}")
                self._problem(_inside(place, "workers", worker), unknown)
            elif traffic.pool not in used:
                options = {**self._sections["pools"].get(traffic.pool, {}), **change.pools.get(traffic.pool, {})}
                made = self._try(lambda: pool_config(traffic.pool, options), place)  # noqa: B023 - called at once
                if made is not None:
                    used[traffic.pool] = made
        idle = [pool for pool in change.pools if pool not in used and not self.problems]
        for pool in idle:
            self._problem(place, UnknownPoolError(f"no worker has the pool {pool!r} there; {nearest(pool, used)}"))
        return Configuration(pools=used, workers=workers)

    def _workers(self, change: _ConfigurationTable, place: str) -> dict[str, Traffic]:
        base = self._sections["workers"]
        for name in change.workers:
            if name not in base:
                self._problem(place, ConfigurationError(f"there is no worker {name!r}; {nearest(name, base)}"))
        everywhere = {} if change.pool is None else {"pool": change.pool}
        workers: dict[str, Traffic] = {}
        for name, table in base.items():
            where = _inside(place if name in change.workers else "", "workers", name)
            merged = {**table, **everywhere, **change.workers.get(name, {})}
            made = self._made(
                merged,
                WorkerTable,
                where,
                lambda raw: raw.made(start=self._start, zone=self._zone, length=self._length),
            )
            if made is not None:
                workers[name] = made
        return workers

    def _traffic(self, table: WorkerTable) -> Traffic:
        return table.made(start=self._start, zone=self._zone, length=self._length)

    # ── all of them together ─────────────────────────────────────────────────────────────────────────────────────

    def _check_use(self, configurations: Mapping[str, Configuration]) -> None:
        if self.problems:
            return
        used = {pool for one in configurations.values() for pool in one.pools}
        for pool in self._sections["pools"]:
            if pool not in used:
                self._problem(f"[pools.{pool}]", ConfigurationError("no worker has this pool; remove it, or name it"))
        for name, one in configurations.items():
            if not any(sum(traffic.arrivals) or traffic.bursts for traffic in one.workers.values()):
                where = "" if name == AS_WRITTEN else f"[configurations.{name}]"
                self._problem(where, ConfigurationError("no jobs come: give a worker arrivals above 0"))

    def _check_hosting(self, nodes: Mapping[str, NodeGroup], configurations: Mapping[str, Configuration]) -> None:
        if self.problems:
            return
        pools = {pool.name: pool for one in configurations.values() for pool in one.pools.values()}
        for name, pool in pools.items():
            why = why_unhosted(pool, nodes)
            if why:
                self._problem(f"[pools.{name}]", ConfigurationError(f"no node can host a single slot: {why}"))

    # ── one value ────────────────────────────────────────────────────────────────────────────────────────────────

    def _problem(self, place: str, error: ConfigurationError) -> None:
        if len(self.problems) >= MOST_FILE_PROBLEMS:
            return
        said = type(error)(f"{place}: {error}" if place else f"{error}")
        if str(said) not in map(str, self.problems):  # the same table is read once for each configuration
            self.problems.append(said)

    def _try(self, make: Callable[[], Value], place: str = "") -> Value | None:
        try:
            return make()
        except ConfigurationError as error:
            self._problem(place, error)
            return None

    def _made(
        self, table: Mapping[str, Any], kind: type[Kind], place: str, make: Callable[[Kind], Value]
    ) -> Value | None:
        raw = self._converted(table, kind, place)
        return None if raw is None else self._try(lambda: make(raw), place)

    def _converted(
        self, table: Mapping[str, Any], kind: type[Kind], place: str, also: tuple[str, ...] = ()
    ) -> Kind | None:
        """Return a table as a struct, or None with the problem noted."""
        known = [field.name for field in structs.fields(kind)]
        unknown = [*islice(_unknown_keys(table, [*known, *also]), MOST_FILE_PROBLEMS)]
        for error in unknown:
            self._problem(place, error)
        if unknown:
            return None
        try:
            return msgspec.convert(table, kind)
        except msgspec.ValidationError as error:
            self._problem(place, ConfigurationError(_plainly(str(error))))
            return None


_MISSING: Final = {
    "nodes": "the scenario has no nodes; add [nodes.NAME] with cores and memory",
    "pools": "the scenario has no pools; add [pools.NAME], with the options of register_pool",
    "workers": "the scenario has no workers; add [workers.NAME] with pool, arrivals and run_seconds",
}


def _unknown_keys(table: Mapping[str, Any], known: list[str]) -> Iterator[ConfigurationError]:
    for key in table:
        if key not in known:
            yield UnknownOptionError(f"unknown key {key!r}; {nearest(key, known)}")


def _inside(place: str, section: str, name: str) -> str:
    return f"{place.removesuffix(']')}.{section}.{name}]" if place else f"[{section}.{name}]"


def _plainly(text: str) -> str:
    """Return msgspec's message, with the key first: "count: expected `int` >= 1"."""
    said, _, path = text.partition(" - at `$")
    key = path.removesuffix("`").lstrip(".")
    said = said[:1].lower() + said[1:]
    return f"{key}: {said}" if key else said
