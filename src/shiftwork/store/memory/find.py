"""Finding jobs, the simple way: a search looks at every one. And the place of a job in its queue."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from operator import gt, lt
from typing import Final

from msgspec.structs import replace

from shiftwork.core.health.position import Ahead, QueuePlace
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import DeadJob, JobRecord, JobStatus, begun
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.store.memory.rows import JobTable

EXACT_FIELDS: Final = ("worker", "pool", "key", "unique_key", "instance", "flow")


def get(table: JobTable, ids: Sequence[str], *, whole: bool) -> list[JobRecord | None]:
    """Return these jobs with their attempts and unmet needs, in order; whole ones with their steps and signals."""
    found = [table.whole(id) for id in ids]
    return found if whole else [job and replace(job, steps=(), signals=()) for job in found]


def ahead(table: JobTable, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
    lines = {name: pools[pool] for name, pools in table.ready.items() if pool in pools}
    return [
        Ahead({name: n for name, line in lines.items() if (n := line.before(place.rank, place.id))}) for place in places
    ]


def find(table: JobTable, wanted: JobFilter) -> list[JobRecord]:
    """Return the first matching jobs, without what only whole jobs have. Paging after a deleted id returns nothing."""
    jobs = table.by_id
    if wanted.after is not None and wanted.after not in jobs:
        return []
    last = jobs[wanted.after] if wanted.after is not None else None
    matching = _matching(table, wanted)
    if last is not None:
        beyond = lt if wanted.order == "newest" else gt
        matching = [job for job in matching if beyond(_age(job), _age(last))]
    first = (nlargest if wanted.order == "newest" else nsmallest)(wanted.limit, matching, key=_age)
    found = [replace(job, attempts=(), steps=(), signals=(), unmet=table.flows.broken_of(job.id)) for job in first]
    return found if wanted.whole else [begun(job, BEGINNING) for job in found]


def dead(jobs: Mapping[str, JobRecord], behind: tuple[float, str] | None, limit: int) -> list[DeadJob]:
    """Return the newest dead jobs behind a place."""
    ended = (job for job in jobs.values() if job.status is JobStatus.DEAD and (behind is None or _age(job) < behind))
    found = nlargest(limit, ended, key=_age)
    return [DeadJob(job.id, job.worker, job.error, job.created_at, job.ended_at) for job in found]


def _age(job: JobRecord) -> tuple[float, str]:
    return (job.created_at, job.id)


def _matching(table: JobTable, wanted: JobFilter) -> Iterable[JobRecord]:
    """Return the jobs that match, of those with the wanted ids or of all: only what is asked for is compared."""
    by_id = table.by_id
    jobs = by_id.values() if wanted.ids is None else [by_id[id] for id in {*wanted.ids} if id in by_id]
    if wanted.status is not None:
        jobs = [job for job in jobs if job.status in wanted.status]
    for name in EXACT_FIELDS:
        if (value := getattr(wanted, name)) is not None:
            jobs = [job for job in jobs if getattr(job, name) == value]
    if (tag := wanted.tag) is not None:
        jobs = [job for job in jobs if tag in job.tags]
    if (error := wanted.error) is not None:
        jobs = [job for job in jobs if error in (job.error or "")]
    if (after := wanted.created_after) is not None:
        jobs = [job for job in jobs if job.created_at > after]
    if (before := wanted.created_before) is not None:
        jobs = [job for job in jobs if job.created_at < before]
    return jobs
