"""Small records: docs, the switch, events, and the numbers for people.

Whoever writes gates also writes down which workers they tie together, so that the database can lock and ring all of
them without being able to read the docs.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import json, msgpack

from shiftwork.core.admission import Gates
from shiftwork.core.breaker import BreakerState
from shiftwork.core.docs import GATES, READ_BY_CLAIMS, damaged_doc, read_event
from shiftwork.core.model import Doc, Event, PoolDoc, PoolStats, Stats, WorkerState, WorkerStats
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.facts import survey
from shiftwork.store.postgres.session import Session

LAST: Final = 2**63 - 1
"""A number that no event has."""


async def docs(session: Session, kind: str | None) -> list[Doc]:
    """All docs of a kind, by name; or of every kind."""
    if kind is None:
        return [Doc(*row) for row in await session.rows("all_docs", (session.namespace,))]
    found = await session.rows("docs", (session.namespace, kind))
    return [Doc(kind, name, body, version) for name, body, version in found]


async def put(session: Session, doc: Doc) -> bool:
    """Write the doc, if the stored version is the one it was made from."""
    read = READ_BY_CLAIMS[doc.kind].decode(doc.body) if doc.kind in READ_BY_CLAIMS else None
    paused = isinstance(read, PoolDoc) and read.paused
    wakes = bool(read.after) if isinstance(read, Gates) else isinstance(read, BreakerState) and read.open
    guard = read.breaker if isinstance(read, Gates) else None
    args = (
        session.namespace,
        doc.kind,
        doc.name,
        doc.version,
        doc.body,
        paused,
        wakes,
        guard,
        doc.kind in READ_BY_CLAIMS,
    )
    if doc.kind != "gates":
        written, topics = await session.row("put", args)
    else:
        async with session.conn.transaction():
            written, topics = await session.row("put", args)
            await _tie(session, doc.name, read)
    session.ring(topics)
    return bool(written)


async def _tie(session: Session, written: str, gate: Gates | None) -> None:
    """Write down anew which workers are tied together. Nobody claims, and nobody else writes gates, meanwhile.

    One that was tied to nobody, and is not now, changes nothing: an app may have ten thousand of them.
    """
    if (gate is None or gate.open) and await session.value("ties_of", (session.namespace, written)) is None:
        return
    found = await session.rows("tied", (session.namespace,))
    gates = {name: read for name, body, _ in found if (read := GATES.decode(body))}
    tied = ties(gates)
    for name, _, had in found:
        names = tied.get(name)
        if names != had:
            await session.run("tie", (None if names is None else arrays.texts(names), session.namespace, name))


def ties(gates: Mapping[str, Gates]) -> dict[str, list[str]]:
    """For each worker whose gates are not open: all workers that gates tie to it, in one direction or the other."""
    bound = {name: {name, *gate.conflicts, *gate.after, *gate.before} for name, gate in gates.items() if not gate.open}
    guarded: dict[str, set[str]] = {}
    for name in bound:
        if gates[name].breaker:
            guarded.setdefault(gates[name].breaker or "", set()).add(name)
    groups: list[set[str]] = []
    for names in (*bound.values(), *guarded.values()):
        near = [group for group in groups if group & names]
        groups = [group for group in groups if not group & names]
        groups.append(names.union(*near))
    return {name: sorted(group) for group in groups for name in group if name in bound}


async def switch(session: Session, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
    """Enable a worker, with its failures forgotten, or disable it with a reason."""
    async with session.conn.transaction():
        args = (session.namespace, worker, enabled, rows.storable(reason), now)
        session.ring(await session.value("switch", args))
        known = await survey(session, [worker], now)
    return known.lanes[worker].state


async def record(session: Session, events: Sequence[Event]) -> None:
    """Keep these events, numbered upwards."""
    persons = [event.by_person for event in events]
    bodies = arrays.blobs([msgpack.encode(event) for event in events])
    await session.value("record", (session.namespace, persons, bodies))


async def events(session: Session, after: int, before: int | None, limit: int) -> list[Event]:
    """The newest events between two numbers, oldest of them first."""
    end = LAST if before is None else before
    found = await session.rows("events", (session.namespace, after, end, limit))
    return [read_event(seq, body) for seq, body in reversed(found)]


async def stats(session: Session) -> Stats:
    """All pools and workers that have jobs, in numbers."""
    answer = Stats()
    heads: dict[str, tuple[float, str, float]] = {}
    for pool, worker, *counts in await session.rows("stats", {"namespace": session.namespace}):
        numbers = answer.pools.setdefault(pool, PoolStats())
        _count(numbers, counts)
        numbers.added += counts[7]
        numbers.completed += counts[8]
        numbers.failed += counts[9]
        numbers.run_seconds += counts[10]
        if counts[14] is not None:
            marks = json.decode(counts[14], type=dict[str, float])
            numbers.wait_seconds = marks.pop(rows.WAITED, 0.0)
            numbers.marks = {name: int(n) for name, n in marks.items()}
        if any(counts[:7]):
            _count(answer.workers.setdefault(worker, WorkerStats()), counts)
        if counts[11] is not None:
            head = (counts[11], counts[12], counts[13])
            heads[pool] = min(heads.get(pool, head), head)
    for pool, (_, _, run_at) in heads.items():
        answer.pools[pool].oldest_run_at = run_at
    return answer


def _count(numbers: PoolStats | WorkerStats, counts: Sequence[Any]) -> None:
    numbers.scheduled += counts[0]
    numbers.retrying += counts[1]
    numbers.queued += counts[2]
    numbers.processing += counts[3]
    numbers.dead += counts[5]


def unreadable(found: Iterable[tuple[str, str, bytes]]) -> list[str]:
    """Docs (kind, name, body) that claims look into and cannot decode, in words."""
    return [why for kind, name, body in found if (why := damaged_doc(Doc(kind, name, body)))]
