"""What other processes need of an app: those that `shiftwork run` starts, and those of process pools.

Each of them imports the app by its name, and runs its jobs or calls its hooks.
"""

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from shiftwork.errors import ConfigurationError
from shiftwork.events import Hooks
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.node.node_settings import NodeSettings
from shiftwork.runtime.processes.messages import Definition, Setup
from shiftwork.runtime.registry import Registry


class ServedApp:
    """What `shiftwork run` and the processes that it starts ask an app for."""

    def __init__(
        self,
        complete: Callable[[], Registry],
        hooks: Hooks,
        middleware: Middleware,
        settings: NodeSettings,
        *,
        url: str | None,
        namespace: str,
        max_payload_bytes: int,
        encryption_keys: tuple[str, ...],
    ) -> None:
        self.hooks = hooks
        self.middleware = middleware
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


def setup_of(app: object, registry: Registry, *, max_payload_bytes: int) -> Setup | None:
    """Return the setup of the processes of process pools; None if there are no such pools."""
    apart = [pool.name for pool in registry.pools.values() if pool.kind == "process"]
    if not apart:
        return None
    root = logging.getLogger()
    return Setup(
        app=import_name(app, apart[0]),
        role="alone",
        path=sys.path,
        max_payload_bytes=max_payload_bytes,
        log_level=logging.getLevelName(root.level).lower() if root.handlers else None,
    )


def import_name(app: object, pool: str) -> str:
    """Return how another process imports this orchestrator: `module:name`, or a program's path and a name."""
    name = name_in_modules(app)
    if name is None:
        message = (
            f"pool {pool}: kind='process' runs jobs in processes of their own, which must be able to import this "
            "orchestrator: give it a name in a module, as in `app = WorkerOrchestrator(…)`"
        )
        raise ConfigurationError(message)
    return name


def name_in_modules(app: object) -> str | None:
    """Return the name under which a module has this orchestrator; None if no module does."""
    for module in [*sys.modules.values()]:
        for name, value in [*getattr(module, "__dict__", {}).items()]:
            if value is app and not name.startswith("__"):
                if module.__name__ != "__main__":
                    return f"{module.__name__}:{name}"
                return _in_program(module, name)
    return None


def _in_program(module: ModuleType, name: str) -> str:
    spec, file = module.__spec__, getattr(module, "__file__", None)
    if spec is not None:
        return f"{spec.name}:{name}"
    if file is None:
        message = "kind='process' needs a program in a file that its processes can import; this one has no file"
        raise ConfigurationError(message)
    return f"{Path(file).resolve()}:{name}"
