"""Jobs as programs see them, by `--json` and over HTTP."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, Literal

from msgspec import Struct

from shiftwork.core.job_parts import Step
from shiftwork.core.model import Attempt, JobStatus, LogLine
from shiftwork.core.own_options import unpack
from shiftwork.core.releasing import is_lost
from shiftwork.core.sealing import is_sealed
from shiftwork.core.waits import in_words
from shiftwork.handles.job import Job, JobProgress
from shiftwork.handles.plain_values import plain
from shiftwork.telemetry.tracing import trace_id
from shiftwork.views.explanation import Explanation
from shiftwork.views.flow_waits import FOR_EVER, due_at
from shiftwork.views.instants import iso, past_iso
from shiftwork.views.shapes.values import PRIORITY_NAMES, PriorityName, json_safe, unshowable
from shiftwork.views.stack import JobStack

MOST_STEPS: Final = 1_000
"""How many steps and signals of a job are shown, the newest."""
MOST_STEP_BYTES: Final = 10_000
"""How large a step's result may be that is shown."""
StepKind = Literal["step", "failed", "sleep", "wait", "signal", "timeout"]
_KINDS: Final[Mapping[str, StepKind]] = {
    ":sleep": "sleep",
    ":wait": "wait",
    ":got": "signal",
    ":failed": "failed",
}


class ProgressShape(Struct, frozen=True, kw_only=True):
    """The progress that a running job reported."""

    done: float
    total: float | None
    message: str | None
    at: str


class JobShape(Struct, frozen=True, kw_only=True):
    """A job, as it appears in lists."""

    id: str
    worker: str
    pool: str
    status: JobStatus
    priority: PriorityName
    cause: str
    attempt: int
    crashes: int
    error: str | None
    created_at: str
    run_at: str | None
    started_at: str | None
    ended_at: str | None
    instance: str | None
    cancelling: bool
    stranded: bool
    """Whether it waits for a dead or cancelled job, directly or not, and cannot run until that one is retried."""
    unique_key: str | None
    concurrency_key: str | None
    flow: str | None
    """The flow that it belongs to."""
    tags: list[str]
    expires_at: str | None
    progress: ProgressShape | None
    payload: Any


class AttemptShape(Struct, frozen=True, kw_only=True):
    """An attempt that did not succeed."""

    number: int
    kind: str
    started_at: str
    ended_at: str
    instance: str | None
    error: str
    traceback: str | None


class LogShape(Struct, frozen=True, kw_only=True):
    """A line that a job logged."""

    at: str
    level: str
    message: str
    attempt: int


class StepShape(Struct, frozen=True, kw_only=True):
    """A step of a durable function that has been run, or a wait of it."""

    number: int
    name: str
    kind: StepKind
    """`failed`: a step raised, and the function went on; `sleep` and `wait`: the function began to wait; `signal`: a
    signal ended the wait; `timeout`: none came in time."""
    started_at: str
    ended_at: str
    until_at: str | None
    """Until when the function sleeps, or waits at most."""
    result: Any
    """What a step returned; the error of a step that failed; the value of a signal."""


class SignalShape(Struct, frozen=True, kw_only=True):
    """A value that was sent to a job."""

    name: str
    at: str
    value: Any


class WholeJobShape(JobShape, frozen=True, kw_only=True):
    """A whole job."""

    fence: int
    trace_id: str | None
    max_retries: int | None
    """How many retries it has of its own; null if as many as its worker."""
    timeout_seconds: float | None
    """How long a run may take, if that differs from its worker; otherwise null."""
    result: Any
    why: str
    attempts: list[AttemptShape]
    steps: list[StepShape]
    """The steps of a durable function that are kept, the newest 1,000."""
    signals: list[SignalShape]
    waits_for_signal: str | None
    """The signal that its function waits for now."""
    logs: list[LogShape]


class WaitShape(Struct, frozen=True, kw_only=True):
    """One thing that a job is waiting for."""

    code: str
    by: str
    why: str
    since_at: str | None
    until_at: str | None


class ExplanationShape(Struct, frozen=True, kw_only=True):
    """Why a job is where it is."""

    id: str
    status: JobStatus
    text: str
    waits: list[WaitShape]
    expires_at: str | None
    """When the job is cancelled if it has not started by then; null is never."""


class StackShape(Struct, frozen=True, kw_only=True):
    """What a running job was doing."""

    job_id: str
    at: str
    instance: str
    pid: int
    stack: str


def job_shape(job: Job[Any]) -> JobShape:
    """Return a job as it appears in lists."""
    return JobShape(**_job(job))


