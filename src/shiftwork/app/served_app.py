"""An app, as the processes need it that run its jobs and call its hooks for a node that does not import it."""

from collections.abc import Callable

from shiftwork.errors import ConfigurationError
from shiftwork.events import Hooks
from shiftwork.runtime.context.surroundings import Surroundings
from shiftwork.runtime.node.node_settings import NodeSettings
from shiftwork.runtime.processes.messages import Definition
from shiftwork.runtime.registry import Registry


class ServedApp:
    """What `shiftwork run` and the processes that it starts ask an app for."""

    def __init__(
        self,
        complete: Callable[[], Registry],
        hooks: Hooks,
        surroundings: Surroundings,
        settings: NodeSettings,
        *,
        url: str | None,
        namespace: str,
        max_payload_bytes: int,
        encryption_keys: tuple[str, ...],
    ) -> None:
        self.hooks = hooks
        self.surroundings = surroundings
        """What is around the jobs of this process."""
        self.registry = complete
        """Returns everything that is registered, checked together."""
        self._settings = settings
        self._url = url
        self._namespace = namespace
        self._max_payload_bytes = max_payload_bytes
        self._encryption_keys = encryption_keys

    def definition(self) -> Definition:
        """Return everything that a node must know about this app in order to run it without importing it."""
        if self._url is None:
            message = "shiftwork run needs a store that is given as a URL, so that other processes can open it too"
            raise ConfigurationError(message)
        registry = self.registry()
        return Definition(
            store=self._url,
            namespace=self._namespace,
            tick_interval=self._settings.tick_interval,
            lease_seconds=self._settings.lease_seconds,
            health_checks=self._settings.health_checks,
            workers=[worker.config for worker in registry.workers.values()],
            pools=list(registry.pools.values()),
            gates=dict(registry.gates),
            max_payload_bytes=self._max_payload_bytes,
            schemas={name: worker.schema for name, worker in registry.workers.items() if worker.schema},
            hooks=tuple(sorted(self.hooks.names)),
            encryption_keys=self._encryption_keys,
        )
