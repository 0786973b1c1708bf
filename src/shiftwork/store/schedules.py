"""Reading and changing the stored schedules: the one place that knows their parts and the index."""

import asyncio
import random
import secrets
from collections.abc import Callable, Collection, Mapping
from typing import Final

from msgspec import Struct

from shiftwork.core.doc_kinds import FIRED_PART, SCHEDULE_PART, SCHEDULES, SCHEDULES_NAME, STORED_SCHEDULE
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.schedules.stored import (
    Place,
    ScheduleIndex,
    StoredSchedule,
    fired_kind,
    part_of,
    schedules_kind,
    tokens_in,
)
from shiftwork.store.protocol import Store

LONGEST_RETRY_SECONDS: Final = 0.2
"""The longest pause before a change that another one overtook is tried again."""

ScheduleChange = Callable[[StoredSchedule | None], StoredSchedule | None]
"""From a schedule as it is to the schedule as it should be; None is no schedule. It may be called more than once."""


class SchedulesRead(Struct, frozen=True):
    """Stored schedules, as they were at one moment."""

    schedules: dict[str, StoredSchedule]
    damaged: list[str]
    """What could not be read, in words."""


async def read_index(store: Store) -> Mapping[str, str]:
    """Return the parts that exist, each with its token."""
    docs = await store.docs(SCHEDULES.name)
    return tokens_in(SCHEDULES.decode(docs[0].body)) if docs else {}


async def read_parts(store: Store, parts: Collection[str]) -> SchedulesRead:
    found, damaged = dict[str, StoredSchedule](), list[str]()
    for doc in await store.docs(*map(schedules_kind, sorted(parts))) if parts else []:
        part = SCHEDULE_PART.decode(doc.body)
        if part is None:
            damaged.append(f"part {doc.name} of the schedules cannot be read: {SCHEDULE_PART.damage(doc.body)}")
            continue
        for name, body in part.items():
            schedule = STORED_SCHEDULE.decode(body)
            if schedule is None:
                damaged.append(f"schedule {name} cannot be read: {STORED_SCHEDULE.damage(body)}")
            else:
                found[name] = schedule
    return SchedulesRead(found, damaged)


async def read_fired(store: Store, parts: Collection[str]) -> dict[str, Doc]:
    """Return the docs that say how far the schedules of these parts have fired, by part; empty ones where none is."""
    docs = {doc.name: doc for doc in await store.docs(*map(fired_kind, sorted(parts)))} if parts else {}
    return {part: docs.get(part) or Doc(fired_kind(part), part, b"") for part in parts}


def places_in(doc: Doc) -> dict[str, Place]:
    """Return how far each schedule of a part has fired; nothing if that cannot be read."""
    return FIRED_PART.decode(doc.body) or {}


async def change_schedule(
    store: Store, name: str, new: ScheduleChange
) -> tuple[StoredSchedule | None, StoredSchedule | None]:
    """Replace one schedule by what `new` makes of it, and return both. If that changes nothing, nothing is written.

    The part and the index are written in one call. If another change overtakes that of the index alone, a new token is
    written again: a leader may have read the part before.
    """
    part, tries = part_of(name), 0
    while True:
        docs = {doc.kind: doc for doc in await store.docs(SCHEDULES.name, schedules_kind(part))}
        there = docs.get(schedules_kind(part)) or Doc(schedules_kind(part), part, b"")
        bodies = _bodies(there)
        before = STORED_SCHEDULE.decode(bodies[name]) if name in bodies else None
        after = new(before)
        if after == before:
            return before, after
        if after is None:
            del bodies[name]
        else:
            bodies[name] = STORED_SCHEDULE.encode(after)
        written, announced = await store.put(
            [
                Doc(there.kind, part, SCHEDULE_PART.encode(bodies), there.version),
                _announcing(docs.get(SCHEDULES.name), part),
            ]
        )
        if written:
            if not announced:
                await _announce(store, part)
            return before, after
        tries += 1
        await _pause(tries)


async def _announce(store: Store, part: str) -> None:
    tries = 0
    while True:
        docs = await store.docs(SCHEDULES.name)
        [written] = await store.put([_announcing(docs[0] if docs else None, part)])
        if written:
            return
        tries += 1
        await _pause(tries)


async def _pause(tries: int) -> None:
    """Wait a little, at random: otherwise many changes at once would overtake each other again and again."""
    await asyncio.sleep(random.random() * min(LONGEST_RETRY_SECONDS, 0.002 * 2**tries))


def _announcing(there: Doc | None, part: str) -> Doc:
    parts = {} if there is None else tokens_in(SCHEDULES.decode(there.body))
    body = SCHEDULES.encode(ScheduleIndex(parts | {part: secrets.token_hex(4)}))
    return Doc(SCHEDULES.name, SCHEDULES_NAME, body, 0 if there is None else there.version)


def _bodies(doc: Doc) -> dict[str, bytes]:
    return dict(SCHEDULE_PART.decode(doc.body) or {}) if doc.version else {}
