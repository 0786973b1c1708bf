"""Flows: tying new jobs to those they need, releasing jobs that need nothing else, and flows as people see them.

When a need is met is for `shiftwork.core.jobs.needs` to decide. Who needs whom is in `flow_index`.
"""

from collections.abc import Collection, Iterable, Sequence
from heapq import nlargest

from msgspec.structs import replace

from shiftwork.core.jobs.needs import LOST, inherited, meets, needs_of, released
from shiftwork.core.model.flows import FlowMember
from shiftwork.core.model.jobs import JobRecord, JobStatus, NewJob
from shiftwork.store.memory.all_tables import Tables


def tie_all(tables: Tables, jobs: Sequence[NewJob], now: float) -> None:
    """Make new jobs wait for what they need, and what waits for their parents wait for them."""
    lost = {need.id for job in jobs for need in job.needs if is_lost(tables, need.id)}
    for job in jobs:
        _tie(tables, job, lost, now)
    _lose(tables, [job.id for job in jobs if is_lost(tables, job.id)], now)


def _tie(tables: Tables, job: NewJob, lost: Collection[str], now: float) -> None:
    flows = tables.jobs.flows
    needs = [replace(need, broken=need.id in lost) for need in needs_of(job)]
    unmet = [need for need in needs if not meets(tables.status(need.id), need, lost=need.broken)]
    flows.need(job.id, unmet)
    if job.needs and not unmet:
        tables.jobs.write(released(tables.jobs.by_id[job.id], now))
    for waiter, need in flows.waiters_of(job.parent or ""):
        if (more := inherited(job.id, need)) is not None:
            flows.need(waiter, [more])


def is_lost(tables: Tables, id: str) -> bool:
    """Return whether a job cannot complete unless a person retries one."""
    return tables.jobs.flows.is_lost(id, tables.status(id))


def meet(tables: Tables, job: JobRecord, now: float) -> None:
    """Meet or break the needs of this job, which has changed, and release the jobs that need nothing else."""
    flows = tables.jobs.flows
    if job.status in LOST:
        _lose(tables, [job.id], now)
    elif job.status is JobStatus.COMPLETED:
        _meet_all(tables, [(waiter, job.id) for waiter, _ in flows.waiters_of(job.id)], now)
    else:
        flows.regain(job.id, tables.status)


def _lose(tables: Tables, ids: Iterable[str], now: float) -> None:
    """Break the needs of these jobs, which are lost, and release the jobs that any end will do for."""
    _meet_all(tables, tables.jobs.flows.lose(ids, tables.status), now)


def _meet_all(tables: Tables, met: Iterable[tuple[str, str]], now: float) -> None:
    for waiter, needed in met:
        last = tables.jobs.flows.meet(waiter, needed)
        if last and tables.status(waiter) is JobStatus.WAITING:
            tables.jobs.write(released(tables.jobs.by_id[waiter], now))


# ── for people and functions ─────────────────────────────────────────────────────────────────────────────────────────


def members(tables: Tables, flow: str, behind: tuple[float, str] | None, limit: int) -> list[FlowMember]:
    """Return the newest jobs of a flow behind a place."""
    of_flow = (job for job in tables.jobs.by_id.values() if job.flow == flow)
    behind_it = (job for job in of_flow if behind is None or (job.created_at, job.id) < behind)
    return [_member(tables, job) for job in nlargest(limit, behind_it, key=lambda job: (job.created_at, job.id))]


def _member(tables: Tables, job: JobRecord) -> FlowMember:
    stranded = job.status is JobStatus.WAITING and is_lost(tables, job.id)
    times = job.created_at, job.started_at, job.ended_at
    return FlowMember(job.id, job.worker, job.status, *times, job.options, stranded)


def results(tables: Tables, ids: Sequence[str]) -> list[bytes | None]:
    """Return the results of these jobs, in order."""
    return [job.result if (job := tables.jobs.by_id.get(id)) else None for id in ids]
