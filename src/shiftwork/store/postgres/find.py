"""Reading jobs: by id, by a filter, and by their place in the queue.

A filter becomes one or more statements, each of which reads an index that has the jobs in order.
"""

from collections.abc import Sequence
from heapq import nlargest, nsmallest
from math import inf
from typing import Any, Final

from shiftwork.core.health import position
from shiftwork.core.health.position import Ahead, CountedLane, QueuePlace, ahead_of_each
from shiftwork.core.jobs.transitions import COMPLETED, NUMBERS, PROCESSING, QUEUED
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import DeadJob, JobRecord
from shiftwork.store.postgres import arrays, queries, rows
from shiftwork.store.postgres.server.statements import PostgresSession, Statements

CONDITIONS: Final = (
    ("pool", "j.pool = %(pool)s"),
    ("worker", "j.worker = %(worker)s"),
    ("key", "j.key = %(key)s"),
    ("unique_key", "j.unique_key = %(unique_key)s"),
    ("instance", "j.instance = %(instance)s"),
    ("tag", "%(tag)s = ANY (j.tags)"),
    ("flow", "j.flow = %(flow)s"),
    ("error", "position(%(error)s in j.error) > 0"),
    ("created_after", "j.created_at > %(created_after)s"),
    ("created_before", "j.created_at < %(created_before)s"),
    ("behind", "(j.created_at, j.id) {beyond} (%(behind)s, %(after)s)"),
    ("status", "j.status = ANY (%(status)s::int2[])"),
)
FEW_QUEUED: Final = 10_000
"""Up to this many queued jobs are read and sorted; if there are more, all jobs are searched in order."""
EVERYTHING: Final = (inf, "")
"""The position before all jobs."""
_ID, _CREATED_AT = queries.COLUMNS.index("id"), queries.COLUMNS.index("created_at")


async def get(session: Statements, ids: Sequence[str], *, whole: bool = False) -> list[JobRecord | None]:
    """Return these jobs, in order; None for an unknown id. Whole ones have their steps and signals."""
    found = await session.rows("get_whole" if whole else "get", (session.namespace, arrays.texts(list(set(ids)))))
    records = [rows.record(row) for row in found]
    by_id = {record.id: record for record in records}
    return [by_id.get(id) for id in ids]


async def ahead(session: Statements, pool: str, places: Sequence[QueuePlace]) -> list[Ahead]:
    """Return how many jobs are ahead of places in the queue of a pool, by worker."""
    own = sorted({place.worker for place in places})
    order = sorted(range(len(places)), key=places.__getitem__)
    ranks, ids = [places[at].rank for at in order], [places[at].id for at in order]
    most = position.LANES + max(1, len(own))
    args = (session.namespace, pool, own, ranks, ids, most, position.COUNTED_OWN, position.COUNTED_OTHER)
    place_of = {at: n for n, at in enumerate(order)}
    return ahead_of_each(
        places,
        [
            CountedLane(name, queued, (first or 0.0, last or 0.0), [counts[place_of[at]] for at in range(len(places))])
            for name, queued, counts, first, last in await session.rows("ahead", args)
        ],
    )


async def find(session: PostgresSession, wanted: JobFilter) -> list[JobRecord]:
    """Return the jobs that match the filter, in its order, without the fields that only whole jobs have."""
    statuses = None if wanted.status is None else sorted({NUMBERS[status] for status in wanted.status})
    if wanted.limit <= 0 or statuses == [] or wanted.ids == ():
        return []
    args: dict[str, Any] = {name: getattr(wanted, name, None) for name, _ in CONDITIONS}
    args |= {"namespace": session.namespace, "limit": wanted.limit, "after": wanted.after, "status": statuses}
    if wanted.after is not None:
        args["behind"] = await session.value("place_of", (session.namespace, wanted.after))
        if args["behind"] is None:
            return []
    found: list[tuple[Any, ...]] = []
    for statement, more in await _searches(session, wanted, statuses):
        found += await _search(session, statement, args | more, wanted)
    best = nlargest if wanted.order == "newest" else nsmallest
    return [rows.record(row) for row in best(wanted.limit, found, key=lambda row: (row[_CREATED_AT], row[_ID]))]


async def _searches(
    session: PostgresSession, wanted: JobFilter, statuses: Sequence[int] | None
) -> list[tuple[str, dict[str, Any]]]:
    """Return the statements to run, each of which reads one index, and their arguments."""
    if wanted.ids is not None:
        return [("find_ids", {"ids": list(wanted.ids)})]
    if wanted.flow is not None:
        return [("find_by_flow", {})]
    if wanted.tag is not None:
        return [("find_by_tag", {})]
    lanes = await _lanes(session, wanted)
    workers = sorted({worker for worker, _, _ in lanes})
    if statuses is None:
        return [("find_by_worker", {"workers": workers})]
    searches: list[tuple[str, dict[str, Any]]] = []
    unusual = [status for status in statuses if status < QUEUED or status > COMPLETED]
    if unusual:
        searches.append(("find_unusual", {"statuses": unusual, "status": unusual}))
    usual = [status for status in statuses if QUEUED <= status <= COMPLETED]
    if usual == [PROCESSING]:
        searches.append(("find_running", {"workers": workers, "status": None}))
    elif usual == [QUEUED] and sum(queued for _, _, queued in lanes) <= FEW_QUEUED:
        waiting = [(worker, pool) for worker, pool, queued in lanes if queued]
        of = {"workers": [worker for worker, _ in waiting], "pools": [pool for _, pool in waiting]}
        searches.append(("find_queued", {**of, "status": None}))
    elif usual:  # running jobs too: in one statement, a job that starts meanwhile is found exactly once
        searches.append(("find_by_worker", {"workers": workers, "status": usual}))
    return searches


async def _lanes(session: PostgresSession, wanted: JobFilter) -> list[tuple[str, str, int]]:
    """Return the workers and pools that the filter allows, and the number of queued jobs of each."""
    return [
        (worker, pool, queued)
        for worker, pool, queued in await session.rows("lanes_seen", (session.namespace,))
        if wanted.pool in (None, pool) and wanted.worker in (None, worker)
    ]


async def _search(
    session: PostgresSession, statement: str, args: dict[str, Any], wanted: JobFilter
) -> list[tuple[Any, ...]]:
    conditions = [sql for name, sql in CONDITIONS if args.get(name) is not None]
    text, beyond = session.sql[statement], "<"
    if wanted.order == "oldest":  # the same index, the other way
        text, beyond = text.replace(" DESC", ""), ">"
    text = text.replace("{found}", queries.SELECTED if wanted.whole else queries.BEGUN)
    text = text.replace("{wanted}", " AND ".join(conditions) or "true").replace("{beyond}", beyond)
    return await session.query(text, args)


async def dead(session: PostgresSession, behind: tuple[float, str] | None, limit: int) -> list[DeadJob]:
    """Return the newest dead jobs that come after this position, newest first."""
    found = await session.rows("dead", (session.namespace, *(behind or EVERYTHING), limit))
    return [DeadJob(*row) for row in found]
