"""How a node is, for probes and for people."""

from msgspec import Struct


class Condition(Struct, frozen=True):
    """How a node is."""

    leased: bool
    """Whether it has renewed its lease in time."""
    words: str
    """For people."""
