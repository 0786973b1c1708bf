"""Finishing: what became of claimed jobs. It owns the way out of processing, and the fence that guards it."""

from collections.abc import Sequence
from typing import Any, Final

from msgspec import msgpack

from shiftwork.core.model import SECONDS_A_DAY, Finished, JobStatus, Outcome, ProgressNote
from shiftwork.core.worker_state import after_run
from shiftwork.store.sqlite import keys
from shiftwork.store.sqlite.claim import stir
from shiftwork.store.sqlite.jobs import INLINE_BYTES, due_before, ring_if_sooner
from shiftwork.store.sqlite.session import (
    CANCELLED,
    COMPLETED,
    FAILED,
    FAILURES,
    NUMBERS,
    PROCESSING,
    QUEUED,
    RUN_SECONDS,
    SCHEDULED,
    SUCCEEDED,
    WAIT_SECONDS,
    Session,
    as_list,
)

ENDED: Final = COMPLETED
"""From this number on, a job has ended."""
RAN: Final = (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD)
"""The outcomes whose running time counts."""

Row = Sequence[Any]
Settled = tuple[Outcome, Row, int]
"""An accepted outcome, the row of its job as it was (see `held_jobs`), and the number of its new status."""


def finish(session: Session, outcomes: Sequence[Outcome], now: float) -> Finished:
    """Write these outcomes, where the fence is right."""
    settled = _held(session, outcomes, now)
    ended = [each for each in settled if each[2] >= ENDED]
    if ended:
        session.run_rows("end_jobs", [_end_row(each, now) for each in ended])
    if len(ended) < len(settled):
        _return(session, [each for each in settled if each[2] < ENDED])
    _keep_extras(session, settled)
    _count(session, settled)
    _ring(session, settled)
    keyed = {(row[4], row[7]) for _, row, _ in settled if row[7] is not None}
    if keyed:
        keys.repark(session, keyed)
    accepted = {row[0] for _, row, _ in settled}
    return Finished([place in accepted for place in range(len(outcomes))], _judge(session, settled))


def _held(session: Session, outcomes: Sequence[Outcome], now: float) -> list[Settled]:
    """The outcomes whose job runs under their fence, in order, with where they lead to."""
    ids = as_list([outcome.id for outcome in outcomes])
    seen: set[int] = set()
    settled: list[Settled] = []
    for row in session.run("held_jobs", (session.namespace, ids)).fetchall():
        outcome = outcomes[row[0]]
        if row[2] != outcome.fence or row[1] in seen:
            continue
        seen.add(row[1])
        landing = NUMBERS[outcome.status]
        if landing < ENDED:
            landing = _landing(outcome, now, cancelling=row[6])
        settled.append((outcome, row, landing))
    return settled


def _landing(outcome: Outcome, now: float, *, cancelling: int) -> int:
    """Where an outcome leads that is no end: the clock and a cancel that was asked for decide."""
    if cancelling:
        return CANCELLED
    if outcome.run_at <= now:
        return QUEUED
    return FAILED if outcome.status is JobStatus.FAILED else SCHEDULED


def _end_row(settled: Settled, now: float) -> tuple[Any, ...]:
    outcome, row, landing = settled
    keep_until = outcome.keep_until
    if landing == CANCELLED and outcome.status is not JobStatus.CANCELLED:
        keep_until = now + SECONDS_A_DAY
    result = outcome.result
    return (
        row[1],
        landing,
        outcome.run_at,
        outcome.attempt,
        outcome.crashes,
        outcome.ended_at,
        "" if keep_until is None else keep_until,
        0 if result is None or len(result) > INLINE_BYTES else bytearray(result),
        0 if outcome.error is None else outcome.error,
    )


def _return(session: Session, returned: Sequence[Settled]) -> None:
    """Write those that will run again."""
    due = due_before(session, (landing for _, _, landing in returned))
    session.run_many("return_job", [_return_row(each) for each in returned])
    ring_if_sooner(session, (outcome.run_at for outcome, _, landing in returned if landing <= FAILED), due)
    for _, row, landing in returned:
        if landing == QUEUED and row[7] is None:
            session.ring_pool(row[3])


def _return_row(settled: Settled) -> tuple[Any, ...]:
    outcome, row, landing = settled
    return (
        landing,
        outcome.run_at,
        outcome.attempt,
        outcome.crashes,
        outcome.ended_at,
        outcome.result,
        outcome.error,
        int(landing == QUEUED and row[7] is not None),
        row[1],
    )


def _keep_extras(session: Session, settled: Sequence[Settled]) -> None:
    """What few outcomes have: a report, a large result, a cancel that is answered now."""
    reports = [(row[1], msgpack.encode(outcome.report)) for outcome, row, _ in settled if outcome.report is not None]
    if reports:
        session.run_many("add_attempt", reports)
    results = [(row[1], outcome.result) for outcome, row, landing in settled if outcome.result and landing >= ENDED]
    large = [(seq, result) for seq, result in results if len(result) > INLINE_BYTES]
    if large:
        session.run_many("add_result", large)
    answered = [(row[1],) for _, row, _ in settled if row[6]]
    if answered:
        session.run_many("drop_cancel", answered)


def _count(session: Session, settled: Sequence[Settled]) -> None:
    for outcome, row, landing in settled:
        counts = session.lane(row[3], row[4])
        counts[PROCESSING] -= 1
        counts[landing] += 1
        if outcome.marks:
            session.mark(row[3], outcome.marks)
        if outcome.status in RAN:
            counts[SUCCEEDED if outcome.status is JobStatus.COMPLETED else FAILURES] += 1
            counts[RUN_SECONDS] += max(0.0, outcome.ended_at - (row[5] or outcome.ended_at))
            counts[WAIT_SECONDS] += outcome.waited


def _ring(session: Session, settled: Sequence[Settled]) -> None:
    """Tell of the ends, and those who may wait for them."""
    causes = {outcome.cause for outcome, _, landing in settled if landing >= ENDED}
    if causes:
        session.ring("ended")
    if causes - {"enqueued"}:
        session.ring("leader")
    for worker in {row[4] for _, row, _ in settled}:
        stir(session, session.workers.name(worker))


def _judge(session: Session, settled: Sequence[Settled]) -> list[str]:
    """What the outcomes say about their workers, in order. The workers they disabled."""
    disabled: list[str] = []
    states = {worker: session.state(worker) for worker in {row[4] for _, row, _ in settled}}
    for outcome, row, landing in settled:
        state = states[row[4]]
        if after_run(state, outcome):
            disabled.append(state.worker)
        if landing >= ENDED:
            state.last_ended = outcome.ended_at
    for worker in states:
        session.state_changed(worker)
    if disabled:
        session.ring("state", "leader")
    return disabled


def note(session: Session, notes: Sequence[ProgressNote]) -> None:
    """Keep the progress of running jobs, where the fence is right."""
    rows = [(msgpack.encode(note.progress), session.namespace, note.id, note.fence) for note in notes]
    session.run_many("note_progress", rows)
