"""Flows: the needs of jobs, the release of those that need nothing else, and flows as people see them.

When a need is met is for `shiftwork.core.jobs.needs` to decide; the statement `release_jobs` repeats what a
release makes of a job. A need names the needed job by its id, because a job that is restored may need one that is not
there yet. A job that no other needs costs nothing here as long as no need is unmet anywhere, and otherwise one look
into an index.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final, NamedTuple

from msgspec import json
from msgspec.structs import replace

from shiftwork.core.jobs.needs import LOST, POSTPONED, inherited, is_kept, is_lost, meets, needs_of
from shiftwork.core.jobs.transitions import PROCESSING, QUEUED, SCHEDULED, STATUSES, WAITING
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_parts import NEED_BROKEN, NEED_WHATEVER, Need
from shiftwork.core.model.jobs import JobRecord, JobStatus, NewJob
from shiftwork.store.sqlite.file.sqlite_session import FLOW_COUNTERS, SqliteSession, as_list
from shiftwork.store.sqlite.rows import DoomedJob, kind_of, need_of
from shiftwork.store.sqlite.sql import SQL
from shiftwork.store.sqlite.waking import repark, ring_if_next

UNKNOWN_TIME: Final = -inf
"""A time before all others, for a release whose time is not known: the job is scheduled, and the leader queues it."""


class ReleasedJob(NamedTuple):
    """A row of `release_jobs`."""

    pool: int
    worker: int
    status: int
    key: str | None
    run_at: float
    flow: int | None


# ── adding ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def numbers_of(session: SqliteSession, names: Iterable[str | None]) -> dict[str | None, int]:
    """Return the numbers of these flows, each of which gets one if it has none."""
    return {name: _number(session, name) for name in set(names) if name is not None}


def _number(session: SqliteSession, name: str) -> int:
    found: int | None = session.value("find_flow", (session.namespace, name))
    if found is None:
        found = session.run("add_flow", (session.namespace, name)).lastrowid or 0
        session.flow(found)  # so that it is deleted if it gets no jobs
    return found


def begin(session: SqliteSession, flow: int, job: NewJob | JobRecord, created_at: float) -> None:
    """Note that a flow has this job, created at this time. The first job gives the flow its worker and tags."""
    worker = session.workers.number(job.worker)
    session.run("begin_flow", (created_at, worker, as_list(job.tags) if job.tags else None, flow))


def tie(session: SqliteSession, added: Sequence[tuple[int, NewJob]], now: float) -> None:
    """Make new jobs wait for what they need, and what waits for their parents wait for them."""
    statuses = _statuses(session, {need.id for _, job in added for need in job.needs})
    new = {job.id for _, job in added}  # which have no need yet that could be broken
    lost = _lost(session, {id: status for id, status in statuses.items() if id not in new})
    waiters = _waiters(session, {job.parent for _, job in added if job.parent is not None})
    rows: list[tuple[int, Need]] = []
    free: list[int] = []
    stranded: list[str] = []
    for seq, job in added:
        needs = [replace(need, broken=need.id in lost) for need in needs_of(job)] if lost else needs_of(job)
        unmet = [need for need in needs if not meets(statuses.get(need.id), need, lost=need.broken)]
        if lost and is_lost(JobStatus.WAITING, unmet):
            stranded.append(job.id)
        if job.needs and not unmet:
            free.append(seq)
        heirs = waiters.get(job.parent or "", {})
        more = [(heir, need) for heir, of_parent in heirs.items() if (need := inherited(job.id, of_parent))]
        for waiter, need in (*((seq, need) for need in unmet), *more):
            rows.append((waiter, need))
            if need.id in waiters:
                waiters[need.id][waiter] = need
    need_all(session, rows)
    _release(session, free, now)
    if stranded:
        _lose(session, stranded, now)


def _lost(session: SqliteSession, statuses: Mapping[str, JobStatus]) -> set[str]:
    """Return those of these jobs that cannot complete unless a person retries one."""
    lost = {id for id, status in statuses.items() if status in LOST}
    waiting = [id for id, status in statuses.items() if status is JobStatus.WAITING]
    if waiting and anything_waits(session):
        lost.update(session.values("stranded_ids", (session.namespace, as_list(waiting))))
    return lost


def _statuses(session: SqliteSession, ids: Iterable[str]) -> dict[str, JobStatus]:
    found = session.run("statuses_of_ids", (session.namespace, as_list(ids)))
    return {id: _status(number) for id, number in found}


def _status(number: int) -> JobStatus:
    """Return the status with a number. A damaged row may hold any number."""
    return STATUSES[number] if number in range(len(STATUSES)) else JobStatus.DEAD


def _waiters(session: SqliteSession, ids: Iterable[str]) -> dict[str, dict[int, Need]]:
    """Return the jobs that wait for each of these, with their needs."""
    found: dict[str, dict[int, Need]] = {id: {} for id in ids}
    if found:
        for id, seq, kind in session.run("needs_of_ids", (session.namespace, as_list(found))):
            found[id][seq] = need_of(id, kind)
    return found


def need_all(session: SqliteSession, needs: Sequence[tuple[int, Need]]) -> None:
    """Make jobs, given by their numbers, wait for others."""
    if needs:
        session.any_needs = True
        rows = [(seq, need.id, session.namespace, kind_of(need)) for seq, need in needs]
        session.run_rows("add_need", rows)


# ── release ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def anything_waits(session: SqliteSession) -> bool:
    """Return whether any job waits for another one. It is remembered until something may have changed that."""
    if session.any_needs is None:
        session.any_needs = bool(session.value("any_needs"))
    return session.any_needs


def meet(session: SqliteSession, ended: Mapping[str, JobStatus], now: float) -> None:
    """Meet or break the needs of these jobs, which have ended, and release the jobs that need nothing else."""
    completed = [id for id, status in ended.items() if status is JobStatus.COMPLETED]
    met = session.run("meet_needs_of_ids", (session.namespace, as_list(completed))).fetchall() if completed else []
    if met:
        session.any_needs = None
        _release(session, dict.fromkeys(seq for (seq,) in met), now)
    if len(completed) < len(ended):
        _lose(session, [id for id, status in ended.items() if status is not JobStatus.COMPLETED], now)


def _lose(session: SqliteSession, ids: Iterable[str], now: float) -> None:
    """Break the needs of jobs that are lost, and of all that this strands, or meet them where any end will do."""
    met: list[tuple[int, str]] = []
    lost = list(ids)
    while lost:
        needs = session.run("needs_of_ids", (session.namespace, as_list(lost))).fetchall()
        met += [(seq, id) for id, seq, kind in needs if kind & NEED_WHATEVER]
        strained = {seq for _, seq, kind in needs if not kind & (NEED_WHATEVER | NEED_BROKEN)}
        reached = session.values("waiting_with_whole_needs", (as_list(strained),)) if strained else []
        if strained:
            session.run("break_needs", (session.namespace, as_list(lost)))
        lost = reached
    if met:
        session.run_many("meet_need", met)
        session.any_needs = None
        _release(session, dict.fromkeys(seq for seq, _ in met), now)


def regain(session: SqliteSession, id: str) -> None:
    """Make needs of a retried job whole again, and so on behind each job that has no broken need left."""
    regained = [] if _lost(session, _statuses(session, [id])) else [id]
    while regained:
        mended = session.values("mend_needs", (session.namespace, as_list(regained)))
        regained = session.values("waiting_with_whole_needs", (as_list(set(mended)),)) if mended else []


def _release(session: SqliteSession, seqs: Iterable[int], now: float) -> None:
    """Release those of the jobs that wait and need nothing else."""
    jobs = session.rows(ReleasedJob, SQL["release_jobs"], (now, as_list(seqs))) if seqs else []
    for (pool, worker, status, key), n in Counter(job[:4] for job in jobs).items():
        counts = session.lane(pool, worker)
        counts[WAITING] -= n
        counts[status] += n
        if status == QUEUED and key is None:
            session.ring_pool(pool)
    for job in jobs:
        if job.flow is not None:
            session.move_flow(job.flow, WAITING, job.status)
    repark(session, {(job.worker, job.key) for job in jobs if job.key is not None and job.status == QUEUED})
    ring_if_next(session, [job.run_at for job in jobs if job.status == SCHEDULED])


# ── keeping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def put_off(session: SqliteSession, doomed: Sequence[DoomedJob], now: float) -> set[int]:
    """Put off those of the jobs that others still need, and return their numbers. Delete needs for the rest."""
    flows = {flow for *_, flow in doomed if flow is not None}
    waits = bool(doomed) and anything_waits(session)
    if not flows and not waits:
        return set()
    session.flush()
    counts: dict[int | None, dict[JobStatus, int]] = {
        flow: dict(zip(STATUSES, numbers, strict=True))
        for flow, *numbers in session.run("counts_of_flows", (as_list(flows),))
    }
    founders = {flow: _status(number) for flow, number in session.run("founders_of_flows", (as_list(flows),))}
    by_flow = {
        (number, flow): is_kept(_status(number), counts.get(flow, {}), founder=founders.get(flow), awaited=False)
        for number, flow in {(number, flow) for _, _, _, number, flow in doomed}
    }
    kept = {seq for seq, _, _, number, flow in doomed if by_flow[number, flow]}
    rest = [seq for seq, *_ in doomed if seq not in kept]
    if waits and rest:
        awaited = session.values("awaited_jobs", (as_list(rest),))
        kept.update(awaited)
        session.run("delete_needs_of", (as_list(set(rest).difference(awaited)),))
        session.any_needs = None
    session.run("put_off", (now + POSTPONED, as_list(kept)))
    return kept


# ── for people and functions ─────────────────────────────────────────────────────────────────────────────────────────


def flows(session: SqliteSession, behind: tuple[float, str] | None, limit: int) -> list[FlowRecord]:
    """Return the newest flows behind a place."""
    place = (session.namespace, *(behind or (inf, "")), max(0, limit))
    running = dict(session.run("running_in_flows").fetchall())
    return [
        FlowRecord(
            name,
            created_at,
            _by_status(counts, running.get(number, 0)),
            "" if worker is None else session.workers.name(worker),
            tuple(json.decode(tags)) if tags else (),
        )
        for number, name, created_at, worker, tags, *counts in session.run("newest_flows", place).fetchall()
    ]


def _by_status(counts: Sequence[int], running: int) -> dict[str, int]:
    """Return how many jobs of a flow have which status."""
    numbers = [counts[place] for place in FLOW_COUNTERS]
    numbers[QUEUED] -= running
    numbers[PROCESSING] = running
    return {status.value: n for status, n in zip(STATUSES, numbers, strict=True) if n}


def members(session: SqliteSession, flow: str, behind: tuple[float, str] | None, limit: int) -> list[FlowMember]:
    """Return the newest jobs of a flow behind a place."""
    number = session.value("find_flow", (session.namespace, flow))
    found = session.run("members_of_flow", (number, *(behind or (inf, "")), max(0, limit)))
    return [
        FlowMember(id, session.workers.name(worker), _status(status), created, started, ended, options, bool(stranded))
        for id, worker, status, created, started, ended, options, stranded in found.fetchall()
    ]


def results(session: SqliteSession, ids: Sequence[str]) -> list[bytes | None]:
    """Return the results of these jobs, in order."""
    found: dict[str, bytes | None] = dict(
        session.run("results_of_ids", (session.namespace, as_list(set(ids)))).fetchall()
    )
    return [found.get(id) for id in ids]
