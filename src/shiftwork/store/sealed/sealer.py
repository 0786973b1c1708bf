"""What of each record is encrypted, and what it is bound to, beside its namespace. It knows no store.

    payload, result     bytes                            the job's id
    step                bytes: its result                the job's id, the step's number and name
    signal              bytes: its value                 the job's id, the signal's name and time
    progress            message and log lines, as one    the job's id
    attempt             error, traceback, log lines      the job's id, the attempt's number
    error               text; workers keep it as well    the worker's name
    event               message and data, but for "by"   the event's name and subject
    stored schedule     the payload of its job           the schedule's name

Lists and pages read no more than the beginning of a large value. If it is encrypted, that cannot be decrypted.

A value that is encrypted already stays as it is, and so does one that cannot be decrypted: whatever reads a record and
writes it elsewhere, such as a move, loses nothing even without the key.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from shiftwork.core.doc_kinds import SCHEDULE_PART, STORED_SCHEDULE
from shiftwork.core.model.doc_types import Doc
from shiftwork.core.model.event import Event
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import SeenParts, SeenSignal, SeenStep, Signal, Step
from shiftwork.core.model.jobs import Attempt, Claimed, DeadJob, JobRecord, LogLine, NewJob, Progress
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.schedules.stored import SCHEDULES_PREFIX
from shiftwork.core.values.envelopes import (
    BEFORE,
    as_text,
    changed_value,
    is_sealed,
    replace_sealed,
    sealed_in,
    version_of,
)
from shiftwork.store.sealed.key_ring import KeyRing

BY: Final = "by"
PARTS_FIELD: Final = "parts"
"""Where the parts of a sealed event are, among its data."""
"""What stays readable of an event's data: stores keep events apart by it."""


