"""Adding, finishing, reading and changing jobs, each by one function of the database."""

from collections.abc import Sequence
from typing import Any

from msgspec import msgpack

from shiftwork.core.model import (
    Added,
    Amended,
    Cancel,
    Change,
    Discard,
    Finished,
    JobRecord,
    NewJob,
    Outcome,
    ProgressNote,
    Requeue,
    Rewrite,
)
from shiftwork.core.statuses import STATUSES
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.session import PostgresSession, Statements

Timed = tuple[NewJob, float]
"""A job, and the time of the call that adds it."""


async def add(session: PostgresSession, jobs: Sequence[Timed]) -> list[Added]:
    """Add these jobs, and return what happened to each, in order."""
    parts = split_by_id(jobs)
    if len(parts) == 1:
        return await _add(session, parts[0])
    async with session.conn.transaction():
        return [one for part in parts for one in await _add(session, part)]


async def _add(session: PostgresSession, jobs: Sequence[Timed]) -> list[Added]:
    new = [job for job, _ in jobs]
    if len(new) == 1 and new[0].key is None and new[0].unique_key is None:
        twins, topics = await session.row("add_one", (session.namespace, *rows.new_row(*jobs[0])))
        session.ring(topics)
        return added(new, twins)
    columns = rows.new_columns(new, [now for _, now in jobs])
    twins, topics = await session.row("add", (session.namespace, *columns, None))
    session.ring(topics)
    return added(new, twins)


def split_by_id(jobs: Sequence[Timed]) -> list[list[Timed]]:
    """Split the jobs into parts in which no id occurs twice: the first job of an id decides about the second."""
    ids = {job.id for job, _ in jobs}
    if len(ids) == len(jobs):
        return [list(jobs)]
    parts: list[list[Timed]] = [[]]
    seen: set[str] = set()
    for timed in jobs:
        if timed[0].id in seen:
            parts.append([])
            seen = set()
        seen.add(timed[0].id)
        parts[-1].append(timed)
    return parts


def added(jobs: Sequence[NewJob], twins: Sequence[str | None] | None) -> list[Added]:
    """Return what happened to each job, from what the function `add` returned."""
    if twins is None:
        return [Added(job.id, created=True) for job in jobs]
    return [Added(twin or job.id, created=twin is None) for job, twin in zip(jobs, twins, strict=True)]


async def finish(session: PostgresSession, outcomes: Sequence[Outcome], now: float) -> Finished:
    """Write the outcomes of claimed jobs."""
    args = (session.namespace, now, *rows.outcome_columns(outcomes))
    accepted, disabled, topics = await session.row("finish", args)
    session.ring(topics)
    taken = set(accepted)
    positions = range(1, len(outcomes) + 1)
    return Finished([at in taken for at in positions], [outcomes[at - 1].worker for at in disabled])


async def note(session: PostgresSession, notes: Sequence[ProgressNote]) -> None:
    """Store the progress of running jobs."""
    newest = {(each.id, each.fence): each for each in notes}.values()
    ids = arrays.texts([each.id for each in newest])
    fences = arrays.numbers([each.fence for each in newest])
    bodies = arrays.blobs([msgpack.encode(each.progress) for each in newest])
    await session.run("note", (ids, fences, bodies, session.namespace))


async def get(session: Statements, ids: Sequence[str]) -> list[JobRecord | None]:
    """Return these jobs with their attempts, in order; None for an unknown id."""
    found = await session.rows("get", (session.namespace, arrays.texts(list(set(ids)))))
    records = [rows.record(columns, attempts) for *columns, attempts in found]
    by_id = {record.id: record for record in records}
    return [by_id.get(id) for id in ids]


async def rewrite(session: PostgresSession, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Store what these jobs carry in other bytes, one statement for each: it is never on the way of a run."""
    written: list[bool] = []
    for one in rewrites:
        values = rows.carried(one.after) | {f"old_{name}": value for name, value in rows.carried(one.before).items()}
        place = {"id": one.before.id, "namespace": session.namespace}
        found = await session.rows("rewrite", values | place)
        written.append(bool(found and found[0][0]))
    return written


async def amend(session: PostgresSession, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
    """Apply one change to these jobs, and return what happened to each, in order."""
    done, had, topics = await _amend(session, arrays.texts(list(ids)), change, now)
    session.ring(topics)
    return [
        Amended(id, ok=ok, status=None if status is None else STATUSES[status])
        for id, ok, status in zip(ids, done, had, strict=True)
    ]


async def _amend(session: PostgresSession, ids: str | None, change: Change, now: float) -> tuple[Any, ...]:
    match change:
        case Cancel():
            return await session.row("cancel", (session.namespace, ids, rows.storable(change.reason), now))
        case Requeue():
            return await session.row(
                "requeue", (session.namespace, ids, change.run_at, change.payload, change.key, now)
            )
        case Discard():
            return await session.row("discard", (session.namespace, ids))
