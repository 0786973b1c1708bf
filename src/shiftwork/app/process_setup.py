"""How the processes of process pools are set up: each imports the app by its name, and runs its jobs."""

import logging
import sys
from pathlib import Path
from types import ModuleType

from shiftwork.errors import ConfigurationError
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.registry import Registry


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