def whole_job_shape(job: Job[Any], why: Explanation) -> WholeJobShape:
    """Return a whole job."""
    attempts, own = [_attempt(attempt) for attempt in job.history], unpack(job.record.options)
    return WholeJobShape(
        **_job(job),
        fence=job.record.fence,
        trace_id=trace_id(job.record.trace),
        max_retries=own.max_retries,
        timeout_seconds=own.timeout_seconds,
        result=result_shape(job),
        why=why.text,
        attempts=attempts,
        steps=[_step(step) for step in job.record.steps[-MOST_STEPS:]],
        signals=[
            SignalShape(name=signal.name, at=past_iso(signal.at), value=_small(signal.value))
            for signal in job.record.signals[-MOST_STEPS:]
        ],
        waits_for_signal=job.record.wait.name if job.record.wait and job.status is JobStatus.SCHEDULED else None,
        logs=[log_shape(line) for line in job.logs],
    )


def _step(step: Step) -> StepShape:
    kind = _KINDS.get(step.name.split(" ")[0], "step")
    result = _small(step.result)
    until = result if kind in {"sleep", "wait"} and isinstance(result, float) else None
    if kind == "signal" and isinstance(result, list):
        kind, result = ("signal" if result[0] else "timeout"), result[1]
    if kind == "failed" and isinstance(result, list):
        result = result[2]
    return StepShape(
        number=step.number,
        name=step.name.removeprefix(":got ") if kind == "timeout" else in_words(step.name),
        kind=kind,
        started_at=past_iso(step.started_at),
        ended_at=past_iso(step.ended_at),
        until_at=iso(until) if until is not None and until < step.ended_at + FOR_EVER else None,
        result=None if kind in {"sleep", "wait"} else result,
    )


def _small(value: bytes) -> Any:
    """Return a value of which a job may have thousands: one that is not small is only described."""
    if len(value) > MOST_STEP_BYTES:
        return {"not shown": f"it has {len(value):,} bytes"}
    shown = plain(value)
    return unshowable(shown) or json_safe(shown)


def log_shape(line: LogLine) -> LogShape:
    """Return a line that a job logged."""
    return LogShape(at=past_iso(line.at), level=line.level, message=line.message, attempt=line.attempt)


def _job(job: Job[Any]) -> dict[str, Any]:
    record = job.record
    return {
        "id": record.id,
        "worker": record.worker,
        "pool": record.pool,
        "status": record.status,
        "priority": PRIORITY_NAMES[record.priority],
        "cause": record.cause,
        "attempt": record.attempt,
        "crashes": record.crashes,
        "error": record.error,
        "created_at": past_iso(record.created_at),
        "run_at": iso(due_at(record)),
        "started_at": iso(record.started_at),
        "ended_at": iso(record.ended_at),
        "instance": record.instance,
        "cancelling": record.cancelling,
        "stranded": record.status is JobStatus.WAITING and is_lost(record.status, record.unmet),
        "unique_key": record.unique_key,
        "concurrency_key": record.key,
        "flow": record.flow,
        "tags": list(record.tags),
        "expires_at": iso(record.expires_at),
        "progress": _progress(job.progress),
        "payload": payload_shape(job),
    }


def payload_shape(job: Job[Any]) -> Any:
    """Return a job's arguments as they may be shown."""
    payload = job.payload
    instead = unshowable(payload)
    if instead is not None:
        return instead
    shown = _with_inputs(json_safe(payload), job)
    return shown if job.secrets is None or is_sealed(job.record.payload) else job.secrets.redact(shown)


def _with_inputs(shown: Any, job: Job[Any]) -> Any:
    """Name the job whose result belongs there wherever the stored payload has None instead."""
    for one in unpack(job.record.options).inputs:
        place = shown
        with suppress(KeyError, IndexError, TypeError):  # a payload that does not fit its inputs is shown as it is
            for step in one.path[:-1]:
                place = place[step]
            place[one.path[-1]] = f"the result of job {one.job}"
    return shown


def result_shape(job: Job[Any]) -> Any:
    """Return what a job's function returned."""
    if job.record.result is None:
        return None
    result = plain(job.record.result)
    return unshowable(result) or json_safe(result)


def explanation_shape(why: Explanation) -> ExplanationShape:
    """Return why a job is where it is."""
    waits = [
        WaitShape(code=wait.code, by=wait.by, why=wait.why, since_at=iso(wait.since), until_at=iso(wait.until))
        for wait in why.waits
    ]
    return ExplanationShape(
        id=why.job_id, status=why.status, text=why.text, waits=waits, expires_at=iso(why.expires_at)
    )


def stack_shape(seen: JobStack) -> StackShape:
    """Return what a running job was doing."""
    return StackShape(job_id=seen.job_id, at=past_iso(seen.at), instance=seen.instance, pid=seen.pid, stack=seen.stack)


def _attempt(attempt: Attempt) -> AttemptShape:
    return AttemptShape(
        number=attempt.number,
        kind=attempt.kind,
        started_at=past_iso(attempt.started_at),
        ended_at=past_iso(attempt.ended_at),
        instance=attempt.instance,
        error=attempt.error,
        traceback=attempt.traceback,
    )


def _progress(progress: JobProgress | None) -> ProgressShape | None:
    if progress is None:
        return None
    return ProgressShape(done=progress.done, total=progress.total, message=progress.message, at=past_iso(progress.at))
