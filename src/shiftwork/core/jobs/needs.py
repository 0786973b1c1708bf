"""Flows: when a job that waits for others is released, and what it learns of them.

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
all of it while it ran, is live or dead, because it may run again and add the same jobs. It is checked again after
`POSTPONED` seconds. If it is pruned while a cancelled job waits for it, that need is met.

A job that waits for any end of others may ask what failed before it. These are the jobs that it was added to wait for
and that are dead or cancelled; and where one of them is stranded, the dead and cancelled jobs that strand it, over any
number of jobs. Where a needed job has completed, nothing before it counts, nor do the jobs that it has added. A job
that was retried in the meantime is not among them.

The memory store calls the functions about releasing, and the SQLite store all of them but `released`, which its
statement `release_jobs` repeats. Redis (release_fast.lua, needs.lua and, for pruning, lead.lua) and PostgreSQL
(flows.sql) repeat them; the suite compares every store with the memory store.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Raw, msgpack
from msgspec.structs import replace

from shiftwork.core.model.job_parts import FlowFailure, Input, Need
from shiftwork.core.model.jobs import JobRecord, JobStatus, NewJob
from shiftwork.core.values.envelopes import revealed
from shiftwork.core.values.job_limits import LONGEST_ERROR

# ── releasing ────────────────────────────────────────────────────────────────────────────────────────────────────────

POSTPONED: Final = 60.0
"""How many seconds later an ended job that its flow still needs is checked again."""
LOST: Final = (JobStatus.DEAD, JobStatus.CANCELLED)
"""The statuses of jobs that have ended and did not complete."""
NEED_NO_RESULTS: Final = (JobStatus.COMPLETED, JobStatus.CANCELLED)
"""The statuses of jobs that need no result of another job any longer."""


def is_lost(status: JobStatus | None, unmet: Iterable[Need]) -> bool:
    """Return whether a job with this status and these unmet needs can complete only if a person retries one."""
    return status in LOST or (status is JobStatus.WAITING and any(need.broken for need in unmet))


def is_stranded(job: JobRecord) -> bool:
    """Return whether a job waits, and can run only if a person retries another one."""
    return job.status is JobStatus.WAITING and is_lost(job.status, job.unmet)


def meets(status: JobStatus | None, need: Need, *, lost: bool) -> bool:
    """Return whether a job with this status (None: there is no such job) meets the need. `lost` is its `is_lost`."""
    return status is None or status is JobStatus.COMPLETED or (need.whatever and lost)


def needs_of(job: NewJob) -> list[Need]:
    """Return the needs of a new job, one for each needed job. If one is given twice, the last one counts."""
    needs = {need.id: replace(need, broken=False) if need.broken else need for need in job.needs}
    if job.parent is not None and job.parent in needs:
        needs[job.parent] = replace(needs[job.parent], alone=True)
    return list(needs.values())


def inherited(child: str, need: Need) -> Need | None:
    """Return the need of `child`, which a running job adds, that follows from this need of the running job, if any."""
    return None if need.alone else Need(child, need.whatever)


def is_kept(status: JobStatus, in_flow: Mapping[JobStatus, int], *, founder: JobStatus | None, awaited: bool) -> bool:
    """Return whether an ended job with this status must not be pruned yet.

    `in_flow` has the numbers of jobs in its flow, `founder` is the status of the job that the flow is named after, if
    there is one, and `awaited` says whether a live or dead job waits for it.
    """
    unfinished = any(n for one, n in in_flow.items() if one not in NEED_NO_RESULTS)
    unfinished = unfinished or (founder is not None and founder not in NEED_NO_RESULTS)
    return awaited or unfinished or (status is JobStatus.COMPLETED and in_flow.get(JobStatus.CANCELLED, 0) > 0)


def released(job: JobRecord, now: float) -> JobRecord:
    """Return a waiting job whose last need was met just now."""
    run_at = max(job.run_at, now)
    return replace(job, status=JobStatus.by_time(run_at, now), run_at=run_at, rank=run_at - job.head_start)


# ── what failed before ───────────────────────────────────────────────────────────────────────────────────────────────

MOST_FAILURES: Final = 100
"""How many failures a run is handed at most: those that ended first."""
MOST_LOOKED_AT: Final = 50_000
"""How many jobs are looked at, at most, for the jobs of one claim."""
OF_INTEREST: Final = (*LOST, JobStatus.WAITING)
"""The statuses of jobs that have failed, or behind which there may be jobs that have."""


def failures(needed: Iterable[str], known: Mapping[str, JobRecord]) -> tuple[FlowFailure, ...]:
    """Return what failed before a job that needs these. `known` has the jobs with a status `OF_INTEREST`."""
    failed = lost_jobs(needed, known)[:MOST_FAILURES]
    return tuple(FlowFailure(job.worker, job.id, (job.error or "")[:LONGEST_ERROR]) for job in failed)


def lost_jobs(needed: Iterable[str], known: Mapping[str, JobRecord]) -> list[JobRecord]:
    """Return the dead and cancelled jobs before a job that needs these, in the order in which they ended."""
    reached = dict.fromkeys(needed)
    waiting = list(reached)
    for id in waiting:  # it grows
        more = [one for one in stranding_jobs(known[id]) if one not in reached] if id in known else []
        reached.update(dict.fromkeys(more))
        waiting += more
    lost = [known[id] for id in reached if id in known and known[id].status in LOST]
    return sorted(lost, key=lambda job: (job.ended_at or 0.0, job.id))


def stranding_jobs(job: JobRecord) -> list[str]:
    return [need.id for need in job.unmet if need.broken]


# ── results in a payload ─────────────────────────────────────────────────────────────────────────────────────────────

NO_RESULT: Final = msgpack.encode(None)


def insert(payload: bytes, inputs: Sequence[Input], results: Mapping[str, bytes | None]) -> bytes:
    """Return the payload with these results in their places; None stands for a job that returned nothing."""
    whole = msgpack.decode(payload)
    for one in inputs:
        place: Any = whole
        for step in one.path[:-1]:
            place = place[step]
        place[one.path[-1]] = Raw(revealed(results.get(one.job) or NO_RESULT))
    return msgpack.encode(whole)
