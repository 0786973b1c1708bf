"""Claiming: which jobs an instance gets, and what changes about them. It owns the way from queued to processing.

The jobs that are next in the pool are taken straight from the index, as long as none of them has a gate: then it does
not matter how many workers have jobs there. Where the jobs of other instances' workers or of disabled ones fill the
front, the lanes of the rest are merged. Where gates decide, `shiftwork.core.workers.admission` chooses, from the
facts of all workers that gates tie together.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from enum import Enum, auto
from functools import cache
from itertools import count, repeat
from typing import Any, Final, NamedTuple

from msgspec import ValidationError, convert

from shiftwork.core.jobs.transitions import PROCESSING, QUEUED
from shiftwork.core.model.doc_types import PoolDoc
from shiftwork.core.model.jobs import Claimed
from shiftwork.core.workers.admission import Choice, Head, choose
from shiftwork.core.workers.breaker import BreakerState
from shiftwork.store.protocol import Claims
from shiftwork.store.sqlite.facts import facts
from shiftwork.store.sqlite.file.driver import Damaged
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession, as_list
from shiftwork.store.sqlite.finish import bury
from shiftwork.store.sqlite.rows import Unreadable
from shiftwork.store.sqlite.sql import SQL
from shiftwork.store.sqlite.waking import repark, wake_tied

MOST_HELD_AHEAD: Final = 1_000
"""How far a claim looks past the jobs at the front of a pool that are held."""
MOST_BRANCHES: Final = 100
"""How many lanes one statement merges; SQLite allows 500."""


class ReadyJob(NamedTuple):
    """A row of `ready_jobs` and `chosen_jobs`."""

    seq: int
    id: str
    payload: bytes | None
    """None if it lies in the table `payloads`."""
    attempt: int
    crashes: int
    run_at: float
    cause: str
    trace: str | None
    expires_at: float | None
    options: bytes | None
    worker: int
    rank: float
    key: str | None


class WholeJobs(list[ReadyJob]):
    """Rows, none of them damaged."""


class ReadyColumns(NamedTuple):
    """Rows of `ReadyJob` by column: most of what a claim does, it does with one value of each job."""

    seq: tuple[int, ...]
    id: tuple[str, ...]
    payload: tuple[bytes, ...]
    attempt: tuple[int, ...]
    crashes: tuple[int, ...]
    run_at: tuple[float, ...]
    cause: tuple[str, ...]
    trace: tuple[str | None, ...]
    expires_at: tuple[float | None, ...]
    options: tuple[bytes | None, ...]
    worker: tuple[int, ...]
    rank: tuple[float, ...]
    key: tuple[str | None, ...]


def claim(
    session: SqliteSession,
    instance: str,
    pool: str,
    *,
    n: int,
    now: float,
    workers: Collection[str],
    edition: str | None = None,
) -> Claims:
    """Hand up to `n` jobs of these workers in this pool to the instance, if the store has this edition."""
    docs = session.docs()
    if edition is not None and (session.replaced or docs.edition != edition):
        session.replaced = False
        session.forget_names()  # their rows may be gone as well
        return Claims([], stale=True)
    pool_number = session.pools.find(pool)
    if pool_number is None or n <= 0 or docs.pools.get(pool, PoolDoc()).paused:
        return Claims([])
    holder = session.instances.number(instance)
    if _lost(session, holder):
        return Claims([])
    standing = Standings(session, workers)
    taken = _claim_next(session, pool_number, holder, standing=standing, n=n, now=now)
    if taken is not None:
        return Claims(taken)
    lanes = _lanes(session, pool_number, workers)
    gated = [name for name in lanes.values() if (gates := docs.gates.get(name)) is not None and not gates.open]
    if gated:
        return _claim_chosen(session, pool_number, holder, lanes=lanes, n=n, now=now)
    enabled = [worker for worker in lanes if session.state(worker).enabled]
    return Claims(_claim_first(session, pool_number, holder, lanes=enabled, n=n, now=now))


def _lost(session: SqliteSession, holder: int) -> bool:
    lost = session.lost.get(holder)
    if lost is None:
        lost = session.lost[holder] = bool(session.value("is_lost", (holder,)))
    return lost


def _lanes(session: SqliteSession, pool: int, workers: Collection[str]) -> dict[int, str]:
    """Return those of the workers that have a ready job in the pool, by number."""
    named = ((number, session.workers.name(number)) for number in session.values("ready_lanes", (pool,)))
    return {number: name for number, name in named if name in workers}


# ── claim without gates ──────────────────────────────────────────────────────────────────────────────────────────────


class Standing(Enum):
    """Whether the jobs of a worker may start."""

    FREE = auto()
    HELD = auto()
    """Not here, or not now: another instance serves the worker, or it is disabled."""
    GATED = auto()
    """Gates decide."""


class Standings(dict[int, Standing]):
    """The standing of each worker, looked up once in a claim."""

    def __init__(self, session: SqliteSession, workers: Collection[str]) -> None:
        super().__init__()
        self._session = session
        self._workers = workers

    def __missing__(self, worker: int) -> Standing:
        name = self._session.workers.name(worker)
        if name not in self._workers or not self._session.state(worker).enabled:
            found = Standing.HELD
        else:
            gates = self._session.docs().gates.get(name)
            found = Standing.FREE if gates is None or gates.open else Standing.GATED
        self[worker] = found
        return found


def _claim_next(
    session: SqliteSession, pool: int, holder: int, *, standing: Standings, n: int, now: float
) -> list[Claimed] | None:
    """Start the jobs that are next in the pool; None if gates decide, or too many jobs at the front are held."""
    claimed: list[Claimed] = []
    while len(claimed) < n:
        wanted = n - len(claimed)
        rows = _read(session, SQL["next_jobs"], (pool, wanted))
        if any(standing[worker] is not Standing.FREE for worker in {job.worker for job in rows}):
            seqs = _free_ahead(session, pool, standing, wanted)
            if seqs is None:
                return claimed or None
            rows = _read(session, SQL["chosen_jobs"], (as_list(seqs),))
        if not rows:
            break
        claimed += _start(session, pool, holder, rows=rows, now=now)
    return claimed


def _free_ahead(session: SqliteSession, pool: int, standing: Standings, n: int) -> list[int] | None:
    """Return the first jobs that may start, past those that are held; None if the front alone does not tell."""
    seqs: list[int] = []
    seen = 0
    for seq, worker in session.run("next_workers", (pool, MOST_HELD_AHEAD)):
        seen += 1
        if standing[worker] is Standing.GATED:
            return None
        if standing[worker] is Standing.FREE:
            seqs.append(seq)
        if len(seqs) == n:
            return seqs
    return seqs if seen < MOST_HELD_AHEAD else None


@cache
def _merged(lanes: int) -> str:
    """Return the statement for the first ready jobs of this many lanes, in rank order."""
    return " UNION ALL ".join([SQL["ready_jobs"]] * lanes) + " ORDER BY rank, id LIMIT ?"


def _claim_first(
    session: SqliteSession, pool: int, holder: int, *, lanes: Sequence[int], n: int, now: float
) -> list[Claimed]:
    claimed: list[Claimed] = []
    while lanes and len(claimed) < n:
        rows = _first(session, pool, lanes, n - len(claimed))
        if not rows:
            break
        claimed += _start(session, pool, holder, rows=rows, now=now)
    return claimed


def _first(session: SqliteSession, pool: int, lanes: Sequence[int], n: int) -> list[ReadyJob]:
    rows: list[ReadyJob] = []
    for at in range(0, len(lanes), MOST_BRANCHES):
        branch = lanes[at : at + MOST_BRANCHES]
        args = [arg for worker in branch for arg in (pool, worker)]
        rows += _read(session, _merged(len(branch)), (*args, n))
    if len(lanes) > MOST_BRANCHES:
        rows = sorted(rows, key=lambda job: (job.rank, job.id))[:n]
    return rows


# ── claim with gates ─────────────────────────────────────────────────────────────────────────────────────────────────


def _claim_chosen(
    session: SqliteSession, pool: int, holder: int, *, lanes: dict[int, str], n: int, now: float
) -> Claims:
    known = facts(session, lanes.values(), now)
    candidates: dict[str, list[Head]] = {}
    seqs: dict[str, int] = {}
    for worker, name in lanes.items():
        if not known.lanes[name].state.enabled:
            continue
        heads = session.run("heads_of_lane", (pool, worker, n)).fetchall()
        candidates[name] = [Head(rank, id, since) for rank, id, since, _ in heads]
        seqs |= {id: seq for _, id, _, seq in heads}
    choice = choose(candidates, known, limit=n, now=now)
    if not choice.ids:
        return Claims([], choice.next_at)
    rows = _read(session, SQL["chosen_jobs"], (as_list(seqs[id] for id in choice.ids),))
    started = _start(session, pool, holder, rows=rows, now=now)
    for name in choice.started:
        _note_start(session, name, choice)
    return Claims(started, choice.next_at)


def _note_start(session: SqliteSession, name: str, choice: Choice) -> None:
    if name in choice.rate_at:
        worker = session.workers.number(name)
        session.state(worker).rate_at = choice.rate_at[name]
        session.state_changed(worker)  # the change made when it started may have been written meanwhile
    docs = session.docs()
    gates = docs.gates.get(name)
    # A dependency that let this one go first may be next; and no job gives way to jobs that wait for a probe.
    if gates is not None and (gates.after or docs.breakers.get(gates.breaker or "", BreakerState()).open):
        wake_tied(session, name)


# ── both ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _start(session: SqliteSession, pool: int, holder: int, *, rows: Sequence[ReadyJob], now: float) -> list[Claimed]:
    """Make these jobs processing, except those that cannot be read."""
    rows = _readable(session, rows, now)
    if not rows:
        return []
    n = len(rows)
    ready = ReadyColumns(*zip(*rows, strict=True))
    fence = session.next_fences(n)
    session.run("start_jobs", (fence, holder, now, as_list(ready.seq)))
    started = Counter(ready.worker)
    for worker, jobs in started.items():
        counts = session.lane(pool, worker)
        counts[QUEUED] -= jobs
        counts[PROCESSING] += jobs
        session.state(worker).last_started = now
        session.state_changed(worker)
    if ready.key.count(None) < n:
        # Limits may differ: a queued job that was free beside a started one may not be free while that runs.
        repark(session, {(job.worker, job.key) for job in rows if job.key is not None})
    names = {worker: session.workers.name(worker) for worker in started}
    return list(
        map(
            Claimed,
            ready.id,
            map(names.__getitem__, ready.worker),
            repeat(session.pools.name(pool)),
            ready.payload,
            count(fence),
            [attempt + 1 for attempt in ready.attempt],
            *(ready.crashes, ready.run_at, ready.cause, ready.trace, ready.expires_at, ready.options),
        )
    )


def _read(session: SqliteSession, sql: str, args: Sequence[Any]) -> list[ReadyJob]:
    """Return the rows of a statement. SQLite columns take any type, so a damaged row may hold anything."""
    rows = session.db.execute(sql, args).fetchall()
    return _whole(session, rows) or list(map(ReadyJob._make, rows))


def _whole(session: SqliteSession, rows: Sequence[tuple[Any, ...]]) -> WholeJobs | None:
    """Return these rows, if none of them is damaged."""
    if any(Damaged in map(type, row) for row in rows if session.db.text_factory is not str):
        return None
    try:
        return WholeJobs(convert(rows, list[ReadyJob], builtin_types=(bytes,)))
    except ValidationError:
        return None


def _readable(session: SqliteSession, rows: Sequence[ReadyJob], now: float) -> Sequence[ReadyJob]:
    """Return the readable rows, with their payloads; the others are buried."""
    if isinstance(rows, WholeJobs) and all(job.payload is not None for job in rows):
        return rows
    broken = Unreadable()
    readable: list[ReadyJob] = []
    for job in rows:
        payload = session.value("read_payload", (job.seq,)) if job.payload is None else job.payload
        whole = _whole(session, [tuple(job._replace(payload=payload))])
        if whole and payload is not None:
            readable += whole
        else:
            broken[job.seq] = "unreadable: its row in the store is damaged"
    bury(session, broken, now)
    return readable
