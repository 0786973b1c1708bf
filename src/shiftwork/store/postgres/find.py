"""Searching for jobs: from a filter to the index that has them in order."""

from collections.abc import Sequence
from heapq import nlargest, nsmallest
from math import inf
from typing import Any, Final

from msgspec import json

from shiftwork.core.jobs.transitions import COMPLETED, NUMBERS, PROCESSING, QUEUED, STATUSES
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import DeadJob, JobRecord
from shiftwork.store.postgres import rows
from shiftwork.store.postgres.server.session import PostgresSession

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
FEW: Final = 10_000
"""With no more queued jobs than this, they are read and sorted instead of searched for among all jobs."""
EVERYTHING: Final = (inf, "")
"""The position before all jobs."""
_ID, _CREATED_AT = rows.COLUMNS.index("id"), rows.COLUMNS.index("created_at")


async def find(session: PostgresSession, wanted: JobFilter) -> list[JobRecord]:
    """Return the jobs that match, in the order asked for, without what only whole jobs have."""
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


async def dead(session: PostgresSession, behind: tuple[float, str] | None, limit: int) -> list[DeadJob]:
    """Return the newest dead jobs after a position."""
    found = await session.rows("dead", (session.namespace, *(behind or EVERYTHING), limit))
    return [DeadJob(*row) for row in found]


async def flows(session: PostgresSession, behind: tuple[float, str] | None, limit: int) -> list[FlowRecord]:
    """Return the newest flows after a position."""
    created_at, id = behind or EVERYTHING
    args = {"namespace": session.namespace, "created_at": created_at, "id": id, "limit": max(0, limit)}
    return [
        FlowRecord(id, at, _counts(counts), worker or "", tuple(tags or ()))
        for id, at, counts, worker, tags in await session.rows("flows", args)
    ]


async def members(
    session: PostgresSession, flow: str, behind: tuple[float, str] | None, limit: int
) -> list[FlowMember]:
    """Return the newest jobs of a flow after a position."""
    created_at, id = behind or EVERYTHING
    args = {"namespace": session.namespace, "flow": flow, "created_at": created_at, "id": id, "limit": max(0, limit)}
    return [
        FlowMember(id, worker, STATUSES[status], *more)
        for id, worker, status, *more in await session.rows("members", args)
    ]


def _counts(encoded: str | None) -> dict[str, int]:
    numbers = json.decode(encoded, type=dict[int, int]) if encoded else {}
    return {STATUSES[number].value: n for number, n in numbers.items()}


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
    elif usual == [QUEUED] and sum(queued for _, _, queued in lanes) <= FEW:
        waiting = [(worker, pool) for worker, pool, queued in lanes if queued]
        of = {"workers": [worker for worker, _ in waiting], "pools": [pool for _, pool in waiting]}
        searches.append(("find_queued", {**of, "status": None}))
    elif usual:  # running jobs too: in one statement, a job that starts meanwhile is found exactly once
        searches.append(("find_by_worker", {"workers": workers, "status": usual}))
    return searches


async def _lanes(session: PostgresSession, wanted: JobFilter) -> list[tuple[str, str, int]]:
    """Return the workers and pools that can have such jobs, and the number of queued jobs of each."""
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
    text = text.replace("{found}", rows.SELECTED if wanted.whole else rows.BEGUN)
    text = text.replace("{wanted}", " AND ".join(conditions) or "true").replace("{beyond}", beyond)
    return await session.query(text, args)
