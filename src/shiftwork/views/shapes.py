"""What programs are shown: by `--json`, and over HTTP. `docs/cli.md` tells the shapes, and a test holds it to them.

An instant is an ISO 8601 string in UTC, of fixed length, named `at` or with `_at` at the end; a length of time is a
number of seconds, named with `_seconds` at the end; what is not there is null. Fields may be added; none is taken away.
"""

from typing import Any, Literal

import msgspec
from msgspec import Struct, to_builtins

from shiftwork.core.health import Problem
from shiftwork.core.model import Attempt, Event, JobStatus, LogLine, Progress, WorkerExecutionMode, WorkerInstance
from shiftwork.core.token import Role, Token
from shiftwork.handles.codec import plain
from shiftwork.handles.job import Job
from shiftwork.telemetry.tracing import trace_id
from shiftwork.views.explanation import Explanation
from shiftwork.views.instants import iso
from shiftwork.views.overview import NodePool, NodeView, Overview, PoolView, WorkerView
from shiftwork.views.remedies import remedy
from shiftwork.views.stack import JobStack


class ProblemShape(Struct, frozen=True, kw_only=True):
    """Something that is wrong, and what to do about it."""

    severity: str
    code: str
    subject: str
    message: str
    remedy: str


class WorkerShape(Struct, frozen=True, kw_only=True):
    """A worker: its policy, its state, its jobs in numbers."""

    name: str
    mode: WorkerExecutionMode
    schedule: str
    pool: str
    priority: str
    timeout_seconds: float | None
    max_retries: int
    depends_on: dict[str, str]
    blocks: tuple[str, ...]
    enabled: bool
    reason: str | None
    running: int
    queued: int
    scheduled: int
    retrying: int
    dead: int
    failures: int
    last_run_at: str | None
    last_end_at: str | None
    last_success_at: str | None
    last_error: str | None
    next_due_at: str | None


class NodeFailure(Struct, frozen=True):
    """A node that cannot start a pool's processes."""

    node: str
    error: str


class PoolShape(Struct, frozen=True, kw_only=True):
    """A pool: its bounds, its jobs in numbers, who serves it."""

    name: str
    kind: str | None
    min_workers: int | None
    max_workers: int | None
    instances: int
    workers: int
    wanted: int
    bounds_changed: bool
    unplaced: str | None
    failing: list[NodeFailure]
    busy: int
    queued: int
    running: int
    scheduled: int
    retrying: int
    dead: int
    added: int
    completed: int
    failed: int
    oldest_wait_seconds: float | None
    wait_p95_seconds: float | None
    """Of the runs that ended in the last five minutes; only a process that serves the web knows."""
    paused: bool
    paused_at: str | None
    reason: str | None


class RunsShape(Struct, frozen=True, kw_only=True):
    """What a node runs of one pool."""

    pool: str
    instances: int
    workers: int
    busy: int
    memory_bytes: int


class PoolFailure(Struct, frozen=True):
    """A pool whose processes a node cannot start."""

    pool: str
    error: str


class NodeShape(Struct, frozen=True, kw_only=True):
    """A live node."""

    name: str
    host: str
    pid: int
    started_at: str | None
    last_beat_at: str | None
    leads: bool
    status: Literal["serving", "draining", "drained", "stopping"]
    drained_at: str | None
    cores: float
    memory_bytes: int
    labels: tuple[str, ...]
    hosts: tuple[str, ...]
    runs: list[RunsShape]
    failing: list[PoolFailure]
    cpu_percent: float | None
    memory_used_bytes: int | None
    loop_lag_seconds: float | None
    store_seconds: float | None


class InstanceShape(Struct, frozen=True, kw_only=True):
    """A running member of a pool."""

    id: str
    pool: str
    node: str
    status: Literal["idle", "busy", "draining", "dead"]
    slots: int
    busy: int
    current_jobs: list[str]
    completed: int
    failed: int
    memory_bytes: int
    pid: int
    started_at: str | None
    last_beat_at: str | None
    cpu_percent: float | None
    lag_seconds: float | None


class ProgressShape(Struct, frozen=True, kw_only=True):
    """How far a running job says it is."""

    done: float
    total: float | None
    message: str | None
    at: str | None


class JobShape(Struct, frozen=True, kw_only=True):
    """A job, as lists have it."""

    id: str
    worker: str
    pool: str
    status: JobStatus
    priority: str
    cause: str
    attempt: int
    crashes: int
    error: str | None
    created_at: str | None
    run_at: str | None
    started_at: str | None
    ended_at: str | None
    instance: str | None
    cancelling: bool
    unique_key: str | None
    concurrency_key: str | None
    progress: ProgressShape | None
    payload: Any


class AttemptShape(Struct, frozen=True, kw_only=True):
    """An attempt that did not succeed."""

    number: int
    kind: str
    started_at: str | None
    ended_at: str | None
    instance: str | None
    error: str
    traceback: str | None


