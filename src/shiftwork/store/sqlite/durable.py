"""Durable functions: their steps, and the signals that they wait for.

`shiftwork.core.jobs.durable_functions` decides whether a signal has come, by the names of those that were sent, and
`shiftwork.core.values.job_limits` whether there is room for another step or signal.
"""

from typing import Literal, NamedTuple

from msgspec import MsgspecError, msgpack

from shiftwork.core.jobs.durable_functions import arrived
from shiftwork.core.jobs.transitions import QUEUED, SCHEDULED, STATUSES
from shiftwork.core.model.job_parts import SeenParts, Signal, Step, StepPage, Wait
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.values.beginnings import HEAD, TAIL, read_signal, read_step, seen_signal, seen_step
from shiftwork.core.values.job_limits import PAGE_BYTES, SIGNALS, STEPS
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession
from shiftwork.store.sqlite.sql import SQL
from shiftwork.store.sqlite.waking import repark


class SignalledJob(NamedTuple):
    """A row of `job_to_signal`."""

    seq: int
    number: int
    """Its status; a damaged row may hold any number."""
    pool: int
    worker: int
    key: str | None
    flow: int | None
    wait: bytes | None

    @property
    def status(self) -> JobStatus:
        return STATUSES[self.number] if self.number in range(len(STATUSES)) else JobStatus.DEAD


def keep_step(session: SqliteSession, id: str, fence: int, step: Step, taking: str | None) -> bool | Literal["full"]:
    """Append a step to a job, if it runs under this fence and the step is its next one. False under another fence."""
    held = session.run("held_job_and_steps", (session.namespace, id, fence)).fetchone()
    if held is None:
        return False
    seq, steps, total = held
    if step.number != steps + 1:
        return True
    if not STEPS.allows(steps, total, len(step.result)):
        return "full"
    session.run("add_step", (seq, step.number, total + len(step.result), msgpack.encode(step)))
    if taking is not None:
        session.run("take_signal", (seq, taking))
    return True


def send(session: SqliteSession, id: str, signal: Signal, now: float) -> JobStatus | Literal["full"] | None:
    """Append a signal to a live job, which is due at once if it waits for it. Returns its status before."""
    found = session.rows(SignalledJob, SQL["job_to_signal"], (session.namespace, id))
    if not found:
        return None
    [job] = found
    if job.status.live:
        there, size, last = session.run("signals_there", (job.seq,)).fetchone()
        if not SIGNALS.allows(there, size, len(signal.value)):
            return "full"
        session.run("add_signal", (job.seq, last + 1, signal.name, len(signal.value), msgpack.encode(signal)))
        if job.status is JobStatus.SCHEDULED and has_arrived(session, job.seq, read_wait(job.wait)):
            _wake(session, job, now)
    return job.status


def steps(session: SqliteSession, id: str, fence: int, after: int) -> StepPage | None:
    """Return the next steps of a running job. Rows are read one by one, and no more of them than the page has."""
    seq = session.value("held_job", (session.namespace, id, fence))
    if seq is None:
        return None
    page: list[Step] = []
    size = 0
    found = session.run("steps_behind", (seq, after))
    for (body,) in found:
        if size > PAGE_BYTES:
            found.close()
            return StepPage(page, more=True)
        page.append(read_step(body))
        size += len(page[-1].result)
    return StepPage(page)


def first_signal(session: SqliteSession, id: str, name: str) -> Signal | None:
    """Return the first signal with this name that a job has not taken."""
    seq = session.value("seq_of_id", (session.namespace, id))
    body = None if seq is None else session.value("first_signal", (seq, name))
    return None if body is None else read_signal(body)


def parts(session: SqliteSession, id: str, steps: int, signals: int) -> SeenParts:
    """Return what people see of a job's steps and signals."""
    seq = session.value("seq_of_id", (session.namespace, id))
    if seq is None:
        return SeenParts()
    step_count, step_bytes = session.run("last_step", (seq,)).fetchone() or (0, 0)
    signal_count, signal_bytes, _ = session.run("signals_there", (seq,)).fetchone()
    newest = session.run("seen_steps", (seq, steps, HEAD, TAIL)).fetchall()
    sent = session.run("seen_signals", (seq, signals, HEAD, TAIL)).fetchall()
    return SeenParts(
        steps=[seen_step(head, tail) for head, tail in reversed(newest)],
        signals=[seen_signal(head, tail) for head, tail in sent],
        step_count=step_count,
        step_bytes=step_bytes,
        signal_count=signal_count,
        signal_bytes=signal_bytes,
    )


def has_arrived(session: SqliteSession, seq: int, wait: Wait | None) -> bool:
    """Return whether the signal was sent that a job waits for."""
    if wait is None:
        return False
    return arrived(wait, (Signal(name, b"", 0.0) for name in session.values("signal_names", (seq,))))


def read_wait(body: bytes | None) -> Wait | None:
    """Return what a job waits for. A damaged record of it waits for its time alone."""
    try:
        return None if body is None else msgpack.decode(body, type=Wait)
    except (MsgspecError, TypeError):
        return None


def _wake(session: SqliteSession, job: SignalledJob, now: float) -> None:
    session.run("wake_job", (now, job.key is not None, job.seq))
    session.move(job.pool, job.worker, job.flow, out_of=SCHEDULED, into=QUEUED)
    if job.key is None:
        session.ring_pool(job.pool)
    else:
        repark(session, [(job.worker, job.key)])
