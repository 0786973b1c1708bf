"""Events, as the server keeps them."""

from collections.abc import Sequence
from typing import Any, Final

from shiftwork.core.doc_kinds import read_event
from shiftwork.core.model.event import Event

EVENT_HEAD: Final = 8
"""The size of what precedes a stored event: its number, so that no two events are equal."""


def newest(key: bytes, after: int, limit: int, before: int | None) -> tuple[Any, ...]:
    """Return the command that reads the newest events between two numbers."""
    end = "+inf" if before is None else f"({before}"
    return ("ZRANGE", key, end, f"({after}", "BYSCORE", "REV", "LIMIT", 0, max(0, limit), "WITHSCORES")


def read_events(flat: Sequence[bytes]) -> list[Event]:
    """Return the events of its reply, oldest first."""
    pairs = zip(flat[::2], flat[1::2], strict=True)
    return [read_event(int(number), body[EVENT_HEAD:]) for body, number in reversed(list(pairs))]
