"""Moving in from another store: jobs as they were there, states of workers, totals and the fence."""

from collections.abc import Mapping, Sequence
from typing import Final

from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.server.statements import PostgresSession
from shiftwork.store.postgres.stats import WAITED

BYTES_OF_AN_ITEM: Final = 4_096
"""This many bytes of a job count as another job, because they take as long to write."""


def size_of(job: JobRecord) -> int:
    """Return about how many bytes a whole job carries."""
    parts = (*(len(step.result) for step in job.steps), *(len(signal.value) for signal in job.signals))
    return len(job.payload) + len(job.result or b"") + sum(parts)


async def restore(session: PostgresSession, jobs: Sequence[JobRecord]) -> None:
    """Write these jobs as they are, replacing any under the same ids."""
    session.ring(await session.value("restore", (session.namespace, *rows.record_columns(jobs))))


async def take_over(
    session: PostgresSession, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int
) -> int:
    """Continue with these states and totals, and return a fence above the given one."""
    async with session.conn.transaction():
        for state in states:
            session.ring(await session.value("take_state", (session.namespace, *_state(state))))
        for pool, total in totals.items():
            grown = (total.added, total.completed, total.failed, total.run_seconds)
            marks: dict[str, float] = {WAITED: total.wait_seconds, **total.marks}
            columns = (arrays.texts(list(marks)), arrays.numbers(list(marks.values())))
            await session.rows("take_totals", (session.namespace, pool, *grown, *columns))
        above: int = await session.value("fence_above", (fence,))
    session.ring(("state", "leader"))
    return above


def _state(state: WorkerState) -> tuple[object, ...]:
    return (
        state.worker,
        state.enabled,
        rows.storable(state.reason),
        state.changed_at,
        state.failures,
        state.last_started,
        state.last_ended,
        state.last_success,
        rows.storable(state.last_error),
        state.last_error_at,
        state.rate_at,
    )
