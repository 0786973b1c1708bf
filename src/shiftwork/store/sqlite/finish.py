"""Writes what became of claimed jobs. It owns the way out of processing, and the fence that guards it.

A job whose row cannot be read goes to the dead-letter queue. That is an end like any other, whatever its status was.

Where an outcome takes its job is `shiftwork.core.jobs.transitions`; what it does to the worker is
`shiftwork.core.workers.state`.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import msgpack
from msgspec.structs import replace

from shiftwork.core.jobs.transitions import (
    COMPLETED,
    COUNTED,
    DEAD,
    FAILED,
    NUMBERS,
    PROCESSING,
    QUEUED,
    due,
    keep_until,
    landing,
    run_seconds,
)
from shiftwork.core.model.job_changes import Finished, Outcome
from shiftwork.core.model.jobs import JobStatus, ProgressNote
from shiftwork.core.values.job_limits import FIRST_ATTEMPTS, MOST_ATTEMPTS
from shiftwork.core.workers.state import after_run
from shiftwork.store.sqlite import flows
from shiftwork.store.sqlite.durable import has_arrived
from shiftwork.store.sqlite.file.sqlite_session import (
    DIED,
    FAILURES,
    RUN_SECONDS,
    SUCCEEDED,
    WAIT_SECONDS,
    SqliteSession,
    as_list,
)
from shiftwork.store.sqlite.rows import INLINE_BYTES, Unreadable, detailed, read_rows
from shiftwork.store.sqlite.sql import SQL
from shiftwork.store.sqlite.waking import due_before, repark, ring_if_sooner, wake_tied


class HeldJob(NamedTuple):
    """A row of `held_jobs`: a job that runs, and the place of its outcome in the batch."""

    place: int
    seq: int
    fence: int
    pool: int
    worker: int
    started_at: float | None
    cancelling: int
    key: str | None
    flow: int | None


Landed = tuple[Outcome, HeldJob, JobStatus, int]
"""An accepted outcome, its job as it was, and the status it lands in, also as a number."""


def finish(session: SqliteSession, outcomes: Sequence[Outcome], now: float) -> Finished:
    """Write these outcomes, where the fence is right."""
    landed = _accepted(session, outcomes, now)
    ended = [each for each in landed if _has_ended(each)]
    if ended:
        session.run_rows("end_jobs", [_end_row(each, now) for each in ended])
    if len(ended) < len(landed):
        _return(session, [each for each in landed if not _has_ended(each)])
    _write_optional_parts(session, landed)
    _count(session, landed)
    _ring(session, landed)
    keyed = {(job.worker, job.key) for _, job, _, _ in landed if job.key is not None}
    if keyed:
        repark(session, keyed)
    if flows.anything_waits(session):
        flows.meet(session, {outcome.id: status for outcome, _, status, _ in ended}, now)
    accepted = {job.place for _, job, _, _ in landed}
    return Finished([place in accepted for place in range(len(outcomes))], _change_states(session, landed))


def _accepted(session: SqliteSession, outcomes: Sequence[Outcome], now: float) -> list[Landed]:
    """Return the outcomes whose job runs under their fence, in order, each with the status it leads to."""
    ids = as_list([outcome.id for outcome in outcomes])
    seen: set[int] = set()
    landed: list[Landed] = []
    for job in session.rows(HeldJob, SQL["held_jobs"], (session.namespace, ids)):
        outcome = outcomes[job.place]
        if job.fence != outcome.fence or job.seq in seen:
            continue
        seen.add(job.seq)
        if outcome.wait is not None:
            outcome = _with_signal(session, outcome, job, now)
        status = landing(outcome, now, cancelling=bool(job.cancelling))
        landed.append((outcome, job, status, NUMBERS[status]))
    return landed


def _with_signal(session: SqliteSession, outcome: Outcome, job: HeldJob, now: float) -> Outcome:
    """Return the outcome of a job that is handed back to wait for a signal, which may have been sent already."""
    signalled = has_arrived(session, job.seq, outcome.wait)
    return replace(outcome, run_at=due(outcome, now, signalled=signalled))


def _has_ended(landed: Landed) -> bool:
    _, _, _, number = landed
    return number >= COMPLETED


def _end_row(landed: Landed, now: float) -> tuple[Any, ...]:
    outcome, job, status, number = landed
    keep = keep_until(outcome, status, now)
    result = outcome.result
    return (
        job.seq,
        number,
        outcome.run_at,
        outcome.attempt,
        outcome.crashes,
        outcome.ended_at,
        "" if keep is None else keep,
        0 if result is None or len(result) > INLINE_BYTES else bytearray(result),
        0 if outcome.error is None else outcome.error,
    )


def _return(session: SqliteSession, returned: Sequence[Landed]) -> None:
    """Write the jobs that will run again."""
    due_at = due_before(session, (number for _, _, _, number in returned))
    session.run_many("return_job", [_return_row(each) for each in returned])
    ring_if_sooner(session, (outcome.run_at for outcome, _, _, number in returned if number <= FAILED), due_at)
    for _, job, _, number in returned:
        if number == QUEUED and job.key is None:
            session.ring_pool(job.pool)


def _return_row(landed: Landed) -> tuple[Any, ...]:
    outcome, job, _, number = landed
    return (
        number,
        outcome.run_at,
        outcome.attempt,
        outcome.crashes,
        outcome.result,
        outcome.error,
        int(number == QUEUED and job.key is not None),
        None if outcome.wait is None else msgpack.encode(outcome.wait),
        outcome.keeps_rank,
        job.seq,
    )


def _write_optional_parts(session: SqliteSession, landed: Sequence[Landed]) -> None:
    """Write what outcomes may have beside their row: reports and large results. Cancel requests are answered."""
    reports = [(job.seq, msgpack.encode(outcome.report)) for outcome, job, _, _ in landed if outcome.report is not None]
    if reports:
        session.run_many("add_attempt", reports)
        session.run_many("drop_attempts", [(seq, MOST_ATTEMPTS, FIRST_ATTEMPTS) for seq, _ in reports])
    results = [
        (job.seq, outcome.result) for outcome, job, _, number in landed if outcome.result and number >= COMPLETED
    ]
    large = [(seq, result) for seq, result in results if len(result) > INLINE_BYTES]
    if large:
        session.run_many("add_result", large)
    cancelled = [(job.seq,) for _, job, _, _ in landed if job.cancelling]
    if cancelled:
        session.run_many("drop_cancel", cancelled)


def _count(session: SqliteSession, landed: Sequence[Landed]) -> None:
    marks: dict[tuple[int, str], int] = {}
    lanes: dict[tuple[int, int], list[float]] = {}
    for outcome, job, _, number in landed:
        lane = (job.pool, job.worker)
        counts = lanes.get(lane) or lanes.setdefault(lane, session.lane(*lane))
        counts[PROCESSING] -= 1
        counts[number] += 1
        if job.flow is not None:
            session.move_flow(job.flow, PROCESSING, number)
        if outcome.marks:
            mark = (job.pool, outcome.marks)
            marks[mark] = marks.get(mark, 0) + 1
        if outcome.status in COUNTED:
            counts[SUCCEEDED if outcome.status is JobStatus.COMPLETED else FAILURES] += 1
            counts[DIED] += outcome.status is JobStatus.DEAD
            counts[RUN_SECONDS] += run_seconds(outcome, job.started_at)
            counts[WAIT_SECONDS] += outcome.waited
    for (pool, names), n in marks.items():
        session.mark(pool, names, n)


def _ring(session: SqliteSession, landed: Sequence[Landed]) -> None:
    """Ring for the ends, and for the workers that may have waited for them."""
    causes = {outcome.cause for outcome, _, _, number in landed if number >= COMPLETED}
    if causes:
        session.ring("ended")
    if causes - {"enqueued"}:
        session.ring("leader")
    for worker in {job.worker for _, job, _, _ in landed}:
        wake_tied(session, session.workers.name(worker))


def _change_states(session: SqliteSession, landed: Sequence[Landed]) -> list[str]:
    """Apply the outcomes to the states of their workers, in order. Return the workers that this disabled."""
    disabled: list[str] = []
    states = {worker: session.state(worker) for worker in {job.worker for _, job, _, _ in landed}}
    for outcome, job, status, _ in landed:
        if after_run(states[job.worker], outcome, status):
            disabled.append(states[job.worker].worker)
    for worker in states:
        session.state_changed(worker)
    if disabled:
        session.ring("state", "leader")
    return disabled


def note(session: SqliteSession, notes: Sequence[ProgressNote]) -> None:
    """Keep the progress of running jobs, where the fence is right."""
    rows = [(msgpack.encode(note.progress), session.namespace, note.id, note.fence) for note in notes]
    session.run_many("note_progress", rows)


# ── rows that cannot be read ──────────────────────────────────────────────────────────────────────────────────────────


def bury_unreadable(session: SqliteSession, unreadable: Unreadable) -> None:
    """Bury the jobs that a reader could not read, if they still cannot be read."""
    broken = Unreadable()
    detailed(session, read_rows(session, "records_of_seqs", (as_list(unreadable),)), broken, whole=True)
    bury(session, broken, None)


def bury(session: SqliteSession, broken: Unreadable, now: float | None) -> None:
    """Put jobs whose rows cannot be read into the dead-letter queue, with the reason."""
    groups: set[tuple[int, str]] = set()
    ended: dict[str, JobStatus] = {}
    for seq, reason in broken.items():
        row = session.run("job_to_bury", (seq,)).fetchone()
        id, status, pool, worker, flow, key = row or ("", DEAD, 0, 0, None, None)
        if status == DEAD:
            continue
        session.run("bury_job", (reason, now, seq))
        session.run("drop_cancel", (seq,))
        session.move(pool, worker, flow, out_of=status, into=DEAD)
        if key is not None and status in (QUEUED, PROCESSING):
            groups.add((worker, key))
        known = session.run("read_state", (worker,)).fetchone() is not None  # the number may be damaged, too
        if known and status in range(COMPLETED):  # or a schedule would wait for its end for ever
            state = session.state(worker)
            state.last_ended = now or (state.last_ended or 0.0) + 1.0
            session.state_changed(worker)
        session.ring("ended", "leader")
        ended[str(id)] = JobStatus.DEAD
    repark(session, groups)
    if ended:
        flows.meet(session, ended, flows.UNKNOWN_TIME if now is None else now)
