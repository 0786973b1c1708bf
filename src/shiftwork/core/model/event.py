"""What has happened, for logs, hooks and people."""

from typing import Any, Final

from msgspec import Struct, field


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened, kept for people."""

    at: float
    name: str
    subject: str
    message: str
    data: dict[str, Any] = field(default_factory=dict)
    seq: int = 0
    parts: list[Any] | None = None
    """What the message is made of, as `sentences.parts_of` writes it; None if that was not kept."""

    @property
    def by_person(self) -> bool:
        """Return whether a person caused it; its data then name that person. These events are the audit log."""
        return "by" in self.data


EVENTS_KEPT: Final = 10_000
"""How many events are kept of those that people caused, and as many of all others, so that neither crowds out the
other."""


def actor_of(event: Event) -> str | None:
    """Return who caused an event; None if no person and no program did."""
    by = event.data.get("by")
    return by if isinstance(by, str) else None
