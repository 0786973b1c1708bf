"""Applies people's changes to jobs: cancel, requeue, discard.

`shiftwork.core.jobs.statuses` says which statuses allow a change, `shiftwork.core.jobs.amending` what it makes of the
job; the statements here write only the columns that change.
"""

from collections.abc import Sequence
from typing import NamedTuple

from shiftwork.core.flows.releasing import LOST
from shiftwork.core.jobs.statuses import CANCELLED, NUMBERS, PROCESSING, QUEUED, SCHEDULED, STATUSES, WAITING, allows
from shiftwork.core.model.change import Amended, Cancel, Change, Discard, Requeue
from shiftwork.core.model.job import SECONDS_A_DAY, JobStatus
from shiftwork.core.workers.state import after_end
from shiftwork.store.sqlite import flows, keys
from shiftwork.store.sqlite import large_values as jobs
from shiftwork.store.sqlite.claim import stir
from shiftwork.store.sqlite.due import due_before, ring_if_sooner
from shiftwork.store.sqlite.file.session import SqliteSession, as_list
from shiftwork.store.sqlite.sql import SQL


class AmendableJob(NamedTuple):
    """A row of `jobs_to_amend`."""

    id: str
    seq: int
    number: int
    """Its status; a damaged row may hold any number."""
    pool: int
    worker: int
    key: str | None
    unique_key: str | None
    head_start: float
    cause: str
    flow: int | None

    @property
    def status(self) -> JobStatus:
        return STATUSES[self.number] if self.number in range(len(STATUSES)) else JobStatus.DEAD


def amend(session: SqliteSession, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
    """Apply one change to these jobs, and return what became of each, in order."""
    # One by one: the same id may come twice, and one requeued job may take the unique key of another.
    return [_amend(session, id, change, now) for id in ids]


def _amend(session: SqliteSession, id: str, change: Change, now: float) -> Amended:
    found = session.rows(AmendableJob, SQL["jobs_to_amend"], (session.namespace, as_list([id])))
    if not found:
        return Amended(id, ok=False, status=None)
    [job] = found
    ok = allows(job.status, change) and not (isinstance(change, Requeue) and _clashes(session, job))
    ok = ok and not (isinstance(change, Discard) and session.value("is_needed", (session.namespace, id)))
    if ok:
        _apply(session, job, change, now)
    return Amended(id, ok=ok, status=job.status)


def _apply(session: SqliteSession, job: AmendableJob, change: Change, now: float) -> None:
    match change:
        case Cancel():
            _cancel(session, job, change, now)
        case Requeue():
            _requeue(session, job, change, now)
        case Discard():
            jobs.delete(session, [(job.seq, job.pool, job.worker, job.number, job.flow)])


def _cancel(session: SqliteSession, job: AmendableJob, change: Cancel, now: float) -> None:
    if job.number == PROCESSING:
        session.run("ask_cancel", (job.seq,))
        session.run("add_cancel", (job.seq,))
        session.ring("orders")
        return
    session.run("cancel_job", (now, change.reason, now + SECONDS_A_DAY, job.seq))
    _move(session, job, into=CANCELLED)
    after_end(session.state(job.worker), now)
    session.state_changed(job.worker)
    session.ring("ended")
    if job.cause != "enqueued":
        session.ring("leader")
    if job.key is not None and job.number == QUEUED:
        keys.repark(session, [(job.worker, job.key)])
    flows.meet(session, {job.id: JobStatus.CANCELLED}, now)
    stir(session, session.workers.name(job.worker))


def _requeue(session: SqliteSession, job: AmendableJob, change: Requeue, now: float) -> None:
    key = job.key if change.payload is None else change.key
    unmet = session.value("has_needs", (job.seq,))
    landing = WAITING if unmet else NUMBERS[JobStatus.by_time(change.run_at, now)]
    due = due_before(session, [landing])
    parked = key is not None and landing == QUEUED
    session.run("requeue_job", (landing, parked, change.run_at, change.run_at - job.head_start, key, job.seq))
    session.run("drop_result", (job.seq,))
    if change.payload is not None:
        jobs.replace_payload(session, job.seq, change.payload)
    _move(session, job, into=landing)
    if job.status in LOST and flows.anything_waits(session):
        flows.regain(session, job.id)
    if key is not None and landing == QUEUED:
        keys.repark(session, [(job.worker, key)])
    elif landing == QUEUED:
        session.ring_pool(job.pool)
    ring_if_sooner(session, [change.run_at] if landing == SCHEDULED else [], due)
    stir(session, session.workers.name(job.worker))


def _move(session: SqliteSession, job: AmendableJob, *, into: int) -> None:
    session.move(job.pool, job.worker, job.flow, out_of=job.number, into=into)


def _clashes(session: SqliteSession, job: AmendableJob) -> bool:
    """Whether another live job has its unique key."""
    if job.unique_key is None:
        return False
    twin = session.run("live_twin", (job.worker, job.unique_key)).fetchone()
    if twin is None:
        return False
    _, seq = twin
    return bool(seq != job.seq)
