"""Jobs: finding, adding and changing them, one or many, and the dead letters."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field, structs

from shiftwork.control.control import Control
from shiftwork.control.jobs.bulk import RATE_PATTERN, Action, Changed, check_rate
from shiftwork.core.model.job_changes import JobOrder
from shiftwork.core.model.jobs import NOT_STARTED, CheckedJobOptions, JobPriority, JobStatus
from shiftwork.core.observing.dead_groups import Group
from shiftwork.core.options.value_checks import LONGEST_TAG, MOST_TAGS, SHORTEST_TIMEOUT, TAG_PATTERN
from shiftwork.handles.job import Job
from shiftwork.handles.options import JobOptions, changed
from shiftwork.telemetry.tracing import continuing
from shiftwork.views.formats import PriorityName, iso, past_iso, shaped
from shiftwork.views.shapes.jobs import (
    ExplanationShape,
    JobShape,
    PlacedJobShape,
    StackShape,
    WholeJobShape,
    explanation_shape,
    job_shape,
    placed_job_shape,
    stack_shape,
    whole_job_shape,
)
from shiftwork.web.job_search import JobsPage, by_payload, search, total, waiting_for_signals
from shiftwork.web.routing import Body, Id, Name, Query, Text, get, post
from shiftwork.web.site import Site

MOST_CHANGED: Final = 100_000

Instant = Annotated[datetime, Meta(tz=True)]
GroupKey = Annotated[str, Meta(pattern="^[0-9a-f]{24}$")]
Rate = Annotated[str, Meta(max_length=30, extra_json_schema={"pattern": RATE_PATTERN})] | None
NoRate = Annotated[str | None, Meta(extra_json_schema={"type": "null"})]
"""Accepted by the type, so that it is rejected with a message."""


Seconds = Annotated[float, Meta(gt=0, le=315_360_000)]
Tag = Annotated[str, Meta(min_length=1, max_length=LONGEST_TAG, pattern=TAG_PATTERN)]


class OptionsBody(Body, frozen=True, kw_only=True):
    """How a job differs from other jobs of its worker."""

    priority: PriorityName | None = None
    unique_key: Id | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    """Retries, instead of the worker's."""
    timeout_seconds: Annotated[float, Meta(ge=SHORTEST_TIMEOUT, le=315_360_000)] | None = None
    """How long a run may take, instead of the worker's."""
    expires_seconds: Seconds | None = None
    """The job is cancelled if it has not started this long after it is due."""
    tags: Annotated[list[Tag], Meta(max_length=MOST_TAGS)] = field(default_factory=list)


class JobsQuery(Query, frozen=True, kw_only=True):
    """Which jobs are meant: all given conditions must match."""

    status: list[JobStatus] = field(default_factory=list)
    worker: Name | None = None
    pool: Name | None = None
    key: Name | None = None
    unique_key: Name | None = None
    instance: Name | None = None
    flow: Name | None = None
    tag: Tag | None = None
    error: Text | None = None
    payload: Text | None = None
    waits_for_signal: Literal["true"] | None = None
    """Only those whose functions wait for a signal."""
    created_after: Instant | None = None
    created_before: Instant | None = None
    order: JobOrder = "newest"
    after: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class JobsAnswer(Struct, frozen=True, kw_only=True):
    """A page of jobs, in the order asked for. `next_after` is the `after` of the next page, and null at the end."""

    jobs: list[PlacedJobShape]
    total: int | None
    """How many jobs match in all; null if this page is not all of them and the store does not count them."""
    next_after: str | None


class EnqueueBody(OptionsBody, frozen=True, kw_only=True):
    """A job to add."""

    worker: Name
    payload: dict[str, Any] = field(default_factory=dict)
    delay_seconds: Annotated[float, Meta(ge=0, le=315_360_000)] | None = None
    job_id: Id | None = None


class Enqueued(Struct, frozen=True):
    """The job that was added, or the existing one that it stands for."""

    created: bool
    job: JobShape


class RetryBody(Body, frozen=True, kw_only=True):
    """The new arguments; null keeps the old ones."""

    payload: dict[str, Any] | None = None


