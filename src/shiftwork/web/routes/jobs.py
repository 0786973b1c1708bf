"""Jobs: finding them, adding them, changing one or many, and the dead letters."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field, structs

from shiftwork.control.bulk import RATE_PATTERN, Action, check_rate
from shiftwork.core.dead_groups import Group
from shiftwork.core.model import JobPriority, JobStatus
from shiftwork.handles.job import Job
from shiftwork.handles.options import Options
from shiftwork.telemetry.tracing import continuing
from shiftwork.views.instants import iso
from shiftwork.views.shapes.jobs import (
    ExplanationShape,
    JobShape,
    WholeJobShape,
    explanation_shape,
    job_shape,
    whole_job_shape,
)
from shiftwork.web.job_search import by_payload, search
from shiftwork.web.routing import Body, Name, Query, Text, get, post
from shiftwork.web.site import Site

MOST_CHANGED: Final = 100_000
_WAITING: Final = (JobStatus.SCHEDULED, JobStatus.QUEUED, JobStatus.FAILED)

Instant = Annotated[datetime, Meta(tz=True)]
GroupKey = Annotated[str, Meta(pattern="^[0-9a-f]{24}$")]
Rate = Annotated[str, Meta(max_length=30, extra_json_schema={"pattern": RATE_PATTERN})] | None
NoRate = Annotated[str | None, Meta(extra_json_schema={"type": "null"})]
"""Read all the same, so that it is refused in words."""


class JobsQuery(Query, frozen=True, kw_only=True):
    """Which jobs: every given one must match."""

    status: list[JobStatus] = field(default_factory=list)
    worker: Name | None = None
    pool: Name | None = None
    key: Name | None = None
    unique_key: Name | None = None
    instance: Name | None = None
    error: Text | None = None
    payload: Text | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    after: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class JobsAnswer(Struct, frozen=True, kw_only=True):
    """Jobs, newest first. `next_after` asks for the next page, and is null at the end."""

    jobs: list[JobShape]
    next_after: str | None


class EnqueueBody(Body, frozen=True, kw_only=True):
    """A job to be."""

    worker: Name
    payload: dict[str, Any] = field(default_factory=dict)
    priority: Literal["low", "normal", "high", "critical"] | None = None
    delay_seconds: Annotated[float, Meta(ge=0, le=315_360_000)] | None = None
    unique_key: Name | None = None
    job_id: Name | None = None


class Enqueued(Struct, frozen=True):
    """The job that stands for it now, and whether that one is new."""

    created: bool
    job: JobShape


class RetryBody(Body, frozen=True, kw_only=True):
    """With which arguments; null is with its own."""

    payload: dict[str, Any] | None = None


class Discarded(Struct, frozen=True):
    """What is gone."""

    id: str


class BulkFilter(Body, frozen=True, kw_only=True):
    """Which jobs: every given one must match."""

    ids: Annotated[list[Name], Meta(max_length=1_000)] | None = None
    status: list[JobStatus] | None = None
    worker: Name | None = None
    pool: Name | None = None
    key: Name | None = None
    error: Text | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    group: GroupKey | None = None


class Bulk(Body, frozen=True, kw_only=True, tag_field="action"):
    """Which jobs are meant, and how many of them at most."""

    filter: BulkFilter
    dry_run: bool = False
    limit: Annotated[int, Meta(ge=1, le=MOST_CHANGED)] = MOST_CHANGED


class CancelJobs(Bulk, frozen=True, kw_only=True, tag="cancel"):
    """Cancel them; without a status, those that wait."""

    rate: NoRate = None


class RetryJobs(Bulk, frozen=True, kw_only=True, tag="retry"):
    """Queue them again, now, or one after the other at a rate such as "10/s"; without a status, dead ones."""

    rate: Rate = None


class DiscardJobs(Bulk, frozen=True, kw_only=True, tag="discard"):
    """Delete them; without a status, dead ones."""

    rate: NoRate = None


class BulkAnswer(Struct, frozen=True, kw_only=True):
    """How many jobs match, at most as many as the limit says; how many were changed; when the last of them is due."""

    matched: int
    changed: int
    until: str | None
    """Null without a rate."""


class DeadGroup(Struct, frozen=True, kw_only=True):
    """Dead jobs of one worker that failed alike. `key` stands for all of them in a filter."""

    key: str
    worker: str
    error: str
    count: int
    newest: str | None
    oldest: str | None
    sample_ids: list[str]


class Dead(Struct, frozen=True, kw_only=True):
    """The dead-letter queue by what went wrong: the newest so many of all there are."""

    total: int
    looked_at: int
    groups: list[DeadGroup]


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@get("/jobs")
async def jobs(site: Site, query: JobsQuery) -> JobsAnswer:
    """Jobs, newest first. A page may be short, of large jobs, or even empty, by what no index has.

    By a key, an instance, an error or a payload a request looks only so long: it goes on behind `next_after`.
    """
    wanted = {name: value for name, value in structs.asdict(query).items() if value is not None and name != "payload"}
    if not query.status:
        del wanted["status"]
    found = await (by_payload(site.control, wanted, query.payload) if query.payload else search(site.control, wanted))
    return JobsAnswer(jobs=[job_shape(job) for job in found.jobs], next_after=found.next_after)


@get("/jobs/{id}")
async def job(site: Site, id: Name) -> WholeJobShape:
    """A job, whole: attempts with tracebacks, progress, result, and why it is where it is."""
    return whole_job_shape(*await site.control.jobs.get_explained(id))


@get("/jobs/{id}/explanation")
async def explanation(site: Site, id: Name) -> ExplanationShape:
    """Why the job is not running, or how it ended."""
    return explanation_shape(await site.control.jobs.explain(id))


@get("/dead")
async def dead(site: Site) -> Dead:
    """The dead-letter queue, summed up by worker and error, from the newest dead jobs."""
    groups, looked_at = await site.dead.get()
    known = sum(pool.stats.dead for pool in (await site.overview.get()).pools)
    return Dead(total=max(known, looked_at), looked_at=looked_at, groups=[_group(group) for group in groups])


def _group(group: Group) -> DeadGroup:
    return DeadGroup(
        key=group.key,
        worker=group.worker,
        error=group.error,
        count=group.count,
        newest=iso(group.newest_at),
        oldest=iso(group.oldest_at),
        sample_ids=group.sample_ids,
    )


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@post("/jobs")
async def enqueue(
    site: Site, body: EnqueueBody, idempotency_key: Name | None, traceparent: str | None, tracestate: str | None
) -> Enqueued:
    """Add a job. With a `job_id`, or the header Idempotency-Key, asking again adds nothing.

    It continues the trace that the header traceparent names.
    """
    options = Options(
        priority=JobPriority[body.priority.upper()] if body.priority else None,
        delay_seconds=body.delay_seconds,
        unique_key=body.unique_key,
        job_id=body.job_id or (idempotency_key and _id_of(body.worker, idempotency_key)),
    )
    with continuing(traceparent, tracestate):
        added, created = await site.control.jobs.enqueue(body.worker, body.payload, options)
    site.changed()
    return Enqueued(created, job_shape(added))


def _id_of(worker: str, key: str) -> str:
    """The id of the job that an idempotency key stands for."""
    return "key-" + hashlib.sha256(f"{worker}\0{key}".encode()).hexdigest()[:40]


@post("/jobs/{id}/cancel")
async def cancel_job(site: Site, id: Name) -> JobShape:
    """Cancel a waiting job, or ask a running one to stop."""
    return _changed(site, await site.control.jobs.cancel(id))


@post("/jobs/{id}/retry")
async def retry_job(site: Site, id: Name, body: RetryBody) -> JobShape:
    """Queue a dead, cancelled, failed or scheduled job again, now, its counts at zero; perhaps with a new payload."""
    return _changed(site, await site.control.jobs.retry(id, payload=body.payload))


@post("/jobs/{id}/discard")
async def discard_job(site: Site, id: Name) -> Discarded:
    """Delete a job that has ended."""
    await site.control.jobs.discard(id)
    site.jobs_changed()
    return Discarded(id)


@post("/jobs/bulk")
async def change_jobs(site: Site, body: CancelJobs | RetryJobs | DiscardJobs) -> BulkAnswer:
    """Cancel, retry or discard all that match; with `dry_run` only count them. A `rate` spreads retries over time."""
    wanted = {name: value for name, value in structs.asdict(body.filter).items() if value is not None}
    if isinstance(body, CancelJobs):
        wanted.setdefault("status", list(_WAITING))
    action = _ACTIONS[type(body)]
    check_rate(action, body.rate)
    if body.dry_run:
        matched = await site.control.bulk.count(action, **wanted, limit=body.limit)
        return BulkAnswer(matched=matched, changed=0, until=None)
    changed = await site.control.bulk.change(action, rate=body.rate, **wanted, limit=body.limit)
    site.jobs_changed()
    return BulkAnswer(matched=changed.matched, changed=changed.count, until=iso(changed.until))


_ACTIONS: Final[Mapping[type[Bulk], Action]] = {CancelJobs: "cancel", RetryJobs: "retry", DiscardJobs: "discard"}


def _changed(site: Site, changed: Job[Any]) -> JobShape:
    site.jobs_changed()
    return job_shape(changed)
