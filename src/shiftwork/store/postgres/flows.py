"""Flows: what joins new jobs to the jobs they need and to their flow, and what people see of flows.

Needs are met and broken in the database (functions/flows.sql). This module ties jobs that were added in several parts.
"""

from collections.abc import Collection, Sequence

from msgspec import json

from shiftwork.core.jobs.needs import needs_of
from shiftwork.core.jobs.transitions import STATUSES
from shiftwork.core.model.flows import FlowMember, FlowRecord
from shiftwork.core.model.jobs import Added
from shiftwork.store.postgres import arrays
from shiftwork.store.postgres.find import EVERYTHING
from shiftwork.store.postgres.rows import TimedJob
from shiftwork.store.postgres.server.statements import PostgresSession, Statements


async def begun(session: PostgresSession, jobs: Sequence[TimedJob]) -> set[str | None]:
    """Return those of the jobs' flows that exist, and None for the jobs without a flow."""
    flows = {job.flow for job, _ in jobs if job.flow is not None}
    if not flows:
        return {None}
    return {None, *await session.value("begun_flows", (session.namespace, arrays.texts([*flows])))}


def beginning(jobs: Sequence[TimedJob], added: Sequence[Added], begun: Collection[str | None]) -> list[TimedJob]:
    """Return the created jobs whose flow did not exist before."""
    return [timed for timed, one in zip(jobs, added, strict=True) if one.created and timed[0].flow not in begun]


def aim_columns(beginning: Sequence[TimedJob]) -> tuple[str | None, str | None, str]:
    """Return the arguments of the function `aim`, for flows that began with these jobs."""
    ids, flows = arrays.texts([job.id for job, _ in beginning]), arrays.texts([job.flow for job, _ in beginning])
    return ids, flows, arrays.numbers([now for _, now in beginning])


async def aim(session: PostgresSession, beginning: Sequence[TimedJob]) -> None:
    """Set worker and tags of the flows that began with these jobs: each part has set them by its own jobs alone."""
    if beginning:
        await session.run("aim", (session.namespace, *aim_columns(beginning)))


async def tie(session: PostgresSession, created: Sequence[TimedJob]) -> None:
    """Tie jobs that were added in several parts to what they need, and to what waits for their parents."""
    tied = [job for job, _ in created if job.needs or job.parent]
    if tied:
        needs = [(job.id, need.id) for job in tied for need in needs_of(job)]
        waiters, neededs = arrays.texts([id for id, _ in needs]), arrays.texts([id for _, id in needs])
        family = arrays.texts([job.id for job in tied]), arrays.texts([job.parent for job in tied])
        session.ring(await session.value("tie", (session.namespace, created[0][1], waiters, neededs, *family)))


async def results(session: Statements, ids: Sequence[str]) -> list[bytes | None]:
    """Return the results of these jobs, in order; None where a job has none."""
    found = await session.rows("results", (session.namespace, arrays.texts(list(set(ids)))))
    by_id: dict[str, bytes] = dict(found)
    return [by_id.get(id) for id in ids]


async def flows(session: PostgresSession, behind: tuple[float, str] | None, limit: int) -> list[FlowRecord]:
    """Return the newest flows that come after this position, newest first."""
    created_at, id = behind or EVERYTHING
    args = {"namespace": session.namespace, "created_at": created_at, "id": id, "limit": max(0, limit)}
    return [
        FlowRecord(id, at, _counts(counts), worker or "", tuple(tags or ()))
        for id, at, counts, worker, tags in await session.rows("flows", args)
    ]


async def members(
    session: PostgresSession, flow: str, behind: tuple[float, str] | None, limit: int
) -> list[FlowMember]:
    """Return the newest jobs of a flow that come after this position, newest first."""
    created_at, id = behind or EVERYTHING
    args = {"namespace": session.namespace, "flow": flow, "created_at": created_at, "id": id, "limit": max(0, limit)}
    return [
        FlowMember(id, worker, STATUSES[status], *more)
        for id, worker, status, *more in await session.rows("members", args)
    ]


def _counts(encoded: str | None) -> dict[str, int]:
    numbers = json.decode(encoded, type=dict[int, int]) if encoded else {}
    return {STATUSES[number].value: n for number, n in numbers.items()}
