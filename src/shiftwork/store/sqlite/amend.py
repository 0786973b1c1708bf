"""What people change: jobs are cancelled, requeued, discarded or rewritten, and workers are switched on and off.

`shiftwork.core.jobs.transitions` says which statuses allow a change and what it makes of the job, and
`shiftwork.core.values.rewriting` what a job carries after a rewrite. The statements here write only the columns that
change.
"""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.needs import LOST
from shiftwork.core.jobs.transitions import CANCELLED, NUMBERS, PROCESSING, QUEUED, SCHEDULED, STATUSES, WAITING, allows
from shiftwork.core.model.job_changes import Amended, Cancel, Change, Discard, Requeue
from shiftwork.core.model.jobs import SECONDS_A_DAY, JobRecord, JobStatus, Rewrite
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.values.rewriting import is_written, rewritten
from shiftwork.core.workers import state as worker_state
from shiftwork.core.workers.admission import neighbours
from shiftwork.store.sqlite import flows
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession, as_list
from shiftwork.store.sqlite.rows import Unreadable, delete, detailed, read_rows, replace_payload, replace_result
from shiftwork.store.sqlite.sql import SQL
from shiftwork.store.sqlite.waking import due_before, repark, ring_if_sooner, wake_tied, wake_workers


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
            delete(session, [(job.seq, job.pool, job.worker, job.number, job.flow)])


def _cancel(session: SqliteSession, job: AmendableJob, change: Cancel, now: float) -> None:
    if job.number == PROCESSING:
        session.run("ask_cancel", (job.seq,))
        session.run("add_cancel", (job.seq,))
        session.ring("orders")
        return
    session.run("cancel_job", (now, change.reason, now + SECONDS_A_DAY, job.seq))
    _move(session, job, into=CANCELLED)
    worker_state.after_end(session.state(job.worker), now)
    session.state_changed(job.worker)
    session.ring("ended")
    if job.cause != "enqueued":
        session.ring("leader")
    if job.key is not None and job.number == QUEUED:
        repark(session, [(job.worker, job.key)])
    flows.meet(session, {job.id: JobStatus.CANCELLED}, now)
    wake_tied(session, session.workers.name(job.worker))


def _requeue(session: SqliteSession, job: AmendableJob, change: Requeue, now: float) -> None:
    key = job.key if change.payload is None else change.key
    unmet = session.value("has_needs", (job.seq,))
    landing = WAITING if unmet else NUMBERS[JobStatus.by_time(change.run_at, now)]
    due = due_before(session, [landing])
    parked = key is not None and landing == QUEUED
    session.run("requeue_job", (landing, parked, change.run_at, change.run_at - job.head_start, key, job.seq))
    session.run("drop_result", (job.seq,))
    if change.payload is not None:
        replace_payload(session, job.seq, change.payload)
    _move(session, job, into=landing)
    if job.status in LOST and flows.anything_waits(session):
        flows.regain(session, job.id)
    if key is not None and landing == QUEUED:
        repark(session, [(job.worker, key)])
    elif landing == QUEUED:
        session.ring_pool(job.pool)
    ring_if_sooner(session, [change.run_at] if landing == SCHEDULED else [], due)
    wake_tied(session, session.workers.name(job.worker))


def _move(session: SqliteSession, job: AmendableJob, *, into: int) -> None:
    session.move(job.pool, job.worker, job.flow, out_of=job.number, into=into)


def _clashes(session: SqliteSession, job: AmendableJob) -> bool:
    """Return whether another live job has its unique key."""
    if job.unique_key is None:
        return False
    twin = session.run("live_twin", (job.worker, job.unique_key)).fetchone()
    if twin is None:
        return False
    _, seq = twin
    return bool(seq != job.seq)


# ── what jobs carry ───────────────────────────────────────────────────────────────────────────────────────────────────


def rewrite(session: SqliteSession, rewrites: Sequence[Rewrite]) -> list[bool]:
    """Rewrite these jobs, and return for each whether all of it was written."""
    return [_rewrite(session, one) for one in rewrites]


def _rewrite(session: SqliteSession, one: Rewrite) -> bool:
    broken = Unreadable()
    rows = read_rows(session, "records_of_ids", (session.namespace, as_list([one.before.id])))
    found = zip(rows, detailed(session, rows, broken, whole=True), strict=True)
    for seq, job in found:
        if seq not in broken:
            after = rewritten(job, one)
            _write(session, seq, job, after)
            return is_written(after, one)
    return False


def _write(session: SqliteSession, seq: int, before: JobRecord, after: JobRecord) -> None:
    if after.payload != before.payload:
        replace_payload(session, seq, after.payload)
    if after.result is not None and after.result != before.result:
        replace_result(session, seq, after.result)
    progress = None if after.progress is None else msgpack.encode(after.progress)
    session.run("change_texts", (after.error, progress, seq))
    for was, attempt in zip(before.attempts, after.attempts, strict=True):
        if attempt != was:
            session.run("change_attempt", (msgpack.encode(attempt), seq, msgpack.encode(was)))
    for step, other in zip(before.steps, after.steps, strict=True):
        if other != step:
            session.run("change_step", (msgpack.encode(other), seq, step.number))
    for signal, said in zip(before.signals, after.signals, strict=True):
        if said != signal:
            session.run("change_signal", (msgpack.encode(said), len(said.value), seq, msgpack.encode(signal)))


# ── workers ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def switch(session: SqliteSession, worker: str, *, enabled: bool, reason: str | None, now: float) -> WorkerState:
    """Enable a worker, or disable it with a reason."""
    number = session.workers.number(worker)
    state = session.state(number)
    worker_state.switch(state, enabled=enabled, reason=reason, now=now)
    session.state_changed(number)
    session.ring("state", "leader")
    wake_workers(session, neighbours([worker], session.docs().gates))
    return replace(state)
