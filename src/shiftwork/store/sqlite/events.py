"""The events that people read, numbered in one sequence, and by kind (a person's or not) for the pruning of each."""

from collections.abc import Sequence
from itertools import count
from typing import Final

from msgspec import msgpack

from shiftwork.core.doc_kinds import read_event
from shiftwork.core.model.event import Event
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession

AFTER_LAST_EVENT: Final = 2**63 - 1
"""A number above that of every event."""


def record(session: SqliteSession, events: Sequence[Event]) -> None:
    """Keep these events, numbered upwards."""
    last = session.value("last_event", (session.namespace,))
    places = {kind: count(session.value("last_place", (session.namespace, kind)) + 1) for kind in (True, False)}
    rows = [
        (session.namespace, seq, event.by_person, next(places[event.by_person]), msgpack.encode(event))
        for seq, event in enumerate(events, last + 1)
    ]
    session.run_many("add_event", rows)


def events(session: SqliteSession, after: int, before: int | None, limit: int) -> list[Event]:
    """Return the newest events between two numbers, oldest first."""
    end = AFTER_LAST_EVENT if before is None else before
    rows = session.run("newest_events", (session.namespace, after, end, limit)).fetchall()
    return [read_event(seq, body) for seq, body in reversed(rows)]
