"""Events: the record of what happened, numbered in the order in which it was written."""

from collections.abc import Sequence
from typing import Final

from msgspec import msgpack

from shiftwork.core.doc_kinds import read_event
from shiftwork.core.model.event import Event
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.server.statements import Statements

END: Final = 2**63 - 1
"""A number above those of all events."""


async def record(session: Statements, events: Sequence[Event]) -> None:
    """Write these events under the next numbers."""
    persons = [event.by_person for event in events]
    bodies = arrays.blobs([msgpack.encode(event) for event in events])
    await session.value("record", (session.namespace, persons, bodies))


async def events(session: Statements, after: int, before: int | None, limit: int) -> list[Event]:
    """Return the newest `limit` events between two numbers, in ascending order."""
    end = END if before is None else before
    found = await session.rows("events", (session.namespace, after, end, limit))
    return [read_event(seq, body) for seq, body in reversed(found)]
