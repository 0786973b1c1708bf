"""Moving in from another store: jobs as they were there, the workers' states, the totals that only grow."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.store.memory.all_tables import Tables


def restore(tables: Tables, jobs: Sequence[JobRecord]) -> None:
    """Keep these jobs as they are, in place of any with their ids."""
    table = tables.jobs
    for job in jobs:
        table.delete(job.id)
    for job in jobs:
        if not (job.status.live and table.clashes(job)):
            table.write(replace(job, unmet=()))
            table.flows.need(job.id, job.unmet)
            tables.totals.know(job.pool)
            tables.wake_tied(job.worker)


def take_over(tables: Tables, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int) -> int:
    """Continue with these states and totals, and above this fence."""
    for state in states:
        tables.states.keep(state)
        tables.wake_neighbours(state.worker)
    tables.totals.keep(totals)
    tables.ring("state", "leader")
    tables.last_fence = max(tables.last_fence, fence)
    return tables.next_fence()
