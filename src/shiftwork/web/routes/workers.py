"""Workers: reading, changing and triggering them."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field, structs

from shiftwork.core.model.jobs import DeadJob, JobStatus
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.core.observing.dead_groups import groups_of
from shiftwork.core.observing.pool_history import DAY, HOUR
from shiftwork.core.workers.state import DISABLED_BY_HAND
from shiftwork.errors import UnknownWorkerError, nearest
from shiftwork.sentences import sentence
from shiftwork.views.formats import past_iso
from shiftwork.views.overview import WorkerView
from shiftwork.views.shapes.jobs import JobShape, job_shape
from shiftwork.views.shapes.system import BreakerViewShape, WorkerShape, breaker_shape, worker_shape
from shiftwork.web.routing import Body, Name, Query, Text, get, post
from shiftwork.web.site import Site

RECENT_RUNS: Final = 50
_RAN: Final = (JobStatus.PROCESSING, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.DEAD)
"""The statuses of jobs that have run, or do: a backlog of queued jobs shows nothing about a worker."""
MOST_FAILED: Final = 200
"""Of how many jobs the errors are read: the newest ones that failed or are dead."""
SHOWN_ERRORS: Final = 20
"""How many groups of errors are shown."""


class WorkersQuery(Query, frozen=True, kw_only=True):
    """Which page is meant."""

    after: Name | None = None
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 10_000


class WorkersAnswer(Struct, frozen=True, kw_only=True):
    """A page of workers by name. `next_after` is the `after` of the next page, and null at the end."""

    workers: list[WorkerShape]
    next_after: str | None


class WholeWorker(WorkerShape, frozen=True, kw_only=True):
    """A worker, with its policy, its breaker, its latest runs, and the schema of its payload where it is known."""

    config: WorkerConfig
    guarded_by: BreakerViewShape | None
    """The breaker that guards it, with its state; null if it has none."""
    runs: list[JobShape]
    payload_schema: dict[str, Any] | None


class RunsQuery(Query, frozen=True, kw_only=True):
    """How far back the runs go."""

    seconds: Annotated[int, Meta(ge=60, le=DAY)] = HOUR


class RunMinuteShape(Struct, frozen=True, kw_only=True):
    """The runs that ended in the minute before `at`: how many, and how many seconds they took.

    Run times are null if they are not known; `longest` is exact if one run ended, and otherwise at most too short.
    """

    at: str
    completed: int
    failed: int
    p50: float | None
    p95: float | None
    longest: float | None


class ErrorGroup(Struct, frozen=True, kw_only=True):
    """Jobs that failed alike and wait for a retry, or are dead: the error of the last one, how many, and since when.

    `last` is when the last one became dead, or when the attempt began after which it waits.
    """

    error: str
    count: int
    last: str


class WorkerRunsAnswer(Struct, frozen=True, kw_only=True):
    """The runs of a worker over time: the minutes in which runs ended, and all of them together.

    The minutes are those that the leader has written, for the busiest workers. The errors are the last ones of the
    newest jobs that failed and wait for a retry, or are dead.
    """

    minutes: list[RunMinuteShape]
    p50: float | None
    p95: float | None
    longest: float | None
    completed: int
    failed: int
    errors: list[ErrorGroup]


class Disabling(Body, frozen=True, kw_only=True):
    """Why it is disabled."""

    reason: Text | None = None


class NewTiming(Body, frozen=True, kw_only=True):
    """A cron expression, an interval, or `reset` for the schedule in the code."""

    cron: Text | None = None
    interval_seconds: Annotated[float, Meta(ge=0)] | None = None
    every: float | Text | None = None
    """The interval in words instead of `interval_seconds`, such as `"90s"` or `"1h30m"`."""
    timezone: Name | None = None
    reset: bool = False


class Trigger(Body, frozen=True, kw_only=True):
    """The arguments of the run."""

    payload: dict[str, Any] = field(default_factory=dict)


class Forgotten(Struct, frozen=True):
    """The worker that has only ended jobs left."""

    worker: str


class Triggered(Struct, frozen=True):
    """The job that runs now, ahead of all others."""

    job: JobShape


class GraphNode(Struct, frozen=True, kw_only=True):
    """A worker in the graph."""

    name: str
    pool: str
    mode: WorkerExecutionMode
    enabled: bool
    running: int
    failures: int


class GraphEdge(Struct, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """A worker that depends on another, or two workers that never run at the same time."""

    source: str
    target: str
    kind: Literal["depends_on", "blocks"]


class Graph(Struct, frozen=True, kw_only=True):
    """The dependencies and conflicts between workers."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]


@get("/workers")
async def workers(site: Site, query: WorkersQuery) -> WorkersAnswer:
    """Return every worker: schedule, state, last and next run, the numbers of its jobs."""
    shapes = site.workers.of(await site.overview.get())
    behind = shapes if query.after is None else [shape for shape in shapes if shape.name > query.after]
    page = behind[: query.limit]
    return WorkersAnswer(workers=page, next_after=page[-1].name if len(behind) > len(page) else None)


