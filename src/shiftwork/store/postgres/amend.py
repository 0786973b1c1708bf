"""Changes that people make: to jobs (cancel, requeue, discard), to the state of a worker, and to what jobs carry."""

from collections.abc import Sequence
from typing import Any

from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.job_changes import Amended, Cancel, Change, Discard, Requeue
from shiftwork.core.model.jobs import Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.facts import survey
from shiftwork.store.postgres.server.statements import PostgresSession


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


async def rewrite(session: PostgresSession, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Replace the bytes that these jobs carry, unless they have changed meanwhile; by one statement each."""
    written: list[bool] = []
    for one in rewrites:
        values = rows.carried(one.after) | {f"old_{name}": value for name, value in rows.carried(one.before).items()}
        place = {"id": one.before.id, "namespace": session.namespace}
        found = await session.rows("rewrite", values | place)
        written.append(bool(found and found[0][0]))
    return written


async def switch(
    session: PostgresSession, worker: str, *, enabled: bool, reason: str | None, now: float
) -> WorkerState:
    """Enable a worker and reset its failures, or disable it with a reason."""
    async with session.conn.transaction():
        args = (session.namespace, worker, enabled, rows.storable(reason), now)
        session.ring(await session.value("switch", args))
        known = await survey(session, [worker], now)
    return known.lanes[worker].state
