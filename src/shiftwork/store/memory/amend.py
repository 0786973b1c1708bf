"""What people change: jobs are cancelled, requeued, discarded or rewritten, and workers are switched on and off.

`shiftwork.core.jobs.transitions` says which statuses allow a change and what it makes of the job, and
`shiftwork.core.values.rewriting` what a job carries after a rewrite.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from shiftwork.core.jobs.transitions import allows, amended
from shiftwork.core.model.job_changes import Amended, Change, Discard, Requeue
from shiftwork.core.model.jobs import JobRecord, JobStatus, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.values.rewriting import is_written, rewritten
from shiftwork.core.workers.state import after_end
from shiftwork.store.memory.all_tables import Tables
from shiftwork.store.memory.flows import meet


def amend(tables: Tables, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
    """Apply one change to these jobs, and return what became of each, in order."""
    return [_amend(tables, id, change, now) for id in ids]


def _amend(tables: Tables, id: str, change: Change, now: float) -> Amended:
    job = tables.jobs.whole(id)
    if job is None:
        return Amended(id, ok=False, status=None)
    ok = allows(job.status, change) and not (isinstance(change, Requeue) and tables.jobs.clashes(job))
    ok = ok and not (isinstance(change, Discard) and tables.jobs.flows.waiters_of(id))
    if ok:
        _apply(tables, job, change, now)
    return Amended(id, ok=ok, status=job.status)


def _apply(tables: Tables, job: JobRecord, change: Change, now: float) -> None:
    changed = amended(job, change, now)
    if changed is None:
        tables.jobs.delete(job.id)
        return
    tables.jobs.write(replace(changed, unmet=()))
    meet(tables, changed, now)
    if changed.cancelling:
        tables.ring("orders")
        return
    if changed.status is JobStatus.CANCELLED:
        after_end(tables.states.of(job.worker), now)
    tables.wake_tied(job.worker)


def rewrite(tables: Tables, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Rewrite these jobs, and return for each whether all of it was written."""
    return [_rewrite(tables, one) for one in rewrites]


def _rewrite(tables: Tables, one: Rewrite) -> bool:
    jobs = tables.jobs.by_id
    job = jobs.get(one.before.id)
    if job is None:
        return False
    jobs[job.id] = rewritten(job, one)  # no index depends on what changes
    return is_written(jobs[job.id], one)


def switch(tables: Tables, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
    """Enable a worker, or disable it with a reason."""
    tables.states.switch(worker, enabled=enabled, reason=reason, now=now)
    tables.ring("state", "leader")
    tables.wake_neighbours(worker)
    return tables.states.copy_of(worker)
