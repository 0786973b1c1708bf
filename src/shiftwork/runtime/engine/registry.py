"""What the runtime is handed: for each worker, its configuration and how to call its function. And making it known."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import msgpack

from shiftwork.core.admission import Gates
from shiftwork.core.model import Doc, PoolConfig, WorkerConfig
from shiftwork.runtime.engine.context import Context
from shiftwork.store.protocol import Store


class Known(Protocol):
    """A worker, as far as one must know it who does not run it."""

    config: WorkerConfig

    @property
    def schema(self) -> bytes | None:
        """What it takes, as JSON Schema; None for one that takes nothing."""


class Callee(Known, Protocol):
    """A worker's function, made ready once so that a run costs little."""

    is_async: bool

    @property
    def function(self) -> Callable[..., Any]:
        """The user's function."""

    def bind(self, payload: bytes, context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and named arguments for a run. Raises `PayloadDecodingError`."""

    def discreet(self, payload: bytes, text: str) -> str:
        """A text that a run with this payload has made, without what is secret in the payload."""

    def encode_result(self, value: Any) -> bytes | None:
        """The result as it is stored. Raises `ResultEncodingError`."""


class Registry:
    """Everything that is registered, complete and checked."""

    def __init__(
        self,
        workers: Mapping[str, Known],
        pools: Mapping[str, PoolConfig],
        gates: Mapping[str, Gates],
        callees: Mapping[str, Callee] | None = None,
    ) -> None:
        self.workers = workers
        self.pools = pools
        self.gates = gates
        self.callees = callees or {}
        """The workers that can be run in this process."""


async def publish(registry: Registry, store: Store) -> None:
    """Make the definitions known to everybody who shares the store."""
    wanted = {("gates", name): msgpack.encode(gates) for name, gates in registry.gates.items()}
    # What is secret before the worker: who knows a worker takes it to be known whole.
    wanted |= {("schema", name): callee.schema for name, callee in registry.workers.items() if callee.schema}
    wanted |= {("worker", name): msgpack.encode(callee.config) for name, callee in registry.workers.items()}
    wanted |= {("pool_config", name): msgpack.encode(pool) for name, pool in registry.pools.items()}
    kinds = ("gates", "worker", "schema", "pool_config")
    stored = {(doc.kind, doc.name): doc for kind in kinds for doc in await store.docs(kind)}
    for (kind, name), body in wanted.items():
        there = stored.get((kind, name))
        if there is None or there.body != body:
            # Losing this race means that another process has just written its definition: the last one to start wins.
            await store.put(Doc(kind, name, body, there.version if there else 0))
