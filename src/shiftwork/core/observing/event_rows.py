"""Which events match a filter, and the rows in which they are shown.

Jobs of one worker that die of one error within a minute are one row: otherwise a service that is down would fill the
page with thousands of rows. "One error" is what the dead-letter queue groups by (`core.observing.dead_groups`).
"""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from shiftwork.core.model.event import Event, actor_of
from shiftwork.core.observing.dead_groups import NO_ERROR, group_key
from shiftwork.core.words import printable
from shiftwork.sentences import restored, sentence

FOLDED: Final = "job.dead"
FOLD_SECONDS: Final = 60.0

_OF_WORKERS: Final = frozenset({"worker", "schedule", "health"})
_OF_POOLS: Final = frozenset({"pool", "health"})
"""The first words of the names of events whose subject may be a worker, and a pool."""


class EventFilter(Struct, frozen=True, kw_only=True):
    """Which events match: all given conditions must hold."""

    names: frozenset[str] = frozenset()
    """Their names; none means all."""
    subject: str | None = None
    workers: frozenset[str] | None = None
    """They are about one of these workers, or about one of the breakers, or about the pool."""
    breakers: frozenset[str] = frozenset()
    pool: str | None = None
    by: str | None = None
    """Who caused them: a name as it is recorded, or without its machine."""
    since: float | None = None
    until: float | None = None

    @property
    def whole(self) -> bool:
        """Return whether there is no condition, so that every event matches."""
        return self == EventFilter()

    def matches(self, event: Event) -> bool:
        """Return whether an event fulfils all conditions."""
        return (
            (not self.names or event.name in self.names)
            and self.subject in {None, event.subject}
            and (self.workers is None or self._is_about(event))
            and (self.by is None or self.by in _names_of(actor_of(event)))
            and (self.since is None or event.at >= self.since)
            and (self.until is None or event.at < self.until)
        )

    def _is_about(self, event: Event) -> bool:
        kind = event.name.partition(".")[0]
        about = _strings(event.data.get("worker")) | _strings(event.data.get("workers"))
        about |= {event.subject} if kind in _OF_WORKERS else set()
        pools = _strings(event.data.get("pool")) | ({event.subject} if kind in _OF_POOLS else set())
        return (
            self.pool in pools
            or not about.isdisjoint(self.workers or ())
            or (kind == "breaker" and event.subject in self.breakers)
        )


class EventRow(Struct):
    """An event, or several that are shown as one."""

    event: Event
    """The newest of them."""
    count: int = 1
    first_at: float = 0.0
    """When the oldest of them happened."""


class EventRows:
    """At most this many rows, made from events, the newest first."""

    def __init__(self, limit: int) -> None:
        self._rows: list[EventRow] = []
        self._open: dict[str, EventRow] = {}
        """The last row of dead jobs of each kind, which an older one may join."""
        self._limit = limit

    def add(self, event: Event) -> bool:
        """Add an event that is older than all before; return False if there is no room for it."""
        key = _fold_key(event)
        row = None if key is None else self._open.get(key)
        if row is not None and row.event.at - event.at <= FOLD_SECONDS:
            row.count, row.first_at = row.count + 1, min(row.first_at, event.at)
            return True
        if len(self._rows) >= self._limit:
            return False
        row = EventRow(event=event, first_at=event.at)
        self._rows.append(row)
        if key is not None:
            self._open[key] = row
        return True

    def oldest_first(self) -> list[EventRow]:
        """Return the rows, the newest last."""
        return self._rows[::-1]


def rows_of(events: Iterable[Event], wanted: EventFilter) -> list[EventRow]:
    """Return the matching events as rows; both have the newest last."""
    matching = [event for event in events if wanted.matches(event)]
    rows = EventRows(len(matching))
    for event in reversed(matching):
        rows.add(event)
    return rows.oldest_first()


def text_of(row: EventRow) -> str:
    """Return what happened, in one sentence on one line, without characters that drive a terminal."""
    event, text = row.event, restored(row.event.message, row.event.parts)
    if row.count > 1:
        span = max(1.0, event.at - row.first_at)
        error = event.data.get("error") or NO_ERROR
        text = sentence(
            "{n} jobs of {worker} died within {n2} s; the newest: {error}",
            n=f"{row.count:,}",
            worker=event.data["worker"],
            n2=f"{span:.0f}",
            error=error,
        )
    line = " ".join(printable(text).split())
    return text if line == text else line or event.name


def _fold_key(event: Event) -> str | None:
    worker, error = event.data.get("worker"), event.data.get("error")
    if event.name != FOLDED or not isinstance(worker, str) or not isinstance(error, str | None):
        return None
    return group_key(worker, error)


def _names_of(actor: str | None) -> set[str]:
    return set() if actor is None else {actor, actor.partition("@")[0]}


def _strings(value: Any) -> set[str]:
    """Return the names that a field of an event holds: one, several, or counts by name."""
    if isinstance(value, str):
        return {value}
    return {one for one in value if isinstance(one, str)} if isinstance(value, list | tuple | dict) else set()
