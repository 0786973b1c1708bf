"""What is wrong before a job of a flow: the dead and cancelled jobs that it waits for, directly or not."""

from collections.abc import Iterable
from typing import Final

from shiftwork.core.flow_failures import MOST_LOOKED_AT, OF_INTEREST, behind
from shiftwork.core.model import JobFilter, JobRecord, JobStatus
from shiftwork.store.protocol import Store

PAGE: Final = 1_000
MOST_STRANDED: Final = 100
"""How many stranded jobs of a page are followed to what strands them."""


async def jobs_before(store: Store, ids: Iterable[str]) -> dict[str, JobRecord]:
    """Those of these jobs that are dead, cancelled or waiting, and so on before those that are stranded.

    It reads as many pages as there are jobs in a row, and no more than `MOST_LOOKED_AT` jobs.
    """
    known: dict[str, JobRecord] = {}
    waiting = list(dict.fromkeys(ids))[:MOST_LOOKED_AT]
    seen = set(waiting)
    at = 0
    while at < len(waiting):
        page = waiting[at : at + PAGE]
        at += len(page)
        found = await store.find(JobFilter(ids=tuple(page), status=OF_INTEREST, limit=len(page)))
        known |= {job.id: job for job in found}
        stranded = [job.id for job in found if job.status is not JobStatus.DEAD][:MOST_STRANDED]
        for job in await store.get(stranded) if stranded else ():
            if job is not None:
                known[job.id] = job
                more = [id for id in behind(job) if id not in seen][: MOST_LOOKED_AT - len(waiting)]
                seen.update(more)
                waiting += more
    return known
