"""What people register: workers and pools, each checked at once, and all of them together at start."""

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from shiftwork.core.graph import compile_gates
from shiftwork.core.model import PoolConfig
from shiftwork.core.options import pool_config, worker_config
from shiftwork.errors import ConfigurationError, DuplicateNameError, UnknownPoolError, nearest
from shiftwork.handles.codec import Signature
from shiftwork.handles.worker import Desk, Worker
from shiftwork.runtime.engine.registry import Registry

if TYPE_CHECKING:
    from shiftwork.core.admission import Gates

DEFAULT_POOL: Final = "default"


class Registrations:
    """The workers and pools of one orchestrator."""

    def __init__(self, desk: Desk, *, max_concurrent: int, max_payload_bytes: int) -> None:
        given: dict[str, object] = {"max_concurrent": max_concurrent, "max_payload_bytes": max_payload_bytes}
        for option, value in given.items():
            if not isinstance(value, int) or value < 1:
                message = f"{option} must be a whole number of at least 1, not {value!r}"
                raise ConfigurationError(message)
        self.workers: dict[str, Worker[Any, Any]] = {}
        self.pools: dict[str, PoolConfig] = {}
        self._desk = desk
        self._max_payload_bytes = max_payload_bytes
        self._own_timeout: set[str] = set()
        default = {"min_workers": max_concurrent, "max_workers": max_concurrent}
        self._default_pool = pool_config(DEFAULT_POOL, default)

    def add_worker(
        self, name: str, function: Callable[..., Any], options: Mapping[str, Any], defaults: Mapping[str, Any]
    ) -> Worker[Any, Any]:
        """Register a worker, or say what is wrong with it."""
        if name in self.workers:
            message = f"there is a worker {name!r} already; give one of the two another name"
            raise DuplicateNameError(message)
        config = worker_config(name, options, defaults=defaults)
        signature = Signature(name, function, config.execution_mode, max_bytes=self._max_payload_bytes)
        if config.concurrency_key is not None:
            signature.check_key(config.concurrency_key)
        worker: Worker[Any, Any] = Worker(config, function, signature=signature, desk=self._desk)
        self.workers[name] = worker
        if "timeout_seconds" in options:
            self._own_timeout.add(name)
        return worker

    def add_pool(self, name: str, options: Mapping[str, Any]) -> PoolConfig:
        """Register a pool, or say what is wrong with it."""
        if name in self.pools:
            message = f"there is a pool {name!r} already; give one of the two another name"
            raise DuplicateNameError(message)
        self.pools[name] = pool_config(name, options)
        return self.pools[name]

    def pool(self, name: str) -> PoolConfig:
        """A pool's configuration; the default pool exists without being registered."""
        pool = self.pools.get(name)
        if pool is None and name == DEFAULT_POOL:
            pool = self._default_pool
        if pool is None:
            known = {DEFAULT_POOL, *self.pools}
            message = f"there is no pool {name!r}: {nearest(name, known)}; register_pool makes one"
            raise UnknownPoolError(message)
        return pool

    def complete(self) -> Registry:
        """Everything together, checked: pools exist, dependencies exist and have no cycle. All problems at once."""
        problems = self._check_pools()
        gates: dict[str, Gates] = {}
        try:
            gates = compile_gates({name: worker.config for name, worker in self.workers.items()})
        except ConfigurationError as error:
            problems.append(error)
        if problems:
            raise type(problems[0])("\n".join(str(problem) for problem in problems))
        self._take_pool_timeouts()
        used = {worker.config.pool for worker in self.workers.values()} | self.pools.keys()
        return Registry(self.workers, {name: self.pool(name) for name in sorted(used)}, gates, self.workers)

    def _check_pools(self) -> list[ConfigurationError]:
        errors: list[ConfigurationError] = []
        for name, worker in self.workers.items():
            try:
                self.pool(worker.config.pool)
            except UnknownPoolError as error:
                errors.append(UnknownPoolError(f"worker {name}: {error}"))
        return errors

    def _take_pool_timeouts(self) -> None:
        for name, worker in self.workers.items():
            timeout = self.pool(worker.config.pool).job_timeout
            if timeout is not None and name not in self._own_timeout:
                worker.config = replace(worker.config, timeout_seconds=timeout)


def check_in_place(pools: Iterable[PoolConfig]) -> None:
    """Refuse what a pool asks for that cannot be had where its jobs run inside this process. All problems at once."""
    problems = [
        f"pool {pool.name}: {option} replaces a process, and a pool of kind {pool.kind!r} runs inside yours with "
        f"start(); run the app with `shiftwork run`, or make it kind='process'"
        for pool in pools
        if pool.kind != "process"
        for option in ("max_jobs_per_instance", "max_memory_per_instance")
        if getattr(pool, option) is not None
    ]
    if problems:
        raise ConfigurationError("\n".join(problems))


def import_name(app: object, pool: str) -> str:
    """How another process gets at the same orchestrator: `module:name`, or a program's path and a name."""
    for module in [*sys.modules.values()]:
        for name, value in [*getattr(module, "__dict__", {}).items()]:
            if value is app and not name.startswith("__"):
                if module.__name__ != "__main__":
                    return f"{module.__name__}:{name}"
                return _in_program(module, name)
    message = (
        f"pool {pool}: kind='process' runs jobs in processes of their own, and those must be able to import this "
        "orchestrator: give it a name in a module, as in `app = WorkerOrchestrator(…)`"
    )
    raise ConfigurationError(message)


def _in_program(module: ModuleType, name: str) -> str:
    spec, file = module.__spec__, getattr(module, "__file__", None)
    if spec is not None:
        return f"{spec.name}:{name}"
    if file is None:
        message = "kind='process' needs a program in a file, which its processes can import; this one was typed in"
        raise ConfigurationError(message)
    return f"{Path(file).resolve()}:{name}"
