"""The workers and pools that are known: registered in this process, or published in the store by any process, with the
schemas of their payloads.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from shiftwork.control.access.audit import Audit
from shiftwork.control.access.store_access import StoreAccess
from shiftwork.core.doc_kinds import POOL_CONFIG, SCHEMA, WORKER
from shiftwork.core.model.workers import PoolConfig, WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.errors import UnknownPoolError, UnknownWorkerError, nearest
from shiftwork.sentences import sentence
from shiftwork.store.docs import decoded, read_all

if TYPE_CHECKING:
    from shiftwork.handles.worker import Worker


DEFINITIONS_KEPT_SECONDS: Final = 5.0
"""How long definitions are reused before they are read again."""
CLOCK_SECONDS: Final = 5.0
"""How far behind ours the clock of a process that adds a job may be."""


DEFAULT_POOL: Final = "default"


class LocalRegistry:
    """The workers and pools registered in this process, and what it last read about the workers' states.

    It is a plain value: registration writes it, control reads it.
    """

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
            raise UnknownPoolError(
                sentence(
                    "there is no pool {what}: {hint}; register_pool makes one",
                    what=f"{name!r}",
                    hint=nearest(name, known),
                )
            )
        return pool

    def worker_configs(self) -> dict[str, WorkerConfig]:
        """Return the configuration of every registered worker."""
        return {name: worker.config for name, worker in self.workers.items()}

    def pool_configs(self) -> dict[str, PoolConfig]:
        """Return the configuration of every pool that is registered or used by a worker."""
        used = {worker.config.pool for worker in self.workers.values()}
        return {name: self.pool(name) for name in sorted(used | self.pools.keys())}


class StoredWorker(Struct, frozen=True):
    """A published worker, its pool, and the JSON Schema of its payload, if it takes one."""

    config: WorkerConfig
    pool: PoolConfig
    schema: bytes | None


class Published(Struct, frozen=True):
    """Everything that was published, from one read."""

    at: float
    workers: dict[str, WorkerConfig]
    pools: dict[str, PoolConfig]
    schemas: dict[str, bytes]


class Definitions:
    """Reads what processes have published, and keeps it for a few seconds for those who add or show many jobs."""

    def __init__(self, access: StoreAccess, now: Callable[[], float]) -> None:
        self._access = access
        self._now = now
        self._kept: Published | None = None

    def read_again(self) -> None:
        """Read everything again the next time."""
        self._kept = None

    async def workers(self) -> dict[str, WorkerConfig]:
        """Return every published worker, as it is now."""
        return await read_all(await self._access.open(), WORKER)

    async def pools(self) -> dict[str, PoolConfig]:
        """Return every published pool, as it is now."""
        return await read_all(await self._access.open(), POOL_CONFIG)

    async def worker(self, name: str, others: Iterable[str] = ()) -> StoredWorker:
        """Return a published worker, at most a few seconds old. `others` are names to suggest if it is unknown."""
        kept = self._kept
        if kept is None or name not in kept.workers or not self._is_fresh(kept):
            kept = await self._read()
        if name not in kept.workers:
            message = sentence(
                "there is no worker {what}: {hint}", what=f"{name!r}", hint=nearest(name, {*kept.workers, *others})
            )
            raise UnknownWorkerError(message)
        config = kept.workers[name]
        triggered = config.execution_mode is WorkerExecutionMode.TRIGGERED
        pool = kept.pools.get(config.pool) or PoolConfig(name=config.pool)
        # A worker that is not TRIGGERED may have a schema left over from when it was.
        return StoredWorker(config, pool, kept.schemas.get(name) if triggered else None)

    async def published(self) -> Published:
        """Return everything that was published, at most a few seconds old."""
        kept = self._kept
        return kept if kept is not None and self._is_fresh(kept) else await self._read()

    async def schemas(self, newest: Mapping[str, float]) -> Mapping[str, bytes]:
        """Return the schemas of these workers, where they are known. `newest`: when their newest jobs were added.

        A schema that marks secrets is published before the first job of its worker is added. So an unknown worker is
        looked up again only if one of its jobs may be newer than what was read last.
        """
        kept = await self.published()
        if _has_new_worker(newest, kept):
            kept = await self._read()
        return kept.schemas

    def _is_fresh(self, kept: Published) -> bool:
        return 0 <= self._now() - kept.at < DEFINITIONS_KEPT_SECONDS

    async def _read(self) -> Published:
        store = await self._access.open()
        docs = await store.docs(WORKER.name, POOL_CONFIG.name, SCHEMA)
        schemas = {doc.name: doc.body for doc in docs if doc.kind == SCHEMA}
        self._kept = Published(self._now(), decoded(docs, WORKER), decoded(docs, POOL_CONFIG), schemas)
        return self._kept


class ControlServices(Struct, frozen=True):
    """What all families of commands and questions stand on."""

    access: StoreAccess
    now: Callable[[], float]
    registry: LocalRegistry
    definitions: Definitions
    audit: Audit


class CommandFamily:
    """Commands and questions about one thing, as `control.control` lists them."""

    def __init__(self, services: ControlServices) -> None:
        self._access = services.access
        self._now = services.now
        self._registry = services.registry
        self._definitions = services.definitions
        self._audit = services.audit


def _has_new_worker(newest: Mapping[str, float], kept: Published) -> bool:
    unknown = newest.keys() - kept.workers.keys() - kept.schemas.keys()
    return any(newest[name] > kept.at - CLOCK_SECONDS for name in unknown)
