"""Adding jobs: new ones, and those that a running job adds."""

from collections.abc import Sequence

from msgspec.structs import replace

from shiftwork.core.model.jobs import Added, JobRecord, JobStatus, NewJob
from shiftwork.store.memory.all_tables import Tables
from shiftwork.store.memory.flows import tie_all


def add(tables: Tables, jobs: Sequence[NewJob], now: float) -> list[Added]:
    """Keep these jobs, and return what became of each, in order."""
    flows = tables.jobs.flows
    new_flows = {job.flow for job in jobs if job.flow is not None and not flows.has_jobs(job.flow)}
    added = [_add_full(tables, job, now) for job in jobs]
    new = [job for job, answer in zip(jobs, added, strict=True) if answer.created]
    tied = [job for job in new if job.needs or job.parent]
    if tied:
        tie_all(tables, tied, now)
    for job in new:
        if job.flow is not None and job.flow in new_flows:
            flows.aim(job.flow, job.worker, job.tags)
    return added


def _add_full(tables: Tables, job: NewJob, now: float) -> Added:
    table = tables.jobs
    if job.id in table.by_id:
        return Added(job.id, created=False)
    twin = table.unique.get((job.worker, job.unique_key)) if job.unique_key is not None else None
    if twin is not None:
        return Added(twin, created=False)
    record = JobRecord.of(job, now)
    table.write(replace(record, status=JobStatus.WAITING) if job.needs else record)
    tables.totals.added(job.pool)
    return Added(job.id, created=True)


def extend(tables: Tables, parent: str, fence: int, jobs: Sequence[NewJob], now: float) -> list[Added] | None:
    """Keep jobs that a running job adds; None unless it runs under this fence and was not asked to stop."""
    job = tables.running(parent, fence)
    return None if job is None or job.cancelling else add(tables, jobs, now)
