"""Puts jobs whose rows cannot be read into the dead-letter queue. A burial is the end of the job, like any other."""

from shiftwork.core.jobs.statuses import COMPLETED, DEAD, PROCESSING, QUEUED
from shiftwork.core.model.job import JobStatus
from shiftwork.store.sqlite import flows, keys
from shiftwork.store.sqlite.file.session import SqliteSession, as_list
from shiftwork.store.sqlite.rows import Unreadable, detailed, read_rows


def bury_unreadable(session: SqliteSession, suspects: Unreadable) -> None:
    """Bury the jobs that a reader could not read, if they still cannot be read."""
    broken = Unreadable()
    detailed(session, read_rows(session, "records_of_seqs", (as_list(suspects),)), broken, whole=True)
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
    keys.repark(session, groups)
    if ended:
        flows.meet(session, ended, flows.UNKNOWN if now is None else now)
