"""The events of a memory store: numbered in one sequence, pruned apart by whether a person caused them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from msgspec.structs import replace

from shiftwork.core.model.event import EVENTS_KEPT, Event


class EventLog:
    """The events, oldest first."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._last = 0

    def add(self, events: Iterable[Event]) -> None:
        """Keep these events, numbered upwards."""
        for event in events:
            self._last += 1
            self._events.append(replace(event, seq=self._last))

    def between(self, after: int, before: int | None, limit: int) -> list[Event]:
        """Return the newest events between two numbers, oldest first."""
        first = bisect_right(self._events, after, key=_number)
        end = len(self._events) if before is None else bisect_left(self._events, before, key=_number)
        return self._events[max(first, end - max(0, limit)) : end]

    def prune(self, n: int) -> int:
        """Delete up to `n` events of each kind that are not among its newest. Returns how many."""
        doomed: set[int] = set()
        for kind in (True, False):
            numbers = [event.seq for event in self._events if event.by_person is kind]
            doomed.update(numbers[: max(0, min(n, len(numbers) - EVENTS_KEPT))])
        if doomed:
            self._events = [event for event in self._events if event.seq not in doomed]
        return len(doomed)


def _number(event: Event) -> int:
    return event.seq