class Discarded(Struct, frozen=True):
    """The id of the deleted job."""

    id: str


class BulkFilter(Body, frozen=True, kw_only=True):
    """Which jobs are meant: all given conditions must match."""

    ids: Annotated[list[Name], Meta(max_length=1_000)] | None = None
    status: list[JobStatus] | None = None
    worker: Name | None = None
    pool: Name | None = None
    key: Name | None = None
    flow: Name | None = None
    tag: Tag | None = None
    error: Text | None = None
    created_after: Instant | None = None
    created_before: Instant | None = None
    group: GroupKey | None = None


class Bulk(Body, frozen=True, kw_only=True, tag_field="action"):
    """Which jobs are meant, and how many at most."""

    filter: BulkFilter
    dry_run: bool = False
    limit: Annotated[int, Meta(ge=1, le=MOST_CHANGED)] = MOST_CHANGED
    reason: Text | None = None
    """Why, for the event."""


class CancelJobs(Bulk, frozen=True, kw_only=True, tag="cancel"):
    """Cancel jobs; without a status, those that wait."""

    rate: NoRate = None


class RetryJobs(Bulk, frozen=True, kw_only=True, tag="retry"):
    """Queue jobs again, now or one after the other at a rate such as "10/s"; without a status, dead ones."""

    rate: Rate = None


class DiscardJobs(Bulk, frozen=True, kw_only=True, tag="discard"):
    """Delete jobs; without a status, dead ones."""

    rate: NoRate = None


class BulkAnswer(Struct, frozen=True, kw_only=True):
    """How many jobs match, up to the limit; how many were changed; and when the last of them is due."""

    matched: int
    changed: int
    until: str | None
    """When the last job is due; null without a rate."""


class DeadGroup(Struct, frozen=True, kw_only=True):
    """Dead jobs of one worker that failed alike. `key` names the group in a filter."""

    key: str
    worker: str
    error: str
    count: int
    newest: str
    oldest: str
    sample_ids: list[str]


class Dead(Struct, frozen=True, kw_only=True):
    """The newest dead jobs, grouped by worker and error, and how many dead jobs there are."""

    total: int
    looked_at: int
    groups: list[DeadGroup]


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@get("/jobs")
async def jobs(site: Site, query: JobsQuery) -> JobsAnswer:
    """List jobs, newest or oldest first, each with the beginning of its payload. `payload_bytes` is that of the whole.

    A queued job has its position and an estimate; one that waits for another with its key has them only where it is
    read alone. A worker, pool or flow that is unknown, and never had a job, is an error.

    A search by key, instance, error, payload or wait uses no index: it stops after a moment, so a page may be short or
    even empty, and continues at `next_after`.
    """
    wanted = {name: value for name, value in structs.asdict(query).items() if value is not None}
    if not query.status:
        del wanted["status"]
    found = await _found(site.control, wanted)
    if not found.jobs and found.next_after is None and query.after is None:
        await site.control.refuse_unknown(worker=query.worker, pool=query.pool, flow=query.flow)
    placed = await site.control.jobs.placed(found.jobs)
    return JobsAnswer(
        jobs=[placed_job_shape(job, placed) for job in found.jobs],
        total=await total(site.control, wanted, found),
        next_after=found.next_after,
    )


async def _found(control: Control, wanted: Mapping[str, Any]) -> JobsPage:
    asked = {name: value for name, value in wanted.items() if name not in {"payload", "waits_for_signal"}}
    part = wanted.get("payload")
    if "waits_for_signal" in wanted:
        return await waiting_for_signals(control, asked, part)
    return await (by_payload(control, asked, part) if part else search(control, asked))


@get("/jobs/{id}")
async def job(site: Site, id: Name) -> WholeJobShape:
    """Return a whole job: attempts with tracebacks, progress, result, and why it is where it is."""
    return whole_job_shape(*await site.control.jobs.get_shown(id))


@get("/jobs/{id}/explanation")
async def explanation(site: Site, id: Name) -> ExplanationShape:
    """Return why the job is not running, or how it ended."""
    return explanation_shape(await site.control.jobs.explain(id))


