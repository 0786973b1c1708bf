"""A move of everything a store holds to another store, as both stores record it. These records do not move."""

from typing import Literal

from msgspec import Struct


class Departure(Struct, frozen=True, kw_only=True):
    """Where the content of this store goes, or has gone (doc kind "departure", in the source)."""

    token: str
    to: str
    state: Literal["moving", "moved", "abandoned"] = "moving"
    at: float = 0.0
    horizon: float = 0.0
    """Of the jobs created after this instant, only those in `carried` have moved."""
    carried: tuple[str, ...] = ()


class Arrival(Struct, frozen=True, kw_only=True):
    """Where the content of this store comes from (doc kind "arrival", in the destination)."""

    token: str
    """The token of the departure that belongs to it."""
    source: str
    done: bool = False
