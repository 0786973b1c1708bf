"""The messages between a node and the process that serves its dashboard."""

from msgspec import Struct

from shiftwork.core.health.health_values import Strays
from shiftwork.core.model.event import Event


class WebSetup(Struct, frozen=True, kw_only=True, tag=True):
    """The first message: what to serve, and how."""

    store: str
    """The URL of the store, with its password: not for the command line, which every user can read."""
    namespace: str
    lease_seconds: float
    host: str
    trust_loopback: bool
    log_level: str
    log_format: str
    encryption_keys: tuple[str, ...] = ()
    """The keys themselves, for the same reason."""


class NodeReport(Struct, frozen=True, kw_only=True, tag=True):
    """How the node is. It comes every few seconds; a node that hangs sends none."""

    not_ready: str | None
    """Why the node is not ready; None if it is."""
    store_fault: str | None
    """Which write of the node fails now; None if none does. A store that is full cannot hold it."""
    strays: dict[str, Strays]
    """The runs that were given up on and go on regardless, by instance."""


class NodeToWeb(Struct, frozen=True, array_like=True):
    """The messages that a node sends at a time."""

    messages: list[WebSetup | NodeReport]


class DashboardEvent(Struct, frozen=True, tag=True):
    """A change was made in the dashboard; the node calls the app's hooks for it."""

    event: Event


class WebToNode(Struct, frozen=True, array_like=True):
    """The messages that the process sends at a time."""

    messages: list[DashboardEvent]
