"""Docs: small versioned values, changed by compare-and-set. Claims read some of them: gates, pools, breakers, edition.

A write of gates also stores which workers the gates tie together, so that the database can lock and wake all of them
without decoding docs.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from shiftwork.core.doc_kinds import GATES, READ_BY_CLAIMS
from shiftwork.core.model.doc_types import Doc, PoolDoc
from shiftwork.core.workers.admission import Gates
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.core.workers.edition import Edition
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.server.statements import PostgresSession, Statements


async def stored_docs(session: Statements, kinds: Collection[str]) -> list[Doc]:
    """Return all docs of these kinds, or of every kind, by kind and name."""
    if not kinds:
        return [Doc(*row) for row in await session.rows("all_docs", (session.namespace,))]
    return [Doc(*row) for row in await session.rows("docs", (session.namespace, arrays.texts(list(kinds))))]


async def put(session: Statements, docs: Sequence[Doc]) -> list[bool]:
    """Write each doc, none of them gates, if the stored version is the one it was made from."""
    return _written(session, docs, await session.row("put", _put_args(session, docs))) if docs else []


async def put_gates(session: PostgresSession, docs: Sequence[Doc]) -> list[bool]:
    """Write each doc, some of them gates, if the stored version is the one it was made from."""
    async with session.quick_transaction():
        sent = await session.send("put", _put_args(session, docs))
        await _tie(session)
    [row] = await sent.fetchall()
    return _written(session, docs, row)


async def erase(session: PostgresSession, docs: Sequence[Doc]) -> list[bool]:
    """Delete each doc if the stored version is the one it has."""
    if not docs:
        return []
    args = (
        session.namespace,
        arrays.texts([doc.kind for doc in docs]),
        arrays.texts([doc.name for doc in docs]),
        arrays.numbers([doc.version for doc in docs]),
        any(doc.kind in READ_BY_CLAIMS for doc in docs),
    )
    async with session.quick_transaction():
        sent = await session.send("erase", args)
        await _tie(session)
    [row] = await sent.fetchall()
    return _written(session, docs, row)


def _written(session: Statements, docs: Sequence[Doc], row: tuple[Any, ...]) -> list[bool]:
    kinds, names, topics = row
    session.ring(topics)
    written = {*zip(kinds or (), names or (), strict=True)}
    return [(doc.kind, doc.name) in written for doc in docs]


def _put_args(session: Statements, docs: Sequence[Doc]) -> tuple[Any, ...]:
    read = [READ_BY_CLAIMS[doc.kind].effective(doc.body) if doc.kind in READ_BY_CLAIMS else None for doc in docs]
    return (
        session.namespace,
        arrays.texts([doc.kind for doc in docs]),
        arrays.texts([doc.name for doc in docs]),
        arrays.numbers([doc.version for doc in docs]),
        arrays.blobs([doc.body for doc in docs]),
        [isinstance(one, PoolDoc) and one.paused for one in read],
        [bool(one.after) if isinstance(one, Gates) else isinstance(one, BreakerState) and one.open for one in read],
        arrays.texts([_guard(one) for one in read]),
        any(doc.kind in READ_BY_CLAIMS for doc in docs),
    )


def _guard(read: object) -> str | None:
    return read.breaker if isinstance(read, Gates) else read.token if isinstance(read, Edition) else None


async def _tie(session: PostgresSession) -> None:
    """Store which workers are tied together now. The lock keeps out claims and other writers of gates."""
    found = await session.rows("read_ties", (session.namespace,))
    tied = ties({name: read for name, body, _ in found if (read := GATES.decode(body))})
    for name, _, had in found:
        names = tied.get(name)
        if names != had:
            await session.send("write_ties", (None if names is None else arrays.texts(names), session.namespace, name))


def ties(gates: Mapping[str, Gates]) -> dict[str, list[str]]:
    """Return, for each worker with gates that are not open, all workers that gates tie to it, in either direction."""
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