class Sealer:
    """Encrypts and decrypts the records of a namespace with a key ring."""

    def __init__(self, ring: KeyRing, namespace: str) -> None:
        self._ring = ring
        self._namespace = namespace

    # ── jobs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def seal_new(self, job: NewJob) -> NewJob:
        return replace(job, payload=self.seal_payload(job.id, job.payload))

    def seal_payload(self, id: str, payload: bytes) -> bytes:
        return self._seal(payload, "payload", id)

    def open_claimed(self, job: Claimed) -> Claimed:
        """Open a job that is to run. A payload that was changed becomes one that no function can take."""
        if not is_sealed(job.payload):
            return job
        payload = self._decrypt(job.payload, "payload", job.id)
        if payload is None and self._ring.knows(job.payload):
            payload = changed_value(job.payload)
        return job if payload is None else replace(job, payload=payload)

    def seal_outcome(self, outcome: Outcome) -> Outcome:
        if outcome.result is None and outcome.error is None and outcome.report is None:
            return outcome
        return replace(
            outcome,
            result=self._seal_result(outcome.id, outcome.result),
            error=self.seal_error(outcome.worker, outcome.error),
            report=None if outcome.report is None else self._seal_attempt(outcome.id, outcome.report),
        )

    def seal_record(self, job: JobRecord) -> JobRecord:
        return replace(
            job,
            payload=self.seal_payload(job.id, job.payload),
            result=self._seal_result(job.id, job.result),
            error=self.seal_error(job.worker, job.error),
            progress=None if job.progress is None else self.seal_progress(job.id, job.progress),
            attempts=tuple(self._seal_attempt(job.id, attempt) for attempt in job.attempts),
            steps=tuple(self.seal_step(job.id, step) for step in job.steps),
            signals=tuple(self.seal_signal(job.id, signal) for signal in job.signals),
        )

    def open_record(self, job: JobRecord) -> JobRecord:
        return replace(
            job,
            payload=job.payload if job.payload_size else self._open(job.payload, "payload", job.id),
            result=job.result if job.result_size else self.open_result(job.id, job.result),
            error=self.open_error(job.worker, job.error),
            progress=None if job.progress is None else self._open_progress(job.id, job.progress),
            attempts=tuple(self._open_attempt(job.id, attempt) for attempt in job.attempts),
            steps=tuple(self.open_step(job.id, one) for one in job.steps),
            signals=tuple(self.open_signal(job.id, one) for one in job.signals),
        )

    def open_dead(self, job: DeadJob) -> DeadJob:
        return replace(job, error=self.open_error(job.worker, job.error))

    # ── parts of jobs ────────────────────────────────────────────────────────────────────────────────────────────

    def seal_progress(self, id: str, progress: Progress) -> Progress:
        if progress.message is None and not progress.log:
            return progress
        message = self._seal_texts([progress.message, *_messages(progress.log)], "progress", id)
        return replace(progress, message=message, log=_with_messages(progress.log, ()))

    def _open_progress(self, id: str, progress: Progress) -> Progress:
        texts = self._open_texts(progress.message, "progress", id)
        if texts is None:
            return progress
        return replace(progress, message=texts[0], log=_with_messages(progress.log, texts[1:]))

    def _seal_attempt(self, id: str, attempt: Attempt) -> Attempt:
        error = self._seal_texts([attempt.error, attempt.traceback, *_messages(attempt.log)], *_attempt(id, attempt))
        return replace(attempt, error=error, traceback=None, log=_with_messages(attempt.log, ()))

    def _open_attempt(self, id: str, attempt: Attempt) -> Attempt:
        texts = self._open_texts(attempt.error, *_attempt(id, attempt))
        if texts is None:
            return attempt
        error, traceback, *messages = texts
        return replace(attempt, error=error or "", traceback=traceback, log=_with_messages(attempt.log, messages))

    def _seal_result(self, id: str, result: bytes | None) -> bytes | None:
        return None if result is None else self._seal(result, "result", id)

    def open_result(self, id: str, result: bytes | None) -> bytes | None:
        return None if result is None else self._open(result, "result", id)

    def seal_step(self, id: str, step: Step) -> Step:
        return replace(step, result=self._seal(step.result, *_step(id, step)))

    def open_step(self, id: str, step: Step) -> Step:
        return replace(step, result=self._open(step.result, *_step(id, step)))

    def seal_signal(self, id: str, signal: Signal) -> Signal:
        return replace(signal, value=self._seal(signal.value, *_signal(id, signal)))

    def open_signal(self, id: str, signal: Signal) -> Signal:
        return replace(signal, value=self._open(signal.value, *_signal(id, signal)))

    def open_parts(self, id: str, parts: SeenParts) -> SeenParts:
        """Open what people see of a job. The beginning of an encrypted value says nothing, and stays as it is."""
        return replace(
            parts,
            steps=[
                one if len(one.result) < one.size else replace(one, result=self._open(one.result, *_step(id, one)))
                for one in parts.steps
            ],
            signals=[
                one if len(one.value) < one.size else replace(one, value=self._open(one.value, *_signal(id, one)))
                for one in parts.signals
            ],
        )

    # ── texts of workers, and events ─────────────────────────────────────────────────────────────────────────────

    def seal_error(self, worker: str, error: str | None) -> str | None:
        if error is None or sealed_in(error) is not None:
            return error
        return as_text(self._encrypt(msgpack.encode(error), "error", worker))

    def open_error(self, worker: str, error: str | None) -> str | None:
        return None if error is None else replace_sealed(error, lambda value: self._decoded(value, "error", worker))

    def seal_state(self, state: WorkerState) -> WorkerState:
        reason, last_error = (
            self.seal_error(state.worker, state.reason),
            self.seal_error(state.worker, state.last_error),
        )
        return replace(state, reason=reason, last_error=last_error)

    def open_state(self, state: WorkerState) -> WorkerState:
        reason, last_error = (
            self.open_error(state.worker, state.reason),
            self.open_error(state.worker, state.last_error),
        )
        return replace(state, reason=reason, last_error=last_error)

    def seal_event(self, event: Event) -> Event:
        if sealed_in(event.message) is not None:
            return event
        hidden = {name: value for name, value in event.data.items() if name != BY}
        if event.parts is not None:
            hidden[PARTS_FIELD] = event.parts
        value = self._encrypt(msgpack.encode((event.message, hidden)), "event", event.name, event.subject)
        return replace(event, message=as_text(value), parts=None, data=_by(event))

    def open_event(self, event: Event) -> Event:
        value = sealed_in(event.message)
        said = None if value is None else self._decoded(value, "event", event.name, event.subject)
        if said is None:
            return event
        message, data = said
        parts = data.pop(PARTS_FIELD, None)
        return replace(event, message=message, parts=parts, data={**_by(event), **data})

    # ── stored schedules ─────────────────────────────────────────────────────────────────────────────────────────

    def seal_doc(self, doc: Doc) -> Doc:
        return _with_payloads(doc, lambda name, payload: self._seal(payload, "schedule", name))

    def open_doc(self, doc: Doc) -> Doc:
        return _with_payloads(doc, lambda name, payload: self._open(payload, "schedule", name))

    # ── values ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _encrypt(self, value: bytes, *place: str) -> bytes:
        return self._ring.seal(value, self._namespace, *place)

    def _decrypt(self, value: bytes, *place: str) -> bytes | None:
        if version_of(value) == BEFORE:
            return self._ring.open(value, *_place_before(place))
        return self._ring.open(value, self._namespace, *place)

    def _seal(self, value: bytes, *place: str) -> bytes:
        return self._encrypt(value, *place) if value and not is_sealed(value) else value

    def _open(self, value: bytes, *place: str) -> bytes:
        opened = self._decrypt(value, *place) if is_sealed(value) else None
        return value if opened is None else opened

    def _decoded(self, value: bytes, *place: str) -> Any:
        opened = self._decrypt(value, *place)
        try:
            return None if opened is None else msgpack.decode(opened)
        except MsgspecError:
            return None

    def _seal_texts(self, texts: list[str | None], *place: str) -> str | None:
        """Encrypt several texts as one, unless they are that already: then the first one is all there is."""
        if sealed_in(texts[0]) is not None and not any(texts[1:]):
            return texts[0]
        return as_text(self._encrypt(msgpack.encode(texts), *place))

    def _open_texts(self, text: str | None, *place: str) -> list[Any] | None:
        value = sealed_in(text)
        return None if value is None else self._decoded(value, *place)


