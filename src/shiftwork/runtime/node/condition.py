"""The state of a node, for probes and for people."""

from msgspec import Struct


class Condition(Struct, frozen=True):
    """The state of a node."""

    leased: bool
    """Whether the node has renewed its lease in time."""
    words: str
    """The state in one line, for people."""
