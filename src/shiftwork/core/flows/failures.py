"""What failed before a job that runs whatever becomes of the jobs that it needs.

These are the jobs that it was added to wait for and that are dead or cancelled; and where one of them is stranded, the
dead and cancelled jobs that strand it, over any number of jobs. Where a needed job has completed, nothing before it
counts, nor do the jobs that it has added. A job that was retried in the meantime is not among them.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from shiftwork.core.flows.releasing import LOST
from shiftwork.core.model.job_parts import FlowFailure
from shiftwork.core.model.jobs import JobRecord, JobStatus

MOST_FAILURES: Final = 100
"""How many failures a run is handed at most: those that ended first."""
MOST_LOOKED_AT: Final = 50_000
"""How many jobs are looked at, at most, for the jobs of one claim."""
LONGEST_ERROR: Final = 1_000
OF_INTEREST: Final = (*LOST, JobStatus.WAITING)
"""The statuses of jobs that have failed, or behind which there may be jobs that have."""


def behind(job: JobRecord) -> list[str]:
    """The jobs that strand this one."""
    return [need.id for need in job.unmet if need.broken]


def failures(needed: Iterable[str], known: Mapping[str, JobRecord]) -> tuple[FlowFailure, ...]:
    """What failed before a job that needs these. `known` has the jobs of interest."""
    failed = lost_jobs(needed, known)[:MOST_FAILURES]
    return tuple(FlowFailure(job.worker, job.id, (job.error or "")[:LONGEST_ERROR]) for job in failed)


def lost_jobs(needed: Iterable[str], known: Mapping[str, JobRecord]) -> list[JobRecord]:
    """The dead and cancelled jobs before a job that needs these, by their ends."""
    reached = dict.fromkeys(needed)
    waiting = list(reached)
    for id in waiting:  # it grows
        more = [one for one in behind(known[id]) if one not in reached] if id in known else []
        reached.update(dict.fromkeys(more))
        waiting += more
    lost = [known[id] for id in reached if id in known and known[id].status in LOST]
    return sorted(lost, key=lambda job: (job.ended_at or 0.0, job.id))
