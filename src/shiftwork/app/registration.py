"""The checks on workers and pools that are registered: of each at once, and of all of them together at the start.

While the orchestrator runs, all of them together are checked at each registration, and its node adopts what is new.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict, replace

from shiftwork.control.definitions import DEFAULT_POOL, LocalRegistry
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.configs import pool_config, worker_config
from shiftwork.core.options.graph import alias_config, compile_gates
from shiftwork.core.options.retry_rules import rule_in
from shiftwork.core.options.value_checks import shown
from shiftwork.errors import ConfigurationError, DuplicateNameError, LifecycleError, UnknownPoolError
from shiftwork.handles.codec import Signature
from shiftwork.handles.worker import App, Worker
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.registry import Registry

if TYPE_CHECKING:
    from shiftwork.core.workers.admission import Gates
    from shiftwork.runtime.node.node import Node

logger: Final = logging.getLogger("shiftwork")

WorkerFn = Callable[..., Any]
"""A worker's function, plain or async. What it takes: docs/workers.md."""


class Registrations:
    """Registers workers and pools: checks each one, and writes it into the registry of this process."""

    def __init__(
        self,
        registry: LocalRegistry,
        app: App,
        middleware: Middleware,
        *,
        serving: "Callable[[str], Node | None]",
        max_payload_bytes: int,
    ) -> None:
        check_size("max_payload_bytes", max_payload_bytes)
        self._registry = registry
        self._app = app
        self._middleware = middleware
        self._serving = serving
        """Returns the node that runs now, if there is one. Raises `LifecycleError` between start and stop."""
        self._max_payload_bytes = max_payload_bytes
        self._own_timeout: set[str] = set()
        """The workers that were registered with a timeout."""

    def add_worker(
        self, name: str, function: WorkerFn, given: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> Worker[Any, Any]:
        """Register a worker. Raises `ConfigurationError` if it cannot work."""
        node = self._serving(f"worker {name}")
        self._check_free(name, f"there is a worker {name!r} already")
        config = worker_config(name, given, defaults=defaults)
        for alias in config.aliases:
            self._check_free(alias, f"worker {name!r} has the alias {alias!r}, which is a worker's name already")
        function = function.function if isinstance(function, Worker) else function
        signature = Signature(name, function, config.execution_mode, max_bytes=self._max_payload_bytes)
        if config.concurrency_key is not None:
            signature.check_key(config.concurrency_key)
        added: dict[str, Worker[Any, Any]] = {
            known.name: Worker(known, function, signature=signature, app=self._app, retry_rule=rule_in(given))
            for known in (config, *(alias_config(config, alias) for alias in config.aliases))
        }
        self._registry.workers.update(added)
        if "timeout_seconds" in given:
            self._own_timeout |= added.keys()
        if node is not None:
            self._adopt(node, f"worker {name}", config.pool, lambda: [self._registry.workers.pop(one) for one in added])
        return added[name]

    def _check_free(self, name: str, problem: str) -> None:
        if name in self._registry.workers:
            owner = next((one for one, worker in self._registry.workers.items() if name in worker.config.aliases), None)
            where = f", as an alias of {owner!r}" if owner else ""
            message = f"{problem}{where}; give one of the two another name"
            raise DuplicateNameError(message)

    def add_pool(self, name: str, options: Mapping[str, Any]) -> PoolConfig:
        """Register a pool. Raises `ConfigurationError` if it cannot work."""
        node = self._serving(f"pool {name}")
        if name in self._registry.pools:
            message = f"there is a pool {name!r} already; give one of the two another name"
            raise DuplicateNameError(message)
        self._registry.pools[name] = pool_config(name, options)
        if node is not None:
            self._adopt(node, f"pool {name}", name, lambda: self._registry.pools.pop(name))
            warn_in_place([self._registry.pools[name]])
        return self._registry.pools[name]

    def _adopt(self, node: "Node", what: str, pool: str, undo: Callable[[], object]) -> None:
        """Have the running node serve what was just registered; undo the registration if it cannot."""
        try:
            registry = self.complete()
            check_in_place(registry.pools.values())
            _refuse_processes(what, registry.pools[pool])
        except (ConfigurationError, LifecycleError):
            undo()
            raise
        node.adopt(registry)

    def complete(self) -> Registry:
        """Return everything that is registered, checked together: pools and dependencies exist, and there is no cycle.

        All problems are reported at once.
        """
        problems = self._check_pools()
        gates: dict[str, Gates] = {}
        try:
            gates = compile_gates(self._registry.worker_configs())
        except ConfigurationError as error:
            problems.append(error)
        if problems:
            raise type(problems[0])("\n".join(str(problem) for problem in problems))
        self._take_pool_timeouts()
        workers = self._registry.workers
        return Registry(workers, self._registry.pool_configs(), gates, workers, self._middleware)

    def _check_pools(self) -> list[ConfigurationError]:
        errors: list[ConfigurationError] = []
        for name, worker in self._registry.workers.items():
            try:
                self._registry.pool(worker.config.pool)
            except UnknownPoolError as error:
                errors.append(UnknownPoolError(f"worker {name}: {error}"))
        return errors

    def _take_pool_timeouts(self) -> None:
        for name, worker in self._registry.workers.items():
            timeout = self._registry.pool(worker.config.pool).job_timeout
            if timeout is not None and name not in self._own_timeout:
                worker.config = replace(worker.config, timeout_seconds=timeout)


def _refuse_processes(what: str, pool: PoolConfig) -> None:
    if pool.kind == "process":
        message = (
            f"{what}: the processes of a pool of kind 'process' have imported the app already; register it before "
            "start(), in the module that they import"
        )
        raise LifecycleError(message)


def named_worker(
    given: Any, function: WorkerFn | None, fn: WorkerFn | None, named: Mapping[str, Any]
) -> tuple[str, WorkerFn, Mapping[str, Any]]:
    """Return the name, the function and the options of a worker.

    `given` is its name, its config, or a mapping with a name. The function has two names, and may be in the mapping.
    """
    if isinstance(given, WorkerConfig):
        named, given = merged(given.name, given, named), given.name
    elif isinstance(given, Mapping):
        named = dict(merged(str(given.get("name")), given, named))
        given, inside = _name_in("worker", named), named.pop("function", None)
        function, fn = function or inside, named.pop("fn", fn)
    function = _one_function(given, function, fn)
    return _name("worker", given, named), function, named


def named_pool(given: Any, options: Any, named: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name and the options of a pool. `given` is its name, its config, or a mapping with a name."""
    if isinstance(given, PoolConfig):
        given, named = given.name, {**_changed(given), **named}
    elif isinstance(given, Mapping):
        named = {**given, **named}
        given = _name_in("pool", named)
    return _name("pool", given, named), merged(given, options, named, what="pool", place="second")


def _name_in(kind: str, options: dict[str, Any]) -> Any:
    """Take the name out of a mapping of options."""
    if "name" not in options:
        instead = "write 'name' instead of 'id'" if "id" in options else "add 'name'"
        message = f"the {kind} has no name: {instead}: app.register_{kind}({{'name': …}})"
        raise ConfigurationError(message)
    return options.pop("name")


def _name(kind: str, given: Any, options: Mapping[str, Any]) -> str:
    if given is None:
        message = f"the {kind} has no name: app.register_{kind}({options.get('id', 'NAME')!r}, …)"
        raise ConfigurationError(message)
    if not isinstance(given, str):
        message = f"the name of a {kind} must be a string, not {shown(given)}"
        raise ConfigurationError(message)
    return given


def _one_function(name: Any, function: WorkerFn | None, fn: WorkerFn | None) -> WorkerFn:
    if callable(name):
        written = getattr(name, "__name__", "name")
        message = f"the name comes first: app.register_worker({written!r}, {written}, …)"
        raise ConfigurationError(message)
    if (function is None) == (fn is None):
        problem = "has no function" if fn is None else "has two functions"
        message = f"worker {name!r} {problem}: app.register_worker({name!r}, function, …)"
        raise ConfigurationError(message)
    return fn if function is None else function  # type: ignore[return-value]  # one of the two is given


def merged(
    name: str, options: Any, named: Mapping[str, Any], *, what: str = "worker", place: str = "third"
) -> Mapping[str, Any]:
    """Return the options of a registration, which may be given as a mapping or a config, by name, or both."""
    if options is None:
        return named
    if isinstance(options, WorkerConfig) and what == "worker":
        if options.name != name:
            message = f"worker {name!r} is given a WorkerConfig of {options.name!r}; give both one name"
            raise ConfigurationError(message)
        options = _changed(options)
    if not isinstance(options, Mapping):
        message = (
            f"{what} {name!r}: the {place} argument is a dict of options, not {shown(options)}; give options by name"
        )
        raise ConfigurationError(message)
    twice = sorted(options.keys() & named.keys())
    if twice:
        message = f"{what} {name!r}: {', '.join(twice)} is given twice, in the dict and by name; remove one"
        raise ConfigurationError(message)
    return {**options, **named}


def _changed(config: PoolConfig | WorkerConfig) -> dict[str, Any]:
    """Return the options that differ from the defaults, without the name: the others were not written by anyone."""
    defaults = asdict(type(config)(name=config.name))
    return {option: value for option, value in asdict(config).items() if value != defaults[option]}


def default_pool(max_concurrent: int) -> PoolConfig:
    """Return the default pool, of this size."""
    check_size("max_concurrent", max_concurrent)
    return pool_config(DEFAULT_POOL, {"min_workers": max_concurrent, "max_workers": max_concurrent})


def check_size(option: str, value: object) -> None:
    """Refuse what is not a whole number of at least 1."""
    if not isinstance(value, int) or value < 1:
        message = f"{option} must be a whole number of at least 1, not {value!r}"
        raise ConfigurationError(message)


def check_in_place(pools: Iterable[PoolConfig]) -> None:
    """Refuse pool options that cannot work where jobs run inside this process. All problems are reported at once."""
    problems = [
        f"pool {pool.name}: {option} replaces a process, but with start() a pool of kind {pool.kind!r} runs inside "
        f"yours; run the app with `shiftwork run`, or make it kind='process'"
        for pool in pools
        if pool.kind != "process"
        for option in ("max_jobs_per_instance", "max_memory_per_instance")
        if getattr(pool, option) is not None
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))


def warn_in_place(pools: Iterable[PoolConfig]) -> None:
    """Log which pools are not spread over several processes, because their jobs run inside this one."""
    for pool in pools:
        if pool.processes != 1:
            logger.warning(
                "pool %s: processes=%r has no effect with start(), which runs a pool of kind %r inside this process; "
                "run the app with `shiftwork run` to spread the pool over several processes",
                pool.name,
                pool.processes,
                pool.kind,
            )
