"""What people change about jobs: cancel, requeue, discard."""

from collections.abc import Sequence
from typing import Any, Final

from shiftwork.core.model import SECONDS_A_DAY, Amended, Cancel, Change, Discard, Requeue
from shiftwork.store.sqlite import jobs, keys
from shiftwork.store.sqlite.claim import stir
from shiftwork.store.sqlite.session import (
    CANCELLED,
    COMPLETED,
    DEAD,
    FAILED,
    PROCESSING,
    QUEUED,
    SCHEDULED,
    STATUSES,
    Session,
    as_list,
)

REQUEUABLE: Final = (DEAD, CANCELLED, FAILED, SCHEDULED)
ENDED: Final = COMPLETED
"""From this number on, a job has ended."""

Row = Sequence[Any]
"""See `jobs_to_amend`: id, seq, status, pool, worker, key, unique_key, head_start, cause."""


def amend(session: Session, ids: Sequence[str], change: Change, now: float) -> list[Amended]:
    """Apply one change to these jobs, each answered in order."""
    answers: list[Amended] = []
    for id in ids:
        # One by one: the same id may come twice, and one requeued job may stand in another's way.
        row = session.run("jobs_to_amend", (session.namespace, as_list([id]))).fetchone()
        if row is None:
            answers.append(Amended(id, ok=False, status=None))
            continue
        status = STATUSES[row[2]] if row[2] in range(len(STATUSES)) else STATUSES[DEAD]
        answers.append(Amended(id, ok=_apply(session, row, change, now), status=status))
    return answers


def _apply(session: Session, row: Row, change: Change, now: float) -> bool:
    match change:
        case Cancel():
            return _cancel(session, row, change, now)
        case Requeue():
            return _requeue(session, row, change, now)
        case Discard():
            return _discard(session, row)


def _cancel(session: Session, row: Row, change: Cancel, now: float) -> bool:
    _, seq, status, pool, worker, key, _, _, cause = row
    if status == PROCESSING:
        session.run("ask_cancel", (seq,))
        session.run("add_cancel", (seq,))
        session.ring("orders")
        return True
    if status >= ENDED:
        return False
    session.run("cancel_job", (now, change.reason, now + SECONDS_A_DAY, seq))
    session.move(pool, worker, out_of=status, into=CANCELLED)
    session.state(worker).last_ended = now
    session.state_changed(worker)
    session.ring("ended")
    if cause != "enqueued":
        session.ring("leader")
    if key is not None and status == QUEUED:
        keys.repark(session, [(worker, key)])
    stir(session, session.workers.name(worker))
    return True


def _requeue(session: Session, row: Row, change: Requeue, now: float) -> bool:
    _, seq, status, pool, worker, key, _, head_start, _ = row
    if status not in REQUEUABLE or _clashes(session, row):
        return False
    key = key if change.payload is None else change.key
    landing = QUEUED if change.run_at <= now else SCHEDULED
    due = jobs.due_before(session, [landing])
    parked = key is not None and landing == QUEUED
    session.run("requeue_job", (landing, parked, change.run_at, change.run_at - head_start, key, seq))
    session.run("drop_result", (seq,))
    if change.payload is not None:
        jobs.replace_payload(session, seq, change.payload)
    session.move(pool, worker, out_of=status, into=landing)
    if key is not None and landing == QUEUED:
        keys.repark(session, [(worker, key)])
    elif landing == QUEUED:
        session.ring_pool(pool)
    jobs.ring_if_sooner(session, [change.run_at] if landing == SCHEDULED else [], due)
    stir(session, session.workers.name(worker))
    return True


def _clashes(session: Session, row: Row) -> bool:
    """Whether another live job has its unique key."""
    if row[6] is None:
        return False
    twin = session.run("live_twin", (row[4], row[6])).fetchone()
    return twin is not None and twin[1] != row[1]


def _discard(session: Session, row: Row) -> bool:
    _, seq, status, pool, worker, *_ = row
    if status < ENDED:
        return False
    jobs.delete(session, [(seq, pool, worker, status)])
    return True
