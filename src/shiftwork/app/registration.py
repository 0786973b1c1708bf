"""Registering workers and pools: each is checked at once, and all of them together at start."""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from shiftwork.control.registry import DEFAULT_POOL, LocalRegistry
from shiftwork.core.graph import compile_gates
from shiftwork.core.model import PoolConfig
from shiftwork.core.options import pool_config, worker_config
from shiftwork.errors import ConfigurationError, DuplicateNameError, UnknownPoolError
from shiftwork.handles.codec import Signature
from shiftwork.handles.submitter import Submitter
from shiftwork.handles.worker import Worker
from shiftwork.runtime.engine.registry import Registry

if TYPE_CHECKING:
    from shiftwork.core.admission import Gates


class Registrations:
    """Registers workers and pools: checks each one, and writes it into the registry of this process."""

    def __init__(self, registry: LocalRegistry, submitter: Submitter, *, max_payload_bytes: int) -> None:
        check_size("max_payload_bytes", max_payload_bytes)
        self._registry = registry
        self._submitter = submitter
        self._max_payload_bytes = max_payload_bytes
        self._own_timeout: set[str] = set()
        """The workers that were registered with a timeout."""

    def add_worker(
        self, name: str, function: Callable[..., Any], options: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> Worker[Any, Any]:
        """Register a worker. Raises `ConfigurationError` if it cannot work."""
        if name in self._registry.workers:
            message = f"there is a worker {name!r} already; give one of the two another name"
            raise DuplicateNameError(message)
        config = worker_config(name, options, defaults=defaults)
        signature = Signature(name, function, config.execution_mode, max_bytes=self._max_payload_bytes)
        if config.concurrency_key is not None:
            signature.check_key(config.concurrency_key)
        worker: Worker[Any, Any] = Worker(config, function, signature=signature, submitter=self._submitter)
        self._registry.workers[name] = worker
        if "timeout_seconds" in options:
            self._own_timeout.add(name)
        return worker

    def add_pool(self, name: str, options: Mapping[str, Any]) -> PoolConfig:
        """Register a pool. Raises `ConfigurationError` if it cannot work."""
        if name in self._registry.pools:
            message = f"there is a pool {name!r} already; give one of the two another name"
            raise DuplicateNameError(message)
        self._registry.pools[name] = pool_config(name, options)
        return self._registry.pools[name]

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
        return Registry(workers, self._registry.pool_configs(), gates, workers)

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


def import_name(app: object, pool: str) -> str:
    """Return how another process imports this orchestrator: `module:name`, or a program's path and a name."""
    for module in [*sys.modules.values()]:
        for name, value in [*getattr(module, "__dict__", {}).items()]:
            if value is app and not name.startswith("__"):
                if module.__name__ != "__main__":
                    return f"{module.__name__}:{name}"
                return _in_program(module, name)
    message = (
        f"pool {pool}: kind='process' runs jobs in processes of their own, which must be able to import this "
        "orchestrator: give it a name in a module, as in `app = WorkerOrchestrator(…)`"
    )
    raise ConfigurationError(message)


def _in_program(module: ModuleType, name: str) -> str:
    spec, file = module.__spec__, getattr(module, "__file__", None)
    if spec is not None:
        return f"{spec.name}:{name}"
    if file is None:
        message = "kind='process' needs a program in a file that its processes can import; this one has no file"
        raise ConfigurationError(message)
    return f"{Path(file).resolve()}:{name}"
