"""The policies under which a history was made: what the processes say they have registered.

Processes of two versions of an app may disagree, and which policy a store applied at which moment is not recorded. So a
policy counts only where all processes that know the worker agree on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import MsgspecError

from shiftwork.core.model.workers import WorkerConfig
from shiftwork.core.options.graph import alias_config, compile_gates
from shiftwork.core.workers.admission import Gates
from shiftwork.errors import ConfigurationError

Defined = Mapping[str, Mapping[str, Any]]
"""The workers of one process, each with its configuration as it was recorded."""


class Policies:
    """What each worker's policy was, as far as all processes agree."""

    def __init__(self, defined: Sequence[Defined]) -> None:
        self._versions: dict[str, list[WorkerConfig]] = {}
        self._gates: dict[str, list[Gates]] = {}
        seen: list[dict[str, WorkerConfig]] = []
        for workers in defined:
            configs = _with_aliases({name: config for name, raw in workers.items() if (config := _config(raw))})
            if configs and configs not in seen:
                seen.append(configs)
                self._note(configs)

    def _note(self, configs: dict[str, WorkerConfig]) -> None:
        for name, config in configs.items():
            versions = self._versions.setdefault(name, [])
            if config not in versions:
                versions.append(config)
        for name, gates in _gates(configs).items():
            known = self._gates.setdefault(name, [])
            if gates not in known:
                known.append(gates)

    @property
    def workers(self) -> list[str]:
        """Return the names of all workers."""
        return sorted(self._versions)

    def versions(self, worker: str) -> list[WorkerConfig]:
        """Return every configuration that a process had for a worker."""
        return self._versions.get(worker, [])

    def config(self, worker: str) -> WorkerConfig | None:
        """Return a worker's configuration, if all processes that know it agree."""
        versions = self.versions(worker)
        return versions[0] if len(versions) == 1 else None

    def gates(self, worker: str) -> Gates | None:
        """Return a worker's gates, if all processes that know it agree."""
        known = self._gates.get(worker, [])
        return known[0] if len(known) == 1 else None

    def most_retries(self, worker: str) -> int | None:
        """Return the largest number of retries that any process allows; None if no process knows the worker."""
        return max((config.max_retries for config in self.versions(worker)), default=None)


def _config(raw: Mapping[str, Any]) -> WorkerConfig | None:
    try:
        return msgspec.convert(raw, WorkerConfig)
    except MsgspecError:
        return None


def _with_aliases(configs: dict[str, WorkerConfig]) -> dict[str, WorkerConfig]:
    aliases = {alias: alias_config(config, alias) for config in configs.values() for alias in config.aliases}
    return {**aliases, **configs}


def _gates(configs: dict[str, WorkerConfig]) -> dict[str, Gates]:
    try:
        return compile_gates(configs)
    except ConfigurationError:
        return {}
