"""What the runtime is handed: for each worker, its configuration and how to call its function."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from windlass.core.admission import Gates
from windlass.core.model import PoolConfig, WorkerConfig
from windlass.runtime.context import Context


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
