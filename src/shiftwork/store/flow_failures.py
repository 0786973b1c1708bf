"""What is wrong before a job of a flow: the dead and cancelled jobs that it waits for, directly or not."""

from collections.abc import Iterable
from typing import Final

from shiftwork.core.health.health_values import StrandedFacts
from shiftwork.core.jobs.needs import LOST, MOST_LOOKED_AT, OF_INTEREST, lost_jobs, stranding_jobs
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.store.protocol import Store

FLOW_PAGE: Final = 1_000
JOBS_SAMPLED: Final = 100
"""How many dead or cancelled jobs, and how many waiting ones, are read to find flows with stranded jobs."""
FLOWS_SAMPLED: Final = 5
"""How many flows of each are read."""
MOST_MEMBERS_COUNTED: Final = 1_000
"""How many of the newest jobs of a flow are searched for stranded ones."""


async def stranded_flows(store: Store) -> list[StrandedFacts]:
    """Return flows that have stranded jobs. It looks at a sample: the flows of the newest jobs."""
    ids: dict[str, None] = {}
    for statuses in (LOST, (JobStatus.WAITING,)):
        found = await store.find(JobFilter(status=statuses, limit=JOBS_SAMPLED))
        ids |= dict.fromkeys(list(dict.fromkeys(job.flow for job in found if job.flow is not None))[:FLOWS_SAMPLED])
    flows = [await _stranded(store, id) for id in ids]
    return [flow for flow in flows if flow is not None]


async def _stranded(store: Store, flow: str) -> StrandedFacts | None:
    members = await store.members(flow, limit=MOST_MEMBERS_COUNTED)
    stranded = [member.id for member in members if member.stranded]
    if not stranded:
        return None
    oldest = await store.find(JobFilter(ids=(stranded[-1],), limit=1))
    broken = stranding_jobs(oldest[0]) if oldest else []
    lost = lost_jobs(broken, await jobs_before(store, broken))
    if not lost:  # it was retried in the meantime
        return None
    return StrandedFacts(
        flow=flow,
        jobs=len(stranded),
        all_counted=len(members) < MOST_MEMBERS_COUNTED,
        job_id=lost[0].id,
        worker=lost[0].worker,
        status=lost[0].status,
        since=lost[0].ended_at,
    )


async def jobs_before(store: Store, ids: Iterable[str]) -> dict[str, JobRecord]:
    """Return those of these jobs that are dead, cancelled or waiting, and those before the stranded ones, and so on.

    It reads as many pages as there are jobs in a row, and no more than `MOST_LOOKED_AT` jobs.
    """
    known: dict[str, JobRecord] = {}
    waiting = list(dict.fromkeys(ids))[:MOST_LOOKED_AT]
    seen = set(waiting)
    at = 0
    while at < len(waiting):
        page = waiting[at : at + FLOW_PAGE]
        at += len(page)
        found = await store.find(JobFilter(ids=tuple(page), status=OF_INTEREST, limit=len(page)))
        known |= {job.id: job for job in found}
        for job in found:
            more = [id for id in stranding_jobs(job) if id not in seen][: MOST_LOOKED_AT - len(waiting)]
            seen.update(more)
            waiting += more
    return known
