"""Reading jobs for people: by id, by a filter, and how many are ahead of a place in the queue. It only reads.

A search returns the newest or the oldest jobs first. It walks an index in the order of the result and stops when it has
enough: that of a flow or a tag if one is given, the worker's own index for most others, the index of unusual statuses
for scheduled, failed, waiting, dead and cancelled jobs, that of a concurrency key for queued jobs of a worker that have
it, and the hot path's for other queued and running ones. Workers are searched one after the other, each only as far
back as the last job found so far. Oldest first, it walks along the same indices the other way.
"""

from collections.abc import Sequence
from heapq import nlargest, nsmallest
from math import inf
from typing import Any, Final

from shiftwork.core.health import position
from shiftwork.core.health.position import Ahead, CountedLane, QueuePlace, ahead_of_each
from shiftwork.core.jobs.transitions import COMPLETED, NUMBERS, PROCESSING, QUEUED, WAITING
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import DeadJob, JobRecord
from shiftwork.core.values.job_limits import BEGINNING
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession, as_list
from shiftwork.store.sqlite.rows import Unreadable, detailed, number, read_rows, with_broken_needs
from shiftwork.store.sqlite.sql import SQL

FEW_QUEUED: Final = 10_000
"""Up to this many queued jobs are sorted; with more, the search walks along all jobs of their workers."""
EVERYTHING: Final = (inf, "")
"""A place that is ahead of all jobs."""
CONDITIONS: Final = (
    ("status", "jobs.status = :status"),
    ("pool", "jobs.pool = :pool"),
    ("only_worker", "jobs.worker = :only_worker"),
    ("key", "jobs.key = :key"),
    ("unique_key", "jobs.unique_key = :unique_key"),
    ("holder", "jobs.holder = :holder"),
    ("error", "instr(jobs.error, :error) > 0"),
    ("flow", "jobs.flow = :flow"),
    ("tag", "EXISTS (SELECT 1 FROM tags AS own WHERE own.job = jobs.seq AND own.tag = :tag)"),
    ("created_after", "{place}.created_at > :created_after"),
    ("created_before", "{place}.created_at < :created_before"),
    ("behind_at", "({place}.created_at, {place}.id) {behind} (:behind_at, :behind_id)"),
    ("until", "{place}.created_at {within} :until"),
)
"""By argument: the condition that it stands for. The place of a job in the result is in `jobs`, or in `tags`."""
NEWEST_FIRST: Final = {"behind": "<", "within": ">="}
OLDEST_FIRST: Final = {"behind": ">", "within": "<="}

Found = tuple[float, str, int]
"""The job's creation time, its id and its number."""


def get(
    session: SqliteSession, ids: Sequence[str], broken: Unreadable, *, whole: bool = False
) -> list[JobRecord | None]:
    """Return these jobs with their attempts and unmet needs, in order; whole ones with their steps and signals."""
    rows = read_rows(session, "records_of_ids", (session.namespace, as_list(set(ids))))
    found = {record.id: record for record in detailed(session, rows, broken, whole=whole)}
    return [found.get(id) for id in ids]


