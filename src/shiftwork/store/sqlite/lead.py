"""What the leader does: promote due jobs, take back lost ones, delete what need not be kept."""

from collections import Counter
from collections.abc import Callable

from shiftwork.core.jobs.transitions import EXPIRED, QUEUED
from shiftwork.core.model.event import EVENTS_KEPT
from shiftwork.core.model.job_changes import Cancel
from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.observing.beats import INSTANCES_KEPT_SECONDS
from shiftwork.store.protocol import Promoted
from shiftwork.store.sqlite import flows
from shiftwork.store.sqlite.amend import amend
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession, as_list
from shiftwork.store.sqlite.finish import bury
from shiftwork.store.sqlite.rows import DoomedJob, Unreadable, delete, detailed, read_rows
from shiftwork.store.sqlite.waking import next_due, repark, wake_all


def promote(session: SqliteSession, n: int, now: float) -> Promoted:
    """Queue up to `n` jobs that are due, earliest first, and cancel up to `n` that have expired."""
    moved = _queue_due(session, n, now)
    expired = session.run("expired_jobs", (session.namespace, now, n)).fetchall()
    amend(session, [id for id, _ in expired], Cancel(EXPIRED), now)
    by_worker = Counter(worker for _, worker in expired)
    counts = {session.workers.name(worker): number for worker, number in by_worker.items()}
    return Promoted(moved + len(expired), next_due(session), counts)


def _queue_due(session: SqliteSession, n: int, now: float) -> int:
    rows = session.run("due_jobs", (session.namespace, now, n)).fetchall()
    session.run_many("queue_job", [(int(key is not None), seq) for seq, _, _, _, key, _ in rows])
    for _, status, pool, worker, key, flow in rows:
        session.move(pool, worker, flow, out_of=status, into=QUEUED)
        if key is None:
            session.ring_pool(pool)
    repark(session, {(worker, key) for _, _, _, worker, key, _ in rows if key is not None})
    return len(rows)


def reap(
    session: SqliteSession, holder: str, *, n: int, now: float, is_set: Callable[[SqliteSession], bool]
) -> list[JobRecord]:
    """Take up to `n` jobs from instances without a lease, and hand them to `holder` under new fences.

    If the clock was set back, leases that were just renewed seem to have ended to a process that does not know of it.
    """
    if is_set(session):
        return []
    taker = session.instances.number(holder)
    orphans = session.run("orphans", (session.namespace, now, taker, n)).fetchall()
    taken = _take(session, taker, orphans, now) if orphans else []
    losers = {loser for _, loser in orphans}
    session.run_many("lose_instance", [(now, loser) for loser in losers])
    session.lost |= dict.fromkeys(losers, True)
    _forget_idle(session, taker, now)
    if orphans:
        session.ring("orders")
        wake_all(session)
    return taken


def _take(session: SqliteSession, taker: int, orphans: list[tuple[int, int]], now: float) -> list[JobRecord]:
    fence = session.next_fences(len(orphans))
    session.run_many("renew_fence", [(fence + place, seq) for place, (seq, _) in enumerate(orphans)])
    seqs = [seq for seq, _ in orphans]
    rows = read_rows(session, "records_of_seqs", (as_list(seqs),))
    session.run_many("hand_over", [(taker, seq) for seq in seqs])
    broken = Unreadable()
    taken = detailed(session, rows, broken, whole=False)
    bury(session, broken, now)
    return [record for record, seq in zip(taken, rows, strict=True) if seq not in broken]


def _forget_idle(session: SqliteSession, taker: int, now: float) -> None:
    """Forget instances whose lease has ended and that hold nothing: they have lost nothing, and may beat again."""
    ended = session.values("ended_leases", (session.namespace, now, taker))
    idle = [number for number in ended if not session.value("holds_any", (number,))]
    session.run_many("forget_instance", [(now, number) for number in idle])
    if idle:
        wake_all(session)


def prune(session: SqliteSession, n: int, now: float) -> int:
    """Delete up to `n` jobs that need not be kept, old events, and instances gone for long."""
    disposable: list[DoomedJob] = session.run("disposable_jobs", (session.namespace, now, n)).fetchall()
    needed = flows.put_off(session, disposable, now)
    doomed = [job for job in disposable if job[0] not in needed] if needed else disposable
    if doomed:
        delete(session, doomed)
    old = [session.run("delete_events", (session.namespace, kind, EVENTS_KEPT, n)).rowcount for kind in (True, False)]
    session.run("drop_instances", (session.namespace, now - INSTANCES_KEPT_SECONDS))
    return len(disposable) + sum(old)
