"""Durable functions: signals that are sent to a job, and the job that was handed back to wait for one.

A job keeps the signals that were sent to it, up to `core.job_limits`, until its function takes them: with the step in
which a wait has ended, the first signal of that name goes. While the signal that a job waits for is missing, it is
scheduled for the end of its patience (`run_at`), and it holds no slot. The signal makes it due at once, whether it
comes before or after the job is handed back. A job that has ended takes no signals.

The memory and SQLite stores call these functions. Redis and PostgreSQL repeat them.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from shiftwork.core.job_limits import BEGINNING, PAGE_BYTES, SHOWN_STEPS, SIGNALS, STEPS
from shiftwork.core.job_parts import SeenParts, SeenSignal, SeenStep, Signal, Step, StepPage, Wait
from shiftwork.core.model import JobRecord, JobStatus


def arrived(wait: Wait | None, signals: Iterable[Signal]) -> bool:
    """Whether the signal that is waited for is among these."""
    return wait is not None and sum(signal.name == wait.name for signal in signals) >= wait.nth


def has_room_for_signal(job: JobRecord, signal: Signal) -> bool:
    """Whether the job may keep another signal."""
    return SIGNALS.allows(len(job.signals), sum(len(one.value) for one in job.signals), len(signal.value))


def has_room_for_step(job: JobRecord, step: Step) -> bool:
    """Whether the job may keep another step."""
    return STEPS.allows(len(job.steps), sum(len(one.result) for one in job.steps), len(step.result))


def stepped(job: JobRecord, step: Step, taking: str | None) -> JobRecord:
    """The running job after its next step, which may take the first signal of a name."""
    taken = next((n for n, signal in enumerate(job.signals) if signal.name == taking), None)
    signals = tuple(signal for n, signal in enumerate(job.signals) if n != taken)
    return replace(job, steps=(*job.steps, step), signals=signals)


def signalled(job: JobRecord, signal: Signal, now: float) -> JobRecord:
    """The live job after a signal: due at once if it waits for this one."""
    changed = replace(job, signals=(*job.signals, signal))
    if job.status is JobStatus.SCHEDULED and arrived(job.wait, changed.signals):
        return replace(changed, status=JobStatus.QUEUED, run_at=now, rank=now - job.head_start)
    return changed


def next_steps(steps: Sequence[Step], after: int) -> StepPage:
    """The steps behind the one with this number that a run reads at a time."""
    page: list[Step] = []
    size = 0
    for step in steps[after:]:
        if size > PAGE_BYTES:
            return StepPage(page, more=True)
        page.append(step)
        size += len(step.result)
    return StepPage(page)


def seen_parts(job: JobRecord, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
    """What people see of a whole job: the newest steps and the first signals, so many of each."""
    return SeenParts(
        steps=[
            SeenStep(
                number=step.number,
                name=step.name,
                result=step.result[:BEGINNING],
                size=len(step.result),
                started_at=step.started_at,
                ended_at=step.ended_at,
            )
            for step in job.steps[max(0, len(job.steps) - steps) :]
        ],
        signals=[
            SeenSignal(name=signal.name, value=signal.value[:BEGINNING], size=len(signal.value), at=signal.at)
            for signal in job.signals[:signals]
        ],
        step_count=len(job.steps),
        step_bytes=sum(len(step.result) for step in job.steps),
        signal_count=len(job.signals),
        signal_bytes=sum(len(signal.value) for signal in job.signals),
    )
