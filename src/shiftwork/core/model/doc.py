"""The small records of a store, and two of their kinds. `core.docs` decodes them."""

from msgspec import Struct, field

from shiftwork.core.model.outcome import Lost


class Doc(Struct, frozen=True, gc=False):
    """A small record that is changed by compare-and-set. Version 0 means that it must not exist yet."""

    kind: str
    name: str
    body: bytes
    version: int = 0


class PoolDoc(Struct, frozen=True):
    """What people changed about a pool at run time (doc kind "pool")."""

    paused: bool = False
    reason: str | None = None
    since: float | None = None
    min_workers: int | None = None
    max_workers: int | None = None


class Plan(Struct, frozen=True, kw_only=True):
    """How many slots of which pool each node runs (doc kind "plan"). The leader writes it, nodes follow it."""

    nodes: dict[str, dict[str, int]] = field(default_factory=dict)
    """The number of slots, by node and pool."""
    unplaced: dict[str, str] = field(default_factory=dict)
    """The pools that should have more slots than fit on the nodes, each with the reason."""
    drained: dict[str, float] = field(default_factory=dict)
    """The nodes that a person wants empty, each with the time since when."""
    lost: dict[str, Lost] = field(default_factory=dict)
    """The nodes that vanished a short while ago and have not been replaced."""
