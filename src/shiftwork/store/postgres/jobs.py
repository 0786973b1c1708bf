"""Adding, finishing, reading and changing jobs: each is one call of a function of the database."""

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
)
from shiftwork.store.columns import COLUMNS
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.rows import STATUSES
from shiftwork.store.postgres.session import Session

Timed = tuple[NewJob, float]
"""A job, and the time of the call that adds it."""


async def add(session: Session, jobs: Sequence[Timed]) -> list[Added]:
    """Keep these jobs, answering each in order."""
    parts = apart(jobs)
    if len(parts) == 1:
        return await _add(session, parts[0])
    async with session.conn.transaction():
        return [added for part in parts for added in await _add(session, part)]


async def _add(session: Session, jobs: Sequence[Timed]) -> list[Added]:
    new = [job for job, _ in jobs]
    if len(new) == 1 and new[0].key is None and new[0].unique_key is None:
        twins, topics = await session.row("add_one", (session.namespace, *rows.new_row(*jobs[0])))
        session.ring(topics)
        return answers(new, twins)
    columns = rows.new_columns(new, [now for _, now in jobs])
    twins, topics = await session.row("add", (session.namespace, *columns, None))
    session.ring(topics)
    return answers(new, twins)


def apart(jobs: Sequence[Timed]) -> list[list[Timed]]:
    """The same jobs in parts in which no id comes twice: what becomes of the first decides about the second."""
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


def answers(jobs: Sequence[NewJob], twins: Sequence[str | None] | None) -> list[Added]:
    """What the function `add` said of each job."""
    if twins is None:
        return [Added(job.id, created=True) for job in jobs]
    return [Added(twin or job.id, created=twin is None) for job, twin in zip(jobs, twins, strict=True)]


async def finish(session: Session, outcomes: Sequence[Outcome], now: float) -> Finished:
    """Write what became of claimed jobs."""
    args = (session.namespace, now, *rows.outcome_columns(outcomes))
    accepted, disabled, topics = await session.row("finish", args)
    session.ring(topics)
    taken = set(accepted)
    places = range(1, len(outcomes) + 1)
    return Finished([place in taken for place in places], [outcomes[place - 1].worker for place in disabled])


async def note(session: Session, notes: Sequence[ProgressNote]) -> None:
    """Keep the progress of running jobs."""
    newest = {(each.id, each.fence): each for each in notes}.values()
    ids = arrays.texts([each.id for each in newest])
    fences = arrays.numbers([each.fence for each in newest])
    bodies = arrays.blobs([msgpack.encode(each.progress) for each in newest])
    await session.run("note", (ids, fences, bodies, session.namespace))


async def get(session: Session, ids: Sequence[str]) -> list[JobRecord | None]:
    """These jobs, whole, in order."""
    found = await session.rows("get", (session.namespace, arrays.texts(list(set(ids)))))
    records = {row[0]: rows.record(row[: len(COLUMNS)], row[-1]) for row in found}
    return [records.get(id) for id in ids]


async def amend(session: Session, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
    """Apply one change to these jobs, each answered in order."""
    done, had, topics = await _amend(session, arrays.texts(list(ids)), change, now)
    session.ring(topics)
    return [
        Amended(id, ok=ok, status=None if status is None else STATUSES[status])
        for id, ok, status in zip(ids, done, had, strict=True)
    ]


async def _amend(session: Session, ids: str | None, change: Change, now: float) -> tuple[Any, ...]:
    match change:
        case Cancel():
            return await session.row("cancel", (session.namespace, ids, rows.storable(change.reason), now))
        case Requeue():
            return await session.row(
                "requeue", (session.namespace, ids, change.run_at, change.payload, change.key, now)
            )
        case Discard():
            return await session.row("discard", (session.namespace, ids))
