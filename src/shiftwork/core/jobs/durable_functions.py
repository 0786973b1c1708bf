"""Durable functions: signals that are sent to a job, and the job that was handed back to wait for one.

A job keeps the signals that were sent to it until its function takes them, within the limits of
`core.values.job_limits`: the step in which a wait ends takes the first signal of that name. While the signal that a job
waits for is missing, the job holds no slot, and is scheduled for the end of its timeout (`run_at`). The signal makes it
due at once, whether it comes before or after the job is handed back. A job that has ended takes no signals.

The memory and SQLite stores call these functions. Redis and PostgreSQL repeat them.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.job_parts import SeenParts, SeenSignal, SeenStep, Signal, Step, StepPage, Wait
from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.values.envelopes import is_sealed
from shiftwork.core.values.job_limits import BEGINNING, PAGE_BYTES, SHOWN_STEPS, SIGNALS, STEPS
from shiftwork.core.words import wrong_id
from shiftwork.sentences import sentence

_CAME: Final = b"\x92\xc3"
_SEALED_TIMEOUT: Final = 43
"""The length of an encrypted [false, nil], and of an encrypted [true, nil]."""
_SEALED_NIL: Final = 41


def taken(steps: Iterable[Step], signals: Sequence[Signal]) -> set[int]:
    """Return the positions of the signals that a wait has taken."""
    places: set[int] = set()
    for step in steps:
        free = (n for n, signal in enumerate(signals) if n not in places and got(signal.name) == step.name)
        first = next(free, None)
        if first is not None and _took(step, signals[first]):
            places.add(first)
    return places


def _took(step: Step, signal: Signal) -> bool:
    """Return whether the end of a wait has taken this signal, the first one that it could take."""
    if not is_sealed(step.result):
        return step.result.startswith(_CAME)
    if len(step.result) != _SEALED_TIMEOUT:
        return True
    return len(signal.value) == _SEALED_NIL and signal.at <= step.started_at


SLEEP: Final = ":sleep"
MARK: Final = ":"
LONGEST_NAME: Final = 200
"""How many characters the name of a step or a signal may have."""


def wrong_name(what: str, name: object) -> str | None:
    """Return why a step or a signal cannot have this name; None if it can."""
    if isinstance(name, str) and 1 <= len(name) <= LONGEST_NAME:
        wrong = wrong_id(name)
        return None if wrong is None else f"the name of {what} {wrong}"
    return f"the name of {what} is a text of 1 to {LONGEST_NAME} characters, not {name!r}"


def waiting(signal: str) -> str:
    """Return the name of the step in which a function begins to wait for a signal."""
    return f":wait {signal}"


def got(signal: str) -> str:
    """Return the name of the step in which a wait for a signal has ended."""
    return f":got {signal}"


def failed(step: str) -> str:
    """Return the name of a step that has failed."""
    return f":failed {step}"


def in_words(name: str) -> str:
    """Return the name of a step as people read it."""
    if name.startswith(":failed "):
        return name.removeprefix(":failed ")
    if name.startswith(":wait "):
        return sentence("wait for {signal}", signal=name.removeprefix(":wait "))
    return sentence("sleep") if name == SLEEP else name.removeprefix(MARK)


def arrived(wait: Wait | None, signals: Iterable[Signal]) -> bool:
    """Return whether the awaited signal is among these."""
    return wait is not None and sum(signal.name == wait.name for signal in signals) >= wait.nth


def has_room_for_signal(job: JobRecord, signal: Signal) -> bool:
    """Return whether the job may keep another signal."""
    return SIGNALS.allows(len(job.signals), sum(len(one.value) for one in job.signals), len(signal.value))


def has_room_for_step(job: JobRecord, step: Step) -> bool:
    """Return whether the job may keep another step."""
    return STEPS.allows(len(job.steps), sum(len(one.result) for one in job.steps), len(step.result))


def stepped(job: JobRecord, step: Step, taking: str | None) -> JobRecord:
    """Return the running job after its next step. The step may take the first signal with the name `taking`."""
    taken = next((n for n, signal in enumerate(job.signals) if signal.name == taking), None)
    signals = tuple(signal for n, signal in enumerate(job.signals) if n != taken)
    return replace(job, steps=(*job.steps, step), signals=signals)


def signalled(job: JobRecord, signal: Signal, now: float) -> JobRecord:
    """Return the live job after a signal. If it waits for this one, it is due at once."""
    changed = replace(job, signals=(*job.signals, signal))
    if job.status is JobStatus.SCHEDULED and arrived(job.wait, changed.signals):
        return replace(changed, status=JobStatus.QUEUED, run_at=now, rank=now - job.head_start)
    return changed


def next_steps(steps: Sequence[Step], after: int) -> StepPage:
    """Return the page of steps that follows the step with this number."""
    page: list[Step] = []
    size = 0
    for step in steps[after:]:
        if size > PAGE_BYTES:
            return StepPage(page, more=True)
        page.append(step)
        size += len(step.result)
    return StepPage(page)


def seen_parts(job: JobRecord, steps: int = SHOWN_STEPS, signals: int = SIGNALS.number) -> SeenParts:
    """Return what people see of a whole job: its newest steps and its first signals, at most this many of each."""
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
