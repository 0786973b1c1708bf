"""Durable functions: their steps, and the signals that they wait for.

Whether a signal has come is for `shiftwork.core.signals` to decide, by the names of those that were sent.
"""

from typing import NamedTuple

from msgspec import MsgspecError, msgpack

from shiftwork.core.job_parts import Signal, Step, Wait
from shiftwork.core.model import JobStatus
from shiftwork.core.signals import arrived
from shiftwork.core.statuses import QUEUED, SCHEDULED, STATUSES
from shiftwork.store.sqlite import keys
from shiftwork.store.sqlite.session import SqliteSession
from shiftwork.store.sqlite.sql import SQL


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
    signals: int
    """How many it has."""

    @property
    def status(self) -> JobStatus:
        return STATUSES[self.number] if self.number in range(len(STATUSES)) else JobStatus.DEAD


def keep_step(session: SqliteSession, id: str, fence: int, step: Step) -> bool:
    """Append a step to a job, if it runs under this fence and the step is its next one. False under another fence."""
    held = session.run("held_job", (session.namespace, id, fence)).fetchone()
    if held is None:
        return False
    seq, steps = held
    if step.number == steps + 1:
        session.run("add_step", (seq, step.number, msgpack.encode(step)))
    return True


def send(session: SqliteSession, id: str, signal: Signal, now: float) -> JobStatus | None:
    """Append a signal to a live job, which is due at once if it waits for it. Returns its status before."""
    found = session.rows(SignalledJob, SQL["job_to_signal"], (session.namespace, id))
    if not found:
        return None
    [job] = found
    if job.status.live:
        session.run("add_signal", (job.seq, job.signals + 1, signal.name, msgpack.encode(signal)))
        if job.status is JobStatus.SCHEDULED and has_arrived(session, job.seq, read_wait(job.wait)):
            _wake(session, job, now)
    return job.status


def has_arrived(session: SqliteSession, seq: int, wait: Wait | None) -> bool:
    """Whether the signal was sent that a job waits for."""
    if wait is None:
        return False
    return arrived(wait, (Signal(name, b"", 0.0) for name in session.values("signal_names", (seq,))))


def read_wait(body: bytes | None) -> Wait | None:
    """What a job waits for. A damaged record of it waits for its time alone."""
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
        keys.repark(session, [(job.worker, job.key)])
