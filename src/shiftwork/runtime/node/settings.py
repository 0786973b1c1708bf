"""How a node behaves, and what all its parts share."""

from math import inf
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.errors import ConfigurationError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.registry import Registry
from shiftwork.store.protocol import Store


class Settings(Struct, frozen=True, kw_only=True):
    """How a node behaves."""

    tick_interval: float = 5.0
    lease_seconds: float = 15.0
    leads: bool = True
    """False for a visitor that runs one job and goes."""
    apart: Literal["none", "process", "all"] = "process"
    """Which pools run in processes of their own."""
    labels: tuple[str, ...] = ()
    health_checks: bool = True
    pulse_in_thread: bool = True
    """False only where a test moves the clock by hand."""
    namespace: str = ""
    """Its name, for messages; empty if nobody knows it here."""

    def __post_init__(self) -> None:
        for name in ("tick_interval", "lease_seconds"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < inf:
                message = f"{name} must be a number of seconds above 0, not {value!r}"
                raise ConfigurationError(message)

    def visitor(self) -> "Settings":
        """For a node that comes for one errand and leads nobody."""
        return replace(self, leads=False, health_checks=False, apart="none")


class Shared(Struct, frozen=True, kw_only=True):
    """What all parts of a node share."""

    node: str
    """Its name."""
    registry: Registry
    store: Store
    clock: Clock
    settings: Settings