def _place_before(place: tuple[str, ...]) -> tuple[str, ...]:
    """Return what a value of this place was bound to in the version before: the job, not the step or the signal."""
    return place if place[0] == "event" else place[:2]


def _step(id: str, step: Step | SeenStep) -> tuple[str, ...]:
    return "step", id, str(step.number), step.name


def _signal(id: str, signal: Signal | SeenSignal) -> tuple[str, ...]:
    return "signal", id, signal.name, repr(signal.at)


def _attempt(id: str, attempt: Attempt) -> tuple[str, ...]:
    return "attempt", id, str(attempt.number)


def _with_payloads(doc: Doc, made: Callable[[str, bytes], bytes]) -> Doc:
    """Return a doc whose schedules, if it holds any, have other payloads. What cannot be read stays as it is."""
    part = SCHEDULE_PART.decode(doc.body) if doc.kind.startswith(SCHEDULES_PREFIX) else None
    if part is None:
        return doc
    for name, body in part.items():
        schedule = STORED_SCHEDULE.decode(body)
        if schedule is not None:
            job = replace(schedule.job, payload=made(name, schedule.job.payload))
            part[name] = STORED_SCHEDULE.encode(replace(schedule, job=job))
    return replace(doc, body=SCHEDULE_PART.encode(part))


def _messages(lines: Sequence[LogLine]) -> list[str]:
    return [line.message for line in lines]


def _with_messages(lines: Sequence[LogLine], messages: Sequence[str]) -> tuple[LogLine, ...]:
    """Return the lines with these messages, empty where there is none."""
    padded = [*messages, *[""] * (len(lines) - len(messages))]
    return tuple(LogLine(line.at, line.level, said, line.attempt) for line, said in zip(lines, padded, strict=False))


def _by(event: Event) -> dict[str, Any]:
    return {BY: event.data[BY]} if BY in event.data else {}