@get("/workers/{worker}")
async def worker(site: Site, worker: Name) -> WholeWorker:
    """Return a worker, with its policy, the latest jobs that ran, and the schema of its payload."""
    view = await _view(site, worker)
    runs = [job_shape(job) for job in await site.control.jobs.find(worker=worker, status=_RAN, limit=RECENT_RUNS)]
    schema = await site.control.workers.payload_schema(worker)
    guard = next((one for one in (await site.overview.get()).breakers.values() if worker in one.workers), None)
    breaker = None if guard is None else breaker_shape(guard)
    whole = structs.asdict(worker_shape(view)) | {"config": view.config, "guarded_by": breaker}
    return WholeWorker(**whole, runs=runs, payload_schema=schema)


@get("/workers/{worker}/runs")
async def worker_runs(site: Site, worker: Name, query: RunsQuery) -> WorkerRunsAnswer:
    """Return how long the runs of a worker took, how many ended, and how they failed: in the last hour by default."""
    await _view(site, worker)
    found = await site.history.worker_runs(worker, query.seconds)
    minutes = [RunMinuteShape(**structs.asdict(minute) | {"at": past_iso(minute.at)}) for minute in found.minutes]
    errors = await _errors(site, worker, site.control.now() - query.seconds)
    return WorkerRunsAnswer(**structs.asdict(found) | {"minutes": minutes}, errors=errors)


async def _errors(site: Site, worker: str, after: float) -> list[ErrorGroup]:
    """Return the groups of the newest jobs that failed after a time, or are dead since then, by their last error."""
    status = [JobStatus.FAILED, JobStatus.DEAD]
    jobs = [job.record for job in await site.control.jobs.find(worker=worker, status=status, limit=MOST_FAILED)]
    failed = [(job.ended_at or job.started_at or job.created_at, job) for job in jobs]
    newest = sorted([(at, job) for at, job in failed if at > after], key=lambda one: one[0], reverse=True)
    groups = groups_of(DeadJob(job.id, worker, job.error, job.created_at, at) for at, job in newest)
    return [
        ErrorGroup(error=group.error, count=group.count, last=past_iso(group.newest_at))
        for group in groups[:SHOWN_ERRORS]
    ]


@get("/graph")
async def graph(site: Site) -> Graph:
    """Return which workers depend on which, and which never run at the same time."""
    views = {view.config.name: view for view in (await site.overview.get()).workers}
    edges: list[GraphEdge] = []
    for name, view in views.items():
        edges += [GraphEdge(source=name, target=one, kind="depends_on") for one in view.config.depends_on]
        edges += [GraphEdge(source=name, target=one, kind="blocks") for one in view.config.blocks]
    nodes = [
        GraphNode(
            name=name,
            pool=view.config.pool,
            mode=view.config.execution_mode,
            enabled=view.state.enabled,
            running=view.stats.processing,
            failures=view.state.failures,
        )
        for name, view in views.items()
    ]
    return Graph(nodes=nodes, edges=edges)


@post("/workers/{worker}/enable")
async def enable_worker(site: Site, worker: Name) -> WorkerShape:
    """Enable the worker everywhere, and reset its count of failures."""
    await site.control.workers.enable(worker)
    return await _after(site, worker)


@post("/workers/{worker}/disable")
async def disable_worker(site: Site, worker: Name, body: Disabling) -> WorkerShape:
    """Disable the worker everywhere: it does not start, and its queued jobs wait. Running jobs continue."""
    await site.control.workers.disable(worker, body.reason or DISABLED_BY_HAND)
    return await _after(site, worker)


@post("/workers/{worker}/forget")
async def forget_worker(site: Site, worker: Name) -> Forgotten:
    """Delete the definition, state and schedule of a worker that no live node, stored schedule or live job needs."""
    await site.control.workers.forget(worker)
    site.changed()
    return Forgotten(worker)


@post("/workers/{worker}/reschedule")
async def reschedule_worker(site: Site, worker: Name, body: NewTiming) -> WorkerShape:
    """Give the worker another schedule, which wins over the one in the code until it is reset."""
    await site.control.workers.reschedule(worker, **structs.asdict(body))
    return await _after(site, worker)


@post("/workers/{worker}/trigger")
async def trigger_worker(site: Site, worker: Name, body: Trigger) -> Triggered:
    """Run the worker now, ahead of all others. The answer does not wait for the run to end."""
    job = await site.control.workers.trigger(worker, body.payload)
    site.changed()
    return Triggered(job_shape(job))


async def _after(site: Site, name: str) -> WorkerShape:
    site.changed()
    return worker_shape(await _view(site, name))


async def _view(site: Site, name: str) -> WorkerView:
    views = {view.config.name: view for view in (await site.overview.get()).workers}
    if name not in views:
        message = sentence("there is no worker {what}: {hint}", what=f"{name!r}", hint=nearest(name, views))
        raise UnknownWorkerError(message)
    return views[name]
