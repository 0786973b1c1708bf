"""Finding jobs the simple way, by looking at every one."""

from collections.abc import Iterable, Mapping
from heapq import nlargest, nsmallest
from operator import gt, lt
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.flows import FlowMember
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import DeadJob, JobRecord, JobStatus, begun
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.store.memory.rows import JobTable

EXACT: Final = ("worker", "pool", "key", "unique_key", "instance", "flow")


def find(table: JobTable, wanted: JobFilter) -> list[JobRecord]:
    """The first jobs that match, without what only whole jobs have. Paging after a deleted id returns nothing."""
    jobs = table.by_id
    if wanted.after is not None and wanted.after not in jobs:
        return []
    last = jobs[wanted.after] if wanted.after is not None else None
    matching: Iterable[JobRecord] = (job for job in jobs.values() if _matches(job, wanted))
    if last is not None:
        beyond = lt if wanted.order == "newest" else gt
        matching = (job for job in matching if beyond(_age(job), _age(last)))
    first = (nlargest if wanted.order == "newest" else nsmallest)(wanted.limit, matching, key=_age)
    found = [replace(job, attempts=(), steps=(), signals=(), unmet=table.flows.broken_of(job.id)) for job in first]
    return found if wanted.whole else [begun(job, BEGINNING) for job in found]


def dead(jobs: Mapping[str, JobRecord], behind: tuple[float, str] | None, limit: int) -> list[DeadJob]:
    """The newest dead jobs behind a place."""
    ended = (job for job in jobs.values() if job.status is JobStatus.DEAD and (behind is None or _age(job) < behind))
    found = nlargest(limit, ended, key=_age)
    return [DeadJob(job.id, job.worker, job.error, job.created_at, job.ended_at) for job in found]


def members(table: JobTable, flow: str, behind: tuple[float, str] | None, limit: int) -> list[FlowMember]:
    """The newest jobs of a flow behind a place."""
    of_flow = (job for job in table.by_id.values() if job.flow == flow and (behind is None or _age(job) < behind))
    return [_member(table, job) for job in nlargest(limit, of_flow, key=_age)]


def _member(table: JobTable, job: JobRecord) -> FlowMember:
    stranded = job.status is JobStatus.WAITING and table.flows.is_lost(job.id, job.status)
    times = job.created_at, job.started_at, job.ended_at
    return FlowMember(job.id, job.worker, job.status, *times, job.options, stranded)


def _age(job: JobRecord) -> tuple[float, str]:
    return (job.created_at, job.id)


def _matches(job: JobRecord, wanted: JobFilter) -> bool:
    return (
        all(getattr(wanted, name) in (None, getattr(job, name)) for name in EXACT)
        and (wanted.ids is None or job.id in wanted.ids)
        and (wanted.status is None or job.status in wanted.status)
        and (wanted.tag is None or wanted.tag in job.tags)
        and (wanted.error is None or wanted.error in (job.error or ""))
        and (wanted.created_after is None or job.created_at > wanted.created_after)
        and (wanted.created_before is None or job.created_at < wanted.created_before)
    )