class LogShape(Struct, frozen=True, kw_only=True):
    """A line that a job logged."""

    at: str | None
    level: str
    message: str
    attempt: int


class WholeJobShape(JobShape, frozen=True, kw_only=True):
    """A job, whole."""

    fence: int
    trace_id: str | None
    result: Any
    why: str
    attempts: list[AttemptShape]
    logs: list[LogShape]


class WaitShape(Struct, frozen=True, kw_only=True):
    """One thing that a job waits for."""

    code: str
    by: str
    why: str
    since_at: str | None
    until_at: str | None


class ExplanationShape(Struct, frozen=True, kw_only=True):
    """Why a job is where it is."""

    id: str
    status: JobStatus
    text: str
    waits: list[WaitShape]


class StackShape(Struct, frozen=True, kw_only=True):
    """What a running job was doing."""

    job_id: str
    at: str | None
    instance: str
    pid: int
    stack: str


class EventShape(Struct, frozen=True, kw_only=True):
    """Something that happened."""

    seq: int
    at: str | None
    name: str
    subject: str
    message: str
    data: Any


class TokenShape(Struct, frozen=True, kw_only=True):
    """A token, without its secret."""

    id: str
    name: str
    role: Role
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None


class Glance(Struct, frozen=True, kw_only=True):
    """What everybody who looks sees first."""

    at: str | None
    store: str
    status: Literal["ok", "degraded", "failing"]
    problems: list[ProblemShape]
    leader: str | None
    nodes: list[str]
    pools: list[PoolShape]


class StatusShape(Glance, frozen=True, kw_only=True):
    """Everything at a glance."""

    workers: list[WorkerShape]


def status_shape(seen: Overview) -> StatusShape:
    """Everything at a glance."""
    return StatusShape(
        at=iso(seen.at),
        store=seen.store,
        status=seen.health.status,
        problems=[problem_shape(problem) for problem in seen.health.problems],
        leader=seen.leader,
        nodes=seen.nodes,
        pools=[pool_shape(pool) for pool in seen.pools],
        workers=[worker_shape(worker) for worker in seen.workers],
    )


def problem_shape(problem: Problem) -> ProblemShape:
    """Something that is wrong, and what to do about it from here."""
    return ProblemShape(
        severity=problem.severity,
        code=problem.code,
        subject=problem.subject,
        message=problem.message,
        remedy=remedy(problem),
    )


def worker_shape(worker: WorkerView) -> WorkerShape:
    """A worker."""
    config, state = worker.config, worker.state
    return WorkerShape(
        name=config.name,
        mode=config.execution_mode,
        schedule=worker.schedule,
        pool=config.pool,
        priority=config.priority.name.lower(),
        timeout_seconds=config.timeout_seconds,
        max_retries=config.max_retries,
        depends_on=config.depends_on,
        blocks=config.blocks,
        enabled=state.enabled,
        reason=state.reason,
        running=worker.stats.processing,
        queued=worker.stats.queued,
        scheduled=worker.stats.scheduled,
        retrying=worker.stats.retrying,
        dead=worker.stats.dead,
        failures=state.failures,
        last_run_at=iso(state.last_started),
        last_end_at=iso(state.last_ended),
        last_success_at=iso(state.last_success),
        last_error=state.last_error,
        next_due_at=iso(worker.next_due),
    )


def pool_shape(pool: PoolView, *, wait_p95: float | None = None) -> PoolShape:
    """A pool. `wait_p95`: of the last minutes, where that is known."""
    config, stats = pool.config, pool.stats
    return PoolShape(
        name=pool.name,
        kind=config.kind if config else None,
        min_workers=config.min_workers if config else None,
        max_workers=config.max_workers if config else None,
        instances=pool.instances,
        workers=pool.workers,
        wanted=pool.wanted,
        bounds_changed=pool.by_hand,
        unplaced=pool.unplaced,
        failing=[NodeFailure(node, error) for node, error in sorted(pool.failing.items())],
        busy=pool.busy,
        queued=stats.queued,
        running=stats.processing,
        scheduled=stats.scheduled,
        retrying=stats.retrying,
        dead=stats.dead,
        added=stats.added,
        completed=stats.completed,
        failed=stats.failed,
        oldest_wait_seconds=pool.oldest_wait_seconds,
        wait_p95_seconds=wait_p95,
        paused=pool.change.paused,
        paused_at=iso(pool.change.since),
        reason=pool.change.reason,
    )


def node_shape(node: NodeView) -> NodeShape:
    """A node."""
    return NodeShape(
        name=node.name,
        host=node.host,
        pid=node.pid,
        started_at=iso(node.started_at),
        last_beat_at=iso(node.last_beat_at),
        leads=node.leads,
        status=node.status,
        drained_at=iso(node.drained_at),
        cores=node.cores,
        memory_bytes=node.memory,
        labels=node.labels,
        hosts=node.pools,
        runs=[_runs(run) for run in node.runs],
        failing=[PoolFailure(pool, error) for pool, error in sorted(node.failing.items())],
        cpu_percent=node.cpu,
        memory_used_bytes=node.memory_used,
        loop_lag_seconds=node.lag,
        store_seconds=node.store_seconds,
    )


