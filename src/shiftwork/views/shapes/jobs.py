"""Jobs as programs see them, by `--json` and over HTTP."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

from msgspec import Struct

from shiftwork.core.jobs.durable_functions import in_words, waiting
from shiftwork.core.jobs.needs import is_stranded
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.model.job_parts import SeenParts, SeenSignal, SeenStep
from shiftwork.core.model.jobs import JobRecord, JobStatus, LogLine, Progress
from shiftwork.core.values.beginnings import beginning
from shiftwork.core.values.envelopes import is_hidden, is_sealed, revealed
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.handles.job import Job, JobProgress
from shiftwork.handles.plain_values import plain
from shiftwork.handles.redaction import MASK, PageSecrets, value_texts
from shiftwork.telemetry.tracing import trace_id
from shiftwork.views.explanation import FOR_EVER, Estimate, Explanation, due_at
from shiftwork.views.formats import PRIORITY_NAMES, PriorityName, iso, json_safe, past_iso, shaped, unshowable
from shiftwork.views.instances import JobStack

UNASKED: Final = {"not shown": "the function has not waited for this signal yet, so it may be secret"}
"""Stands for the value of a signal that no wait has asked for."""
LARGE_SECRET: Final = {"not shown": "a step returned a secret that is too large to look for it in this value"}
"""Stands for the other values of a job, where a page reads only the beginning of a secret."""
Hide = Callable[[Any], Any]
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
    over: bool
    """Whether it is completed, dead or cancelled. A failed job is not over: it will be retried."""
    priority: PriorityName
    cause: str
    attempt: int
    crashes: int
    error: str | None
    created_at: str
    run_at: str | None
    started_at: str | None
    ended_at: str | None
    """null until it is over, also between two attempts."""
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
    waits_for_signal: str | None
    """The signal that its function waits for now."""
    payload: Any
    """Its arguments. In lists, a payload of more than 1,024 bytes is cut."""
    payload_bytes: int
    """How many bytes the whole payload has, as it is stored."""
    payload_truncated: bool
    """Whether `payload` is only its beginning."""


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
    """What a step returned; the error of a step that failed; the value of a signal. Of a large one, the beginning."""
    result_bytes: int
    """How many bytes that has, as it is stored."""


class SignalShape(Struct, frozen=True, kw_only=True):
    """A value that was sent to a job, which its function has not taken yet."""

    name: str
    at: str
    value: Any
    """The value; of a large one, the beginning."""
    value_bytes: int
    """How many bytes the value has, as it is stored."""


class PlacedJobShape(JobShape, frozen=True, kw_only=True):
    """A job and its place in the queue."""

    position: int | None
    """Its place in the queue of its pool: 1 is the first. null if it is not queued; in lists, also if it waits for
    another job with its key."""
    position_exact: bool
    """Whether the jobs ahead were counted; otherwise the position is about this number."""
    estimate: float | None
    """In how many seconds from now it will start, about; null if that is not known, or if it does not wait to start."""


class WholeJobShape(PlacedJobShape, frozen=True, kw_only=True):
    """A whole job."""

    fence: int
    trace_id: str | None
    max_retries: int | None
    """How many retries it has of its own; null if as many as its worker."""
    timeout_seconds: float | None
    """How long a run may take, if that differs from its worker; otherwise null."""
    result: Any
    why: str
    estimate_basis: str | None
    """How the estimate was worked out, or why there is none."""
    attempts: list[AttemptShape]
    steps: list[StepShape]
    """The steps of a durable function that are kept, the newest 1,000."""
    step_count: int
    """How many steps are kept."""
    step_bytes: int
    """How many bytes their results have."""
    signals: list[SignalShape]
    """The signals that its function has not taken yet."""
    signal_bytes: int
    """How many bytes their values have."""
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
    position: int | None
    """Its place in the queue of its pool: 1 is the first. null if it is not queued."""
    position_exact: bool
    """Whether the jobs ahead were counted; otherwise the position is about this number."""
    estimate: float | None
    """In how many seconds from now it will start, about; null if that is not known, or if it does not wait to start."""
    estimate_basis: str | None
    """How the estimate was worked out, or why there is none."""


class StackShape(Struct, frozen=True, kw_only=True):
    """What a running job was doing."""

    job_id: str
    at: str
    instance: str
    pid: int
    stack: str


def job_shape(job: Job[Any]) -> JobShape:
    """Return a job with the beginning of its payload."""
    return shaped(JobShape, job.record, **_job(job), **_begun(job))


def placed_job_shape(job: Job[Any], placed: Mapping[str, Estimate]) -> PlacedJobShape:
    """Return a job as it appears in lists, with its place in the queue."""
    place = placed.get(job.id, Estimate())
    return shaped(
        PlacedJobShape,
        job.record,
        place,
        **_job(job),
        **_begun(job),
    )


def _begun(job: Job[Any]) -> dict[str, Any]:
    is_cut = _payload_bytes(job.record) > BEGINNING
    return {"payload": _payload_beginning(job) if is_cut else payload_shape(job), "payload_truncated": is_cut}


def whole_job_shape(job: Job[Any], why: Explanation, parts: SeenParts | None = None) -> WholeJobShape:
    """Return a whole job, with what people see of its steps and signals."""
    attempts, own = [shaped(AttemptShape, attempt) for attempt in job.history], run_options_of(job.record.options)
    parts = parts or SeenParts()
    hide = _hider(job, parts)
    return shaped(
        WholeJobShape,
        job.record,
        why,
        own,
        parts,
        **_job(job),
        payload=payload_shape(job),
        payload_truncated=False,
        trace_id=trace_id(job.record.trace),
        result=_result(job, hide),
        why=why.text,
        attempts=attempts,
        steps=[_step(step, hide) for step in parts.steps],
        signals=_signals(parts, hide),
        logs=[log_shape(line) for line in job.logs],
    )


def _hider(job: Job[Any], parts: SeenParts) -> Hide:
    """Return what hides the known secrets of a job in its other values: all of them if its payload is encrypted."""
    if job.secrets is not None and is_sealed(job.record.payload):
        return lambda value: None if value is None else MASK
    texts = set() if job.secrets is None else job.secrets.texts(job.payload)
    for step in parts.steps:
        if is_hidden(step.result):
            if len(step.result) < step.size:
                return lambda value: None if value is None else LARGE_SECRET
            texts |= value_texts(plain(revealed(step.result)))
    return PageSecrets(texts).hide


def _signals(parts: SeenParts, hide: Hide) -> list[SignalShape]:
    """Return the signals of a job. Until its function waits for one, it is not known whether it is secret."""
    awaited = {step.name for step in parts.steps}
    secret = {step.name for step in parts.steps if is_hidden(step.result)}

    def shown(signal: SeenSignal) -> Any:
        wait = waiting(signal.name)
        if wait not in awaited:
            return UNASKED
        return MASK if wait in secret else hide(_shown(signal.value, signal.size))

    return [
        SignalShape(name=one.name, at=past_iso(one.at), value=shown(one), value_bytes=one.size) for one in parts.signals
    ]


def _step(step: SeenStep, hide: Hide) -> StepShape:
    kind = _KINDS.get(step.name.split(" ")[0], "step")
    result = _shown(revealed(step.result), step.size - len(step.result) + len(revealed(step.result)))
    until = result if kind in {"sleep", "wait"} and isinstance(result, float) else None
    if kind == "signal" and isinstance(result, list):
        kind, result = ("signal" if result[0] else "timeout"), _part(result, 1)
    if kind == "failed" and isinstance(result, list):
        result = _part(result, 2)
    if is_hidden(step.result):
        shown: Any = None if kind == "timeout" else MASK
    else:
        shown = None if kind in {"sleep", "wait"} else hide(result)
    return shaped(
        StepShape,
        step,
        name=step.name.removeprefix(":got ") if kind == "timeout" else in_words(step.name),
        kind=kind,
        until_at=iso(until) if until is not None and until < step.ended_at + FOR_EVER else None,
        result=shown,
        result_bytes=step.size,
    )


def _part(values: list[Any], place: int) -> Any:
    """Return an element of a list that may have been cut before it."""
    return values[place] if place < len(values) else "…"


def _shown(value: bytes, size: int) -> Any:
    """Return a value of which a job may have thousands; of one that was cut, the beginning."""
    if len(value) == size:
        shown = plain(value)
    elif is_sealed(value):
        shown = {"not shown": f"it is encrypted, and has {size:,} bytes"}
    else:
        shown = beginning(value)
    return unshowable(shown) or json_safe(shown)


def log_shape(line: LogLine) -> LogShape:
    """Return a line that a job logged."""
    return shaped(LogShape, line, at=past_iso(line.at))


def _job(job: Job[Any]) -> dict[str, Any]:
    """Return what the record of a job has not, or has under another name."""
    record = job.record
    return {
        "over": job.over,
        "priority": PRIORITY_NAMES[record.priority],
        "run_at": iso(due_at(record)),
        "stranded": is_stranded(record),
        "concurrency_key": record.key,
        "tags": list(record.tags),
        "progress": progress_shape(job.progress),
        "waits_for_signal": record.wait.name if record.wait and record.status is JobStatus.SCHEDULED else None,
        "payload_bytes": _payload_bytes(record),
    }


def _payload_bytes(record: JobRecord) -> int:
    return len(record.payload) if record.payload_size is None else record.payload_size


def _payload_beginning(job: Job[Any]) -> Any:
    """Return the beginning of a job's arguments, as they may be shown."""
    record = job.record
    if is_sealed(record.payload) or not isinstance(shown := beginning(record.payload[:BEGINNING]), dict):
        return {"not shown": f"it has {_payload_bytes(record):,} bytes"}
    instead = unshowable(shown)
    if instead is not None:
        return instead
    shown = _with_inputs(json_safe(shown), job)
    return shown if job.secrets is None else job.secrets.redact(shown)


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
    for one in run_options_of(job.record.options).inputs:
        place = shown
        with suppress(KeyError, IndexError, TypeError):  # a payload that does not fit its inputs is shown as it is
            for step in one.path[:-1]:
                place = place[step]
            place[one.path[-1]] = f"the result of job {one.job}"
    return shown


def result_shape(job: Job[Any], parts: SeenParts) -> Any:
    """Return what a job's function returned, as it may be shown."""
    return _result(job, _hider(job, parts))


def _result(job: Job[Any], hide: Hide) -> Any:
    if job.record.result is None:
        return None
    if is_hidden(job.record.result):
        return MASK
    result = plain(job.record.result)
    return hide(unshowable(result) or json_safe(result))


def explanation_shape(why: Explanation) -> ExplanationShape:
    """Return why a job is where it is."""
    waits = [shaped(WaitShape, wait, since_at=iso(wait.since), until_at=iso(wait.until)) for wait in why.waits]
    return shaped(ExplanationShape, why, id=why.job_id, waits=waits)


def stack_shape(seen: JobStack) -> StackShape:
    """Return what a running job was doing."""
    return shaped(StackShape, seen, at=past_iso(seen.at))


def progress_shape(progress: JobProgress | Progress | None) -> ProgressShape | None:
    """Return how far a job is; None if it does not say."""
    if progress is None or progress.done is None:
        return None
    return shaped(ProgressShape, progress, at=past_iso(progress.at))
