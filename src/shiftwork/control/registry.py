"""The workers and pools registered in this process. It is a plain value: registration writes it, control reads it."""

from typing import TYPE_CHECKING, Any, Final

from shiftwork.core.model.workers import PoolConfig, WorkerConfig, WorkerState
from shiftwork.errors import UnknownPoolError, nearest

if TYPE_CHECKING:
    from shiftwork.handles.worker import Worker

DEFAULT_POOL: Final = "default"


class LocalRegistry:
    """The workers and pools registered in this process, and what it last read about the workers' states."""

    def __init__(self, default_pool: PoolConfig | None = None, max_payload_bytes: int | None = None) -> None:
        self.max_payload_bytes = max_payload_bytes
        """How many bytes a payload, a result or the value of a signal may have; None without an app, which decides."""
        self.workers: dict[str, Worker[Any, Any]] = {}
        self.pools: dict[str, PoolConfig] = {}
        self.states: dict[str, WorkerState] = {}
        """The state of each worker as last read; a running node keeps it up to date."""
        self._default_pool = default_pool or PoolConfig(name=DEFAULT_POOL)

    def with_own_states(self) -> "LocalRegistry":
        """Return a registry of the same workers and pools that knows nothing of their states: for another store."""
        other = LocalRegistry(self._default_pool, self.max_payload_bytes)
        other.workers, other.pools = self.workers, self.pools
        return other

    def pool(self, name: str) -> PoolConfig:
        """Return a pool's configuration; the default pool exists without being registered."""
        pool = self.pools.get(name)
        if pool is None and name == DEFAULT_POOL:
            pool = self._default_pool
        if pool is None:
            known = {DEFAULT_POOL, *self.pools}
            message = f"there is no pool {name!r}: {nearest(name, known)}; register_pool makes one"
            raise UnknownPoolError(message)
        return pool

    def worker_configs(self) -> dict[str, WorkerConfig]:
        """Return the configuration of every registered worker."""
        return {name: worker.config for name, worker in self.workers.items()}

    def pool_configs(self) -> dict[str, PoolConfig]:
        """Return the configuration of every pool that is registered or used by a worker."""
        used = {worker.config.pool for worker in self.workers.values()}
        return {name: self.pool(name) for name in sorted(used | self.pools.keys())}
