"""What the runtime is given: the configuration of each worker, and how to call its function."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from shiftwork.core.jobs.undecodable import version_of
from shiftwork.core.model.workers import PoolConfig, WorkerConfig
from shiftwork.core.options.retry_rules import RetryRule
from shiftwork.core.workers.admission import Gates
from shiftwork.runtime.context.context import Context
from shiftwork.runtime.context.current_run import WorkerValues
from shiftwork.runtime.context.middleware import Middleware


class WorkerDefinition(Protocol):
    """A worker, as far as a process knows it that does not run it."""

    config: WorkerConfig

    @property
    def schema(self) -> bytes | None:
        """The JSON Schema of its payload; None for a worker without arguments."""


class Callee(WorkerDefinition, WorkerValues, Protocol):
    """A worker's function, prepared once so that a run costs little."""

    is_async: bool

    @property
    def retry_rule(self) -> RetryRule | None:
        """The function that decides on retries, if the policy is one."""

    @property
    def function(self) -> Callable[..., Any]:
        """The user's function."""

    def bind(self, payload: bytes, context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and the named arguments of a run. Raises `PayloadDecodingError`."""

    def discreet(self, payload: bytes, text: str, values: Sequence[bytes] = ()) -> str:
        """Return a text that a run has made, without what is secret in its payload, and without these values."""

    def encode_result(self, value: Any) -> bytes | None:
        """Return the result as it is stored. Raises `ResultEncodingError`."""


class Registry:
    """Everything that is registered, complete and checked."""

    def __init__(
        self,
        workers: Mapping[str, WorkerDefinition],
        pools: Mapping[str, PoolConfig],
        gates: Mapping[str, Gates],
        callees: Mapping[str, Callee] | None = None,
        middleware: Middleware | None = None,
    ) -> None:
        self.workers: Mapping[str, WorkerDefinition] = workers
        self.pools: Mapping[str, PoolConfig] = pools
        self.gates: Mapping[str, Gates] = gates
        self.callees: Mapping[str, Callee] = {} if callees is None else callees
        """The workers that can be run in this process."""
        self.middleware: Middleware = middleware or Middleware()
        """What is around the jobs that run in this process."""
        self._version: str | None = None

    def extend(self, other: "Registry") -> None:
        """Take over what another registry has, which knows everything that this one knows."""
        self.workers, self.pools, self.gates, self.callees = other.workers, other.pools, other.gates, other.callees
        self._version = None

    @property
    def version(self) -> str:
        """The version of the app: other nodes may know the same workers with other payloads."""
        if self._version is None:
            self._version = version_of({name: worker.schema for name, worker in [*self.workers.items()]})
        return self._version
