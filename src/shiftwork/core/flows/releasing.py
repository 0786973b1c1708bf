"""Flows: when a job that waits for others is released.

    the needed job is   completed   dead, cancelled or stranded    any other
    the need is         met         met, if any end will do        not met
                                    otherwise broken

A waiting job is *stranded* while one of its needs is broken: it cannot run until a person retries a job before it. So
what is wrong travels along the needs that ask for a completed job, over as many jobs as there are, and ends at those
that any end will do for. A need that is broken is whole again when the needed job is retried and not stranded itself.
All of it happens in the same step as the end, the retry or the addition that causes it.

A job with an unmet need is waiting. When the last need is met, it is queued, or scheduled if its time has not come, and
counts as due from then on: what came before it is not its queue's delay. A need that is met stays met, whatever becomes
of the needed job later. A need of a job that does not exist is met: that job ended, and was deleted.

What waits for a running job waits for the jobs that it adds, too, under the same condition. A job that was added to run
after its own parent is an exception: it waits for that one alone, otherwise it would wait for itself, or for jobs that
wait for it.

A job that another one waits for cannot be discarded. An ended job is not pruned while a live or dead job waits for it;
nor while a job of its flow is live or dead, because that one may need its result; nor, if it has completed, while a job
of its flow is cancelled, because that one may be retried; nor while the job that a flow is named after, which has added
all of it while it ran, is live or dead, because it may run again and add the same jobs. It is looked at again after
`POSTPONED` seconds. If it is pruned while a cancelled job waits for it, that need is met.

The memory store calls these functions, and the SQLite store all but `released`, which its statement `release_jobs`
repeats. Redis (release_fast.lua, needs.lua) and PostgreSQL (flows.sql) repeat them; the suite compares every store with
the memory store.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.job_parts import Need
from shiftwork.core.model.jobs import JobRecord, JobStatus, NewJob

POSTPONED: Final = 60.0
"""How many seconds later an ended job is looked at again that its flow still needs."""
LOST: Final = (JobStatus.DEAD, JobStatus.CANCELLED)
"""The statuses of jobs that have ended and did not complete."""
SETTLED: Final = (JobStatus.COMPLETED, JobStatus.CANCELLED)
"""The statuses of jobs that need no result of another job any longer."""


def is_lost(status: JobStatus | None, unmet: Iterable[Need]) -> bool:
    """Whether a job with this status and these unmet needs cannot complete unless a person retries one."""
    return status in LOST or (status is JobStatus.WAITING and any(need.broken for need in unmet))


def is_stranded(job: JobRecord) -> bool:
    """Whether a job waits, and cannot run unless a person retries another one."""
    return job.status is JobStatus.WAITING and is_lost(job.status, job.unmet)


def meets(status: JobStatus | None, need: Need, *, lost: bool) -> bool:
    """Whether a job with this status, or None if there is none, meets the need. `lost` is what `is_lost` says of it."""
    return status is None or status is JobStatus.COMPLETED or (need.whatever and lost)


def needs_of(job: NewJob) -> list[Need]:
    """The needs of a new job, one for each needed job: the last one given counts."""
    needs = {need.id: replace(need, broken=False) if need.broken else need for need in job.needs}
    if job.parent is not None and job.parent in needs:
        needs[job.parent] = replace(needs[job.parent], alone=True)
    return list(needs.values())


def inherited(child: str, need: Need) -> Need | None:
    """What a job that has this need of a running job needs of a job that the running one adds; None if nothing."""
    return None if need.alone else Need(child, need.whatever)


def is_kept(status: JobStatus, in_flow: Mapping[JobStatus, int], *, founder: JobStatus | None, awaited: bool) -> bool:
    """Whether an ended job with this status must not be pruned yet.

    `in_flow` has the numbers of jobs in its flow, `founder` is the status of the job that the flow is named after, if
    there is one, and `awaited` says whether a live or dead job waits for it.
    """
    unsettled = any(n for one, n in in_flow.items() if one not in SETTLED)
    unsettled = unsettled or (founder is not None and founder not in SETTLED)
    return awaited or unsettled or (status is JobStatus.COMPLETED and in_flow.get(JobStatus.CANCELLED, 0) > 0)


def released(job: JobRecord, now: float) -> JobRecord:
    """A waiting job whose last need was met just now."""
    run_at = max(job.run_at, now)
    return replace(job, status=JobStatus.by_time(run_at, now), run_at=run_at, rank=run_at - job.head_start)
