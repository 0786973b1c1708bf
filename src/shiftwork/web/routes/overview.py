"""The overview, the charts, the doctor, and the document that describes this API."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from shiftwork.views.formats import past_iso
from shiftwork.views.shapes.pools import pool_shape
from shiftwork.views.shapes.system import ProblemShape, SummaryShape, problem_shape
from shiftwork.web.history import KEPT_SECONDS, SHOWN_SECONDS, Series
from shiftwork.web.openapi import document
from shiftwork.web.routing import Name, Query, get, post
from shiftwork.web.site import Site


class Counts(Struct, frozen=True, kw_only=True):
    """The numbers of all jobs and workers."""

    queued: int
    running: int
    scheduled: int
    retrying: int
    dead: int
    completed: int
    failed: int
    workers: int
    disabled: int


class OverviewAnswer(SummaryShape, frozen=True, kw_only=True):
    """What is wrong, the leader, the nodes, the pools, and all jobs in numbers."""

    counts: Counts


class HistoryQuery(Query, frozen=True, kw_only=True):
    """How far back the charts go, and for which pool."""

    seconds: Annotated[int, Meta(ge=1, le=KEPT_SECONDS)] = SHOWN_SECONDS
    pool: Name | None = None


@get("/overview")
async def overview(site: Site) -> OverviewAnswer:
    """Return what is wrong now, the leader, every pool, and all jobs in numbers."""
    seen = await site.overview.get()
    pools = [pool_shape(pool, wait_p95=site.history.wait_p95(pool.name)) for pool in seen.pools]
    return OverviewAnswer(
        at=past_iso(seen.at),
        store=seen.store,
        status=seen.health.status,
        problems=[problem_shape(problem) for problem in seen.health.problems],
        leader=seen.leader,
        nodes=seen.nodes,
        pools=pools,
        counts=Counts(
            queued=sum(pool.queued for pool in pools),
            running=sum(pool.running for pool in pools),
            scheduled=sum(pool.scheduled for pool in pools),
            retrying=sum(pool.retrying for pool in pools),
            dead=sum(pool.dead for pool in pools),
            completed=sum(pool.completed for pool in pools),
            failed=sum(pool.failed for pool in pools),
            workers=len(seen.workers),
            disabled=sum(not worker.state.enabled for worker in seen.workers),
        ),
    )


@get("/history")
async def history(site: Site, query: HistoryQuery) -> Series:
    """Return every pool over time, or one: an hour in steps of seconds, a day in steps of a minute or more.

    A pool that is unknown, and never had a job, is an error.
    """
    found = await site.history.series(query.seconds, query.pool)
    if query.pool is not None and all(at is None for pool in found.pools.values() for at in pool.queued):
        await site.control.refuse_unknown(pool=query.pool)
    return found


@get("/openapi.json")
async def openapi(site: Site) -> dict[str, Any]:  # noqa: ARG001 - every route takes the site
    """Return this API as an OpenAPI 3.1 document."""
    return document()


class DoctorAnswer(Struct, frozen=True, kw_only=True):
    """The store's settings, and what is wrong."""

    status: Literal["ok", "degraded", "failing"]
    store: str
    findings: dict[str, str]
    problems: list[ProblemShape]


@post("/doctor")
async def doctor(site: Site) -> DoctorAnswer:
    """Examine the store's real settings, measure it, and return what is wrong. Answers are kept for 15 seconds."""
    # It is a change, because it writes in order to measure the store, and may read a whole file.
    report = await site.doctor.get()
    return DoctorAnswer(
        status=report.status,
        store=report.store,
        findings=report.findings,
        problems=[problem_shape(problem) for problem in report.problems],
    )