@post("/jobs/{id}/stack")
async def job_stack(site: Site, id: Name) -> StackShape:
    """Return what a running job is doing now: its own stack first, then everything else in its process."""
    return stack_shape(await site.control.jobs.stack(id))


@get("/dead")
async def dead(site: Site) -> Dead:
    """Return the newest dead jobs, grouped by worker and error."""
    groups, looked_at = await site.dead.get()
    known = sum(pool.stats.dead for pool in (await site.overview.get()).pools)
    return Dead(total=max(known, looked_at), looked_at=looked_at, groups=[_group(group) for group in groups])


def _group(group: Group) -> DeadGroup:
    return shaped(DeadGroup, group, newest=past_iso(group.newest_at), oldest=past_iso(group.oldest_at))


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@post("/jobs")
async def enqueue(
    site: Site, body: EnqueueBody, idempotency_key: Name | None, traceparent: str | None, tracestate: str | None
) -> Enqueued:
    """Add a job. With a `job_id`, or the header Idempotency-Key, a repeated request adds nothing.

    The job continues the trace that the header traceparent names.
    """
    job_id = body.job_id or (idempotency_key and _id_of(body.worker, idempotency_key))
    given = options_in(body) | JobOptions(delay_seconds=body.delay_seconds, job_id=job_id)
    options = changed(CheckedJobOptions(), body.worker, given)
    with continuing(traceparent, tracestate):
        added, created = await site.control.jobs.enqueue(body.worker, body.payload, options)
    site.changed()
    return Enqueued(created, job_shape(added))


def _id_of(worker: str, key: str) -> str:
    """Return the id of the job that an idempotency key stands for."""
    return "key-" + hashlib.sha256(f"{worker}\0{key}".encode()).hexdigest()[:40]


@post("/jobs/{id}/cancel")
async def cancel_job(site: Site, id: Name) -> JobShape:
    """Cancel a waiting job, or ask a running one to stop."""
    return _changed(site, await site.control.jobs.cancel(id))


@post("/jobs/{id}/retry")
async def retry_job(site: Site, id: Name, body: RetryBody) -> JobShape:
    """Queue a dead, cancelled, failed or scheduled job again, with its counts reset, and optionally a new payload."""
    return _changed(site, await site.control.jobs.retry(id, payload=body.payload))


@post("/jobs/{id}/discard")
async def discard_job(site: Site, id: Name) -> Discarded:
    """Delete a job that has ended."""
    await site.control.jobs.discard(id)
    site.jobs_changed()
    return Discarded(id)


@post("/jobs/bulk")
async def change_jobs(site: Site, body: CancelJobs | RetryJobs | DiscardJobs) -> BulkAnswer:
    """Cancel, retry or discard all jobs that match, or count them (`dry_run`). A `rate` spreads retries over time."""
    wanted = {name: value for name, value in structs.asdict(body.filter).items() if value is not None}
    if isinstance(body, CancelJobs):
        wanted.setdefault("status", list(NOT_STARTED))
    action = _ACTIONS[type(body)]
    check_rate(action, body.rate)
    if body.dry_run:
        changed = Changed(matched=await site.control.bulk.count(action, **wanted, limit=body.limit))
    else:
        changed = await site.control.bulk.change(action, rate=body.rate, reason=body.reason, **wanted, limit=body.limit)
        site.jobs_changed()
    if not changed.matched:
        meant = body.filter
        await site.control.refuse_unknown(worker=meant.worker, pool=meant.pool, flow=meant.flow)
    return BulkAnswer(matched=changed.matched, changed=changed.count, until=iso(changed.until))


_ACTIONS: Final[Mapping[type[Bulk], Action]] = {CancelJobs: "cancel", RetryJobs: "retry", DiscardJobs: "discard"}


def _changed(site: Site, changed: Job[Any]) -> JobShape:
    site.jobs_changed()
    return job_shape(changed)


def options_in(body: OptionsBody) -> JobOptions:
    return JobOptions(
        priority=JobPriority[body.priority.upper()] if body.priority else None,
        unique_key=body.unique_key,
        max_retries=body.max_retries,
        timeout_seconds=body.timeout_seconds,
        expires_seconds=body.expires_seconds,
        tags=body.tags,
    )
