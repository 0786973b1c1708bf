"""Moving in from another store: jobs as they were there, the workers' states, the totals that only grow."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import msgpack

from shiftwork.core.jobs.transitions import COMPLETED, FAILED, NUMBERS, QUEUED
from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.core.workers.admission import neighbours
from shiftwork.store.sqlite import flows
from shiftwork.store.sqlite.file.sqlite_session import (
    ADDED,
    FAILURES,
    RUN_SECONDS,
    SUCCEEDED,
    WAIT_SECONDS,
    SqliteSession,
    as_list,
)
from shiftwork.store.sqlite.rows import INLINE_BYTES, delete
from shiftwork.store.sqlite.stats import marks_of, stats
from shiftwork.store.sqlite.waking import due_before, repark, ring_if_sooner, wake_tied, wake_workers


def restore(session: SqliteSession, jobs: Sequence[JobRecord], now: float) -> None:
    """Keep these jobs as they are, in place of any with their ids."""
    groups = _make_room(session, jobs)
    expiring = any(job.expiry is not None for job in jobs)
    due = due_before(session, [NUMBERS[job.status] for job in jobs], expiring=expiring)
    kept = [job for job in jobs if _write(session, job, now)]
    groups |= {(session.workers.number(job.worker), job.key) for job in kept if job.key is not None}
    repark(session, groups)
    ring_if_sooner(session, [job.run_at for job in kept if NUMBERS[job.status] <= FAILED], due)
    ring_if_sooner(session, [at for job in kept if (at := job.expiry) is not None], due)
    _ring(session, kept)


def _make_room(session: SqliteSession, jobs: Sequence[JobRecord]) -> set[tuple[int, str]]:
    """Delete the jobs with these ids, and return the workers and keys they had."""
    ids = as_list({job.id for job in jobs})
    rows = session.run("jobs_to_replace", (session.namespace, ids)).fetchall()
    if rows:
        delete(session, [(seq, pool, worker, status, flow) for seq, pool, worker, status, flow, _ in rows])
        session.run_many("drop_cancel", [(seq,) for seq, *_ in rows])
    return {(worker, key) for _, _, worker, _, _, key in rows if key is not None}


def _write(session: SqliteSession, job: JobRecord, now: float) -> bool:
    """Write a job. False if another live job has its unique key."""
    seq = session.next_seqs(1)
    flow = flows.numbers_of(session, [job.flow]).get(job.flow)
    if not session.run("restore_job", _row(session, seq, job, flow, now)).rowcount:
        return False
    if len(job.payload) > INLINE_BYTES:
        session.run("add_payload", (seq, job.payload))
    if job.result is not None and len(job.result) > INLINE_BYTES:
        session.run("add_result", (seq, job.result))
    _write_parts(session, seq, job)
    if flow is not None:
        flows.begin(session, flow, job, job.created_at)
    pool, worker = session.pools.number(job.pool), session.workers.number(job.worker)
    session.count(pool, worker, flow, NUMBERS[job.status])
    return True


def _write_parts(session: SqliteSession, seq: int, job: JobRecord) -> None:
    session.run_many("add_attempt", [(seq, msgpack.encode(attempt)) for attempt in job.attempts])
    totals = accumulate(len(step.result) for step in job.steps)
    steps = zip(job.steps, totals, strict=True)
    session.run_many("add_step", [(seq, step.number, total, msgpack.encode(step)) for step, total in steps])
    session.run_many(
        "add_signal",
        [
            (seq, number, signal.name, len(signal.value), msgpack.encode(signal))
            for number, signal in enumerate(job.signals, 1)
        ],
    )
    session.run_many("add_tag", [(session.namespace, tag, job.created_at, job.id, seq) for tag in job.tags])
    flows.need_all(session, [(seq, need) for need in job.unmet])


def _row(session: SqliteSession, seq: int, job: JobRecord, flow: int | None, now: float) -> tuple[Any, ...]:
    status = NUMBERS[job.status]
    return (
        seq,
        session.namespace,
        job.id,
        session.pools.number(job.pool),
        session.workers.number(job.worker),
        status,
        int(job.key is not None and status == QUEUED),
        job.rank,
        job.run_at,
        job.head_start,
        job.created_at,
        int(job.priority),
        job.key_limit,
        job.attempt,
        job.crashes,
        job.fence,
        None if job.instance is None else _holder(session, job.instance, now),
        job.started_at,
        job.ended_at,
        job.keep_until,
        job.cause,
        job.unique_key,
        job.key,
        job.trace,
        job.payload if len(job.payload) <= INLINE_BYTES else None,
        job.result if job.result is not None and len(job.result) <= INLINE_BYTES else None,
        job.error,
        None if job.progress is None else msgpack.encode(job.progress),
        job.expires_at,
        flow,
        None if job.wait is None else msgpack.encode(job.wait),
        job.options,
        as_list(job.tags) if job.tags else None,
    )


def _holder(session: SqliteSession, instance: str, now: float) -> int:
    """Return the number of an instance that ran a job elsewhere, kept as long as one that was here and is gone."""
    known = session.instances.find(instance)
    if known is not None:
        return known
    number = session.instances.number(instance)
    session.run("forget_silent", (now, number))
    return number


def _ring(session: SqliteSession, jobs: Sequence[JobRecord]) -> None:
    for pool in {job.pool for job in jobs if job.key is None and NUMBERS[job.status] == QUEUED}:
        session.ring_pool(session.pools.number(pool))
    causes = {job.cause for job in jobs if NUMBERS[job.status] >= COMPLETED}
    if causes:
        session.ring("ended")
    if causes - {"enqueued"}:
        session.ring("leader")
    for worker in {job.worker for job in jobs}:
        wake_tied(session, worker)


def take_over(
    session: SqliteSession, states: Sequence[WorkerState], totals: Mapping[str, PoolStats], fence: int
) -> int:
    """Continue with these states and totals, and above this fence."""
    for other in states:
        number = session.workers.number(other.worker)
        state = session.state(number)
        for name in WorkerState.__struct_fields__:
            setattr(state, name, getattr(other, name))
        session.state_changed(number)
    session.flush()
    there = stats(session).pools if totals else {}
    for pool, given in totals.items():
        _grow(session, session.pools.number(pool), given, there.get(pool) or PoolStats())
    session.ring("state", "leader")
    wake_workers(session, neighbours([state.worker for state in states], session.docs().gates))
    return session.fence_above(fence)


def _grow(session: SqliteSession, pool: int, given: PoolStats, there: PoolStats) -> None:
    """Add what is missing to a lane without a worker, since totals are counted by lane and read by pool."""
    counts = session.lane(pool, session.workers.number(""))
    counts[ADDED] += given.added - there.added
    counts[SUCCEEDED] += given.completed - there.completed
    counts[FAILURES] += given.failed - there.failed
    counts[RUN_SECONDS] += given.run_seconds - there.run_seconds
    counts[WAIT_SECONDS] += given.wait_seconds - there.wait_seconds
    marks = marks_of(session, pool)
    for mark in given.marks.keys() | marks.keys():
        session.mark(pool, mark, given.marks.get(mark, 0) - marks.get(mark, 0))
