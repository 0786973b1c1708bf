"""Durable functions: their steps, and the signals that they wait for, by `shiftwork.core.jobs.durable_functions`."""

from shiftwork.core.jobs.durable_functions import (
    has_room_for_signal,
    has_room_for_step,
    next_steps,
    seen_parts,
    signalled,
    stepped,
)
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.values.job_limits import signals_full, steps_full
from shiftwork.store.memory.all_tables import Tables


def keep_step(tables: Tables, id: str, fence: int, step: Step, taking: str | None) -> bool:
    """Append a step to a job, if it runs under this fence and the step is its next one. False under another fence."""
    job = tables.running(id, fence)
    if job is None:
        return False
    if step.number == len(job.steps) + 1:
        if not has_room_for_step(job, step):
            raise steps_full(id)
        tables.jobs.write(stepped(job, step, taking))
    return True


def steps(tables: Tables, id: str, fence: int, after: int) -> StepPage | None:
    """Return the next steps of a running job."""
    job = tables.running(id, fence)
    return None if job is None else next_steps(job.steps, after)


def send(tables: Tables, id: str, signal: Signal, now: float) -> JobStatus | None:
    """Append a signal to a live job, which is due at once if it waits for it. Returns its status before."""
    job = tables.jobs.by_id.get(id)
    if job is None:
        return None
    if job.status.live:
        if not has_room_for_signal(job, signal):
            raise signals_full(id)
        tables.jobs.write(signalled(job, signal, now))
    return job.status


def first_signal(tables: Tables, id: str, name: str) -> Signal | None:
    """Return the first signal with this name that a job has not taken."""
    job = tables.jobs.by_id.get(id)
    return None if job is None else next((one for one in job.signals if one.name == name), None)


def parts(tables: Tables, id: str, steps: int, signals: int) -> SeenParts:
    """Return what people see of a job's steps and signals."""
    job = tables.jobs.by_id.get(id)
    return SeenParts() if job is None else seen_parts(job, steps, signals)
