"""The settings of a node, and its condition in words."""

from math import inf
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model.workers import PoolConfig
from shiftwork.errors import ConfigurationError


class NodeCondition(Struct, frozen=True):
    """The state of a node."""

    leased: bool
    """Whether the node has renewed its lease in time."""
    words: str
    """The state in one line, for people."""


class NodeSettings(Struct, frozen=True, kw_only=True):
    """The settings of a node, and its condition in words."""

    tick_interval: float = 5.0
    lease_seconds: float = 15.0
    leads: bool = True
    """False for a visitor, which runs one job and leaves."""
    apart: Literal["none", "process", "all"] = "process"
    """Which pools run in processes of their own."""
    labels: tuple[str, ...] = ()
    health_checks: bool = True
    every_run: bool = False
    """Whether starts and completions of runs are logged at INFO; otherwise they are at DEBUG."""
    pulse_in_thread: bool = True
    """False only where a test moves the clock by hand."""
    namespace: str = ""
    """The namespace, for messages; empty if it is not known here."""

    def __post_init__(self) -> None:
        for name in ("tick_interval", "lease_seconds"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < inf:
                message = f"{name} must be a number of seconds above 0, not {value!r}"
                raise ConfigurationError(message)

    def visitor(self) -> "NodeSettings":
        """Return the settings of a node that runs one job and leaves, and never leads."""
        return replace(self, leads=False, health_checks=False, apart="none")

    def driven(self) -> "NodeSettings":
        """Return the settings of a node that a test drives step by step, in one process."""
        return replace(self, health_checks=False, apart="none", pulse_in_thread=False)

    def runs_apart(self, pool: PoolConfig) -> bool:
        """Return whether the jobs of this pool run in processes of their own."""
        return self.apart == "all" or (self.apart == "process" and pool.kind == "process")