def ahead(session: SqliteSession, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
    """Return the jobs ahead of each place, by worker."""
    number = session.pools.find(pool)
    if number is None:
        return [Ahead({}) for _ in places]
    own = {worker for worker in {session.workers.find(place.worker) for place in places} if worker is not None}
    lanes = session.run("deepest_lanes", (number, as_list(own), position.LANES + max(1, len(own)))).fetchall()
    return ahead_of_each(places, [_counted(session, number, lane, places, queued=queued) for lane, queued in lanes])


def _counted(session: SqliteSession, pool: int, lane: int, places: Sequence[QueuePlace], *, queued: int) -> CountedLane:
    """Count the jobs of a lane from each place to the next, so that none is counted twice."""
    name = session.workers.name(lane)
    most = position.most_counted(name, {place.worker for place in places})
    n, before, counts = 0, (-inf, ""), [0] * len(places)
    for place, at in sorted((place, at) for at, place in enumerate(places)):
        if n < most:
            between = session.value("jobs_between", (pool, lane, *before, place.rank, place.id, most - n))
            n = min(most, n + between)
            before = place.rank, place.id
        counts[at] = n
    first, last = session.run("ends_of_lane", (pool, lane)).fetchone()
    return CountedLane(name, queued, (first or 0.0, last or 0.0), counts)


class Nothing(Exception):  # noqa: N818 - it ends a search, it is not an error
    """The filter names something that does not exist."""


def find(session: SqliteSession, wanted: JobFilter, broken: Unreadable) -> list[JobRecord]:
    """Return the jobs that match, without their attempts, steps and signals, and with no needs but the broken ones."""
    try:
        search = _Search(session, wanted)
    except Nothing:
        return []
    best = search.best()
    seqs = [seq for _, _, seq in best]
    if wanted.whole:
        rows = read_rows(session, "records_of_seqs", (as_list(seqs),))
    else:
        rows = read_rows(session, "beginnings_of_seqs", (as_list(seqs), BEGINNING))
    return with_broken_needs(session, {seq: rows[seq] for seq in seqs}, broken)


def dead(session: SqliteSession, behind: tuple[float, str] | None, limit: int) -> list[DeadJob]:
    """Return the newest dead jobs behind a place."""
    rows = session.run("newest_dead", (session.namespace, *(behind or EVERYTHING), max(0, limit))).fetchall()
    return [
        DeadJob(str(id), worker or "", None if error is None else str(error), number(created_at), ended_at)
        for id, worker, error, created_at, ended_at in rows
    ]


class _Search:
    """One search: the filter, in numbers, and the best jobs found so far."""

    def __init__(self, session: SqliteSession, wanted: JobFilter) -> None:
        self._session = session
        self._wanted = wanted
        self._newest = wanted.order == "newest"
        self._found: list[Found] = []
        self._args: dict[str, Any] = {
            "namespace": session.namespace,
            "limit": wanted.limit,
            "key": wanted.key,
            "unique_key": wanted.unique_key,
            "error": wanted.error,
            "tag": wanted.tag,
            "created_after": wanted.created_after,
            "created_before": wanted.created_before,
            "pool": _number(session.pools.find, wanted.pool),
            "only_worker": _number(session.workers.find, wanted.worker),
            "flow": None if wanted.flow is None else self._flow(wanted.flow),
            "holder": _number(session.instances.find, wanted.instance),
        }
        if wanted.after is not None:
            self._start_behind(wanted.after)

    def best(self) -> list[Found]:
        if self._wanted.ids is not None:
            self._take_all("find_ids", ids=as_list(set(self._wanted.ids)))
        elif self._wanted.flow is not None:
            self._take_all("find_by_flow")
        elif self._wanted.tag is not None:
            self._take_all("find_by_tag")
        elif self._wanted.status is None:
            for worker in self._workers():
                self._take("find_by_worker", worker=worker)
        else:
            for status in {NUMBERS[status] for status in self._wanted.status}:
                self._search(status)
        return self._found

    def _take_all(self, statement: str, **args: Any) -> None:
        """Search an index that has jobs of every status."""
        statuses = {None} if self._wanted.status is None else {NUMBERS[status] for status in self._wanted.status}
        for status in statuses:
            self._take(statement, status=status, **args)

    def _search(self, status: int) -> None:
        if status <= WAITING or status > COMPLETED:
            self._take("find_unusual", status=status)
            return
        if status == QUEUED and self._is_of_few():
            self._take("find_by_key", worker=self._args["only_worker"], status=status)
            return
        workers = self._workers()
        few = status == QUEUED and sum(map(self._queued, workers)) <= FEW_QUEUED
        for worker in workers:
            if status == PROCESSING:
                self._take("find_running", worker=worker, status=status)
            elif few:
                self._take_queued(worker)
            else:
                self._take("find_by_worker", worker=worker, status=status)

    def _is_of_few(self) -> bool:
        """Return whether few queued jobs have the wanted worker and key: then only these are sorted."""
        worker, key = self._args["only_worker"], self._args["key"]
        if worker is None or key is None:
            return False
        n: int = self._session.value("queued_with_key", (worker, key, FEW_QUEUED + 1))
        return n <= FEW_QUEUED

    def _take_queued(self, worker: int) -> None:
        for lane in self._session.lanes_of(worker):
            self._take("find_ready", worker=worker, lane_pool=lane.pool)
        self._take("find_parked", worker=worker)

    def _take(self, statement: str, **args: Any) -> None:
        """Search one index, and keep the best of these jobs and those found before."""
        limit = self._wanted.limit
        args |= self._args
        if len(self._found) >= limit > 0:  # given two bounds, SQLite may walk along the farther one
            args |= {"until": self._found[-1][0], "created_after" if self._newest else "created_before": None}
        by_tag = statement == "find_by_tag"
        conditions = [sql for name, sql in CONDITIONS if args.get(name) is not None and not (by_tag and name == "tag")]
        wanted = " AND ".join(conditions).format(
            place="tags" if by_tag else "jobs", **(NEWEST_FIRST if self._newest else OLDEST_FIRST)
        )
        ordered = SQL[statement] if self._newest else SQL[statement].replace(" DESC", "")
        rows: list[Found] = self._session.db.execute(ordered.replace("{wanted}", wanted or "1"), args).fetchall()
        self._found = (nlargest if self._newest else nsmallest)(limit, [*self._found, *rows])

    def _workers(self) -> Sequence[int]:
        """Return the workers that can have matching jobs."""
        if self._args["only_worker"] is not None:
            return [self._args["only_worker"]]
        if self._args["pool"] is not None:
            return self._session.values("lanes_of_pool", (self._args["pool"],))
        return self._session.values("worker_numbers", (self._session.namespace,))

    def _flow(self, name: str) -> int:
        number: int | None = self._session.value("find_flow", (self._session.namespace, name))
        if number is None:
            raise Nothing
        return number

    def _queued(self, worker: int) -> int:
        return sum(lane.queued for lane in self._session.lanes_of(worker))

    def _start_behind(self, id: str) -> None:
        place = self._session.run("place_of_id", (self._session.namespace, id)).fetchone()
        if place is None:
            raise Nothing
        created_at, _ = place
        bound = "created_before" if self._newest else "created_after"
        start = self._args[bound]
        if start is None or (created_at < start if self._newest else created_at > start):  # the nearer bound, here too
            self._args |= {"behind_at": created_at, "behind_id": id, bound: None}


def _number(find: Any, name: str | None) -> int | None:
    """Return the number of a wanted name. Raises `Nothing` if the name is unknown."""
    if name is None:
        return None
    number: int | None = find(name)
    if number is None:
        raise Nothing
    return number
