"""Writes what became of claimed jobs, where the fence is right, and the progress of running ones.

Where an outcome takes its job is `shiftwork.core.jobs.transitions`; what it does to the worker is
`shiftwork.core.workers.state`.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from shiftwork.core.jobs.transitions import accepts, landed
from shiftwork.core.model.job_changes import Finished, Outcome
from shiftwork.core.model.jobs import JobRecord, ProgressNote
from shiftwork.core.workers.state import after_run
from shiftwork.store.memory.all_tables import Tables
from shiftwork.store.memory.flows import meet


def finish(tables: Tables, outcomes: Sequence[Outcome], now: float) -> Finished:
    """Write these outcomes, where the fence is right."""
    answer = Finished([], [])
    for outcome in outcomes:
        job = tables.jobs.by_id.get(outcome.id)
        if job is None or not accepts(job, outcome):
            answer.accepted.append(False)
            continue
        answer.accepted.append(True)
        if _land(tables, job, outcome, now):
            answer.disabled.append(job.worker)
    return answer


def _land(tables: Tables, job: JobRecord, outcome: Outcome, now: float) -> bool:
    """Write an accepted outcome. True if that disabled the worker."""
    after = landed(job, outcome, now)
    tables.jobs.write(after)
    meet(tables, after, now)
    tables.totals.finished(job, outcome)
    tables.wake_tied(job.worker)
    disabled = after_run(tables.states.of(job.worker), outcome, after.status)
    if disabled:
        tables.ring("state", "leader")
    return disabled


def note(tables: Tables, notes: Sequence[ProgressNote]) -> None:
    """Write the progress of jobs that run under these fences."""
    for one in notes:
        job = tables.running(one.id, one.fence)
        if job is not None:
            tables.jobs.write(replace(job, progress=one.progress))
