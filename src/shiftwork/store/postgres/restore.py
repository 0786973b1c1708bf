"""Moving in from another store: jobs as they were there, the states of workers, what only grows."""

from collections.abc import Mapping, Sequence

from shiftwork.core.model import JobRecord, PoolStats, WorkerState
from shiftwork.store.postgres import arrays, rows
from shiftwork.store.postgres.session import Session


async def restore(session: Session, jobs: Sequence[JobRecord]) -> None:
    """Keep these jobs as they are, in place of what is there under their ids."""
    session.ring(await session.value("restore", (session.namespace, *rows.record_columns(jobs))))


async def take_over(
    session: Session, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int
) -> int:
    """Go on with these states and totals, and above this fence."""
    async with session.conn.transaction():
        for state in states:
            session.ring(await session.value("take_state", (session.namespace, *_state(state))))
        for pool, told in totals.items():
            grown = (told.added, told.completed, told.failed, told.run_seconds)
            marks: dict[str, float] = {rows.WAITED: told.wait_seconds, **told.marks}
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
        state.rate_at,
    )
