"""Dependencies, conflicts and shared breakers of the registered workers, compiled into gates.

They are checked as a whole when everything is registered, because a worker may name one that is registered later. All
problems are reported at once.

An alias, a former name of a worker, is a worker of its own: the same function and policy under another name, without a
schedule. It never runs beside what excludes its worker, nor beside its worker if that runs one job at a time.
"""

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from msgspec.structs import replace

from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.core.options.value_checks import parse_rate
from shiftwork.core.workers.admission import Gates, RateLimit
from shiftwork.errors import ConfigurationError, DependencyCycleError, UnknownWorkerError, nearest

if TYPE_CHECKING:
    from shiftwork.core.model.workers import Breaker


def compile_gates(configs: Mapping[str, WorkerConfig]) -> dict[str, Gates]:
    """Return the gates of every worker. Raises a `ConfigurationError` with every problem, one per line."""
    problems = [*_unknown_names(configs), *_cycles(configs), *_breaker_conflicts(configs)]
    if problems:
        raise _combined(problems)
    conflicts: dict[str, set[str]] = {name: set() for name in configs}
    before: dict[str, set[str]] = {name: set() for name in configs}
    for name, config in configs.items():
        for other in config.blocks:
            conflicts[name].add(other)
            conflicts[other].add(name)
        for other in config.depends_on:
            before[other].add(name)
    for name, config in configs.items():
        for alias in config.aliases:
            itself = {name} if _max_running(config) == 1 else set()
            for other in conflicts[name] - {alias} | itself:
                conflicts[alias].add(other)
                conflicts[other].add(alias)
    return {
        name: Gates(
            worker=name,
            pool=config.pool,
            conflicts=tuple(sorted(conflicts[name])),
            after=config.demands,
            before=tuple(sorted(before[name])),
            max_running=_max_running(config),
            rate=_rate(config),
            breaker=_breaker_name(config),
        )
        for name, config in configs.items()
    }


def alias_config(config: WorkerConfig, alias: str) -> WorkerConfig:
    """Return the configuration of the worker that runs what was added under a former name of this one."""
    breaker = config.breaker and replace(config.breaker, name=_breaker_name(config))
    return replace(
        config,
        name=alias,
        execution_mode=WorkerExecutionMode.TRIGGERED,
        cron=None,
        max_running=config.max_running if config.concurrency_key else _max_running(config),
        breaker=breaker,
        aliases=(),
    )


def _max_running(config: WorkerConfig) -> int | None:
    if config.concurrency_key is not None:
        return None  # the limit holds for each value of the key
    if config.max_running is not None or config.execution_mode is WorkerExecutionMode.TRIGGERED:
        return config.max_running
    return None if config.overlap == "allow" else 1


def _rate(config: WorkerConfig) -> RateLimit | None:
    return None if config.rate_limit is None else parse_rate(config.rate_limit)


def _breaker_name(config: WorkerConfig) -> str | None:
    return None if config.breaker is None else config.breaker.name or config.name


def _unknown_names(configs: Mapping[str, WorkerConfig]) -> Iterator[ConfigurationError]:
    named_now = {alias: name for name, config in configs.items() for alias in config.aliases}
    for name, config in configs.items():
        for verb, others in (("depends on", config.depends_on), ("blocks", config.blocks)):
            for other in others:
                if other in named_now:
                    hint = f"which is an alias; write {named_now[other]!r}"
                    yield ConfigurationError(f"worker {name!r} {verb} {other!r}, {hint}")
                elif other not in configs:
                    hint = nearest(other, [known for known in configs if known != name])
                    yield UnknownWorkerError(f"worker {name!r} {verb} {other!r}, which is not registered; {hint}")


def _cycles(configs: Mapping[str, WorkerConfig]) -> Iterator[ConfigurationError]:
    graph = {name: [other for other in config.depends_on if other in configs] for name, config in configs.items()}
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # graphlib lists prerequisites first; an arrow here points from the worker that waits.
            cycle: list[str] = error.args[1][:0:-1]
            start = cycle.index(min(cycle))
            drawn = " → ".join([*cycle[start:], *cycle[: start + 1]])
            yield DependencyCycleError(f"workers wait for each other: {drawn}; remove one depends_on")
            for name in cycle:
                graph[name] = []
        else:
            return


def _breaker_conflicts(configs: Mapping[str, WorkerConfig]) -> Iterator[ConfigurationError]:
    seen: dict[str, tuple[str, Breaker]] = {}
    for name, config in configs.items():
        shared = _breaker_name(config)
        if shared is None or config.breaker is None:
            continue
        policy = replace(config.breaker, name=shared)
        first, theirs = seen.setdefault(shared, (name, policy))
        if theirs != policy:
            yield ConfigurationError(
                f"workers {first!r} and {name!r} share the breaker {shared!r} but give it different policies; "
                "share one Breaker object, or give them different names"
            )


def _combined(problems: list[ConfigurationError]) -> ConfigurationError:
    kinds = {type(problem) for problem in problems}
    kind = kinds.pop() if len(kinds) == 1 else ConfigurationError
    return kind("\n".join(str(problem) for problem in problems))