def _runs(run: NodePool) -> RunsShape:
    return RunsShape(
        pool=run.pool, instances=run.instances, workers=run.workers, busy=run.busy, memory_bytes=run.memory
    )


def instance_shape(instance: WorkerInstance) -> InstanceShape:
    """A running member of a pool."""
    return InstanceShape(
        id=instance.id,
        pool=instance.pool,
        node=instance.node,
        status=instance.status,
        slots=instance.slots,
        busy=len(instance.current_jobs),
        current_jobs=instance.current_jobs,
        completed=instance.completed,
        failed=instance.failed,
        memory_bytes=instance.memory,
        pid=instance.pid,
        started_at=iso(instance.started_at),
        last_beat_at=iso(instance.last_heartbeat),
        cpu_percent=instance.cpu,
        lag_seconds=instance.lag,
    )


def job_shape(job: Job[Any]) -> JobShape:
    """A job, as lists have it."""
    return JobShape(**_job(job))


def whole_job_shape(job: Job[Any], why: Explanation) -> WholeJobShape:
    """A job, whole."""
    attempts = [_attempt(attempt) for attempt in job.attempts]
    return WholeJobShape(
        **_job(job),
        fence=job.record.fence,
        trace_id=trace_id(job.record.trace),
        result=result_shape(job),
        why=why.text,
        attempts=attempts,
        logs=[log_shape(line) for line in job.logs],
    )


def log_shape(line: LogLine) -> LogShape:
    """A line that a job logged."""
    return LogShape(at=iso(line.at), level=line.level, message=line.message, attempt=line.attempt)


def _job(job: Job[Any]) -> dict[str, Any]:
    record = job.record
    return {
        "id": record.id,
        "worker": record.worker,
        "pool": record.pool,
        "status": record.status,
        "priority": record.priority.name.lower(),
        "cause": record.cause,
        "attempt": record.attempt,
        "crashes": record.crashes,
        "error": record.error,
        "created_at": iso(record.created_at),
        "run_at": iso(record.run_at),
        "started_at": iso(record.started_at),
        "ended_at": iso(record.ended_at),
        "instance": record.instance,
        "cancelling": record.cancelling,
        "unique_key": record.unique_key,
        "concurrency_key": record.key,
        "progress": _progress(job.progress),
        "payload": payload_shape(job),
    }


def payload_shape(job: Job[Any]) -> Any:
    """A job's arguments, as they may be shown."""
    shown = json_safe(job.payload)
    return shown if job.secrets is None else job.secrets.redact(shown)


def result_shape(job: Job[Any]) -> Any:
    """What a job's function returned."""
    return None if job.record.result is None else json_safe(plain(job.record.result))


def explanation_shape(why: Explanation) -> ExplanationShape:
    """Why a job is where it is."""
    waits = [
        WaitShape(code=wait.code, by=wait.by, why=wait.why, since_at=iso(wait.since), until_at=iso(wait.until))
        for wait in why.waits
    ]
    return ExplanationShape(id=why.job_id, status=why.status, text=why.text, waits=waits)


def stack_shape(seen: JobStack) -> StackShape:
    """What a running job was doing."""
    return StackShape(job_id=seen.job_id, at=iso(seen.at), instance=seen.instance, pid=seen.pid, stack=seen.stack)


def event_shape(event: Event) -> EventShape:
    """Something that happened."""
    return EventShape(
        seq=event.seq,
        at=iso(event.at),
        name=event.name,
        subject=event.subject,
        message=event.message,
        data=json_safe(event.data),
    )


def token_shape(token: Token) -> TokenShape:
    """A token, without its secret."""
    return TokenShape(
        id=token.id,
        name=token.name,
        role=token.role,
        created_at=iso(token.created_at),
        expires_at=iso(token.expires_at),
        revoked_at=iso(token.revoked_at),
    )


def _attempt(attempt: Attempt) -> AttemptShape:
    return AttemptShape(
        number=attempt.number,
        kind=attempt.kind,
        started_at=iso(attempt.started_at),
        ended_at=iso(attempt.ended_at),
        instance=attempt.instance,
        error=attempt.error,
        traceback=attempt.traceback,
    )


def _progress(progress: Progress | None) -> ProgressShape | None:
    if progress is None or progress.done is None:
        return None
    return ProgressShape(done=progress.done, total=progress.total, message=progress.message, at=iso(progress.at))


def json_safe(value: Any) -> Any:
    """A payload, which may hold what JSON has no word for."""
    try:
        return to_builtins(value, str_keys=True, enc_hook=repr)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(value)
