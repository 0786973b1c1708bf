"""What `--json` prints. `docs/cli.md` tells the shapes, and a test holds it to them.

An instant is an ISO 8601 string in UTC, of fixed length, named `at` or with `_at` at the end; a length of time is a
number of seconds, named with `_seconds` at the end; what is not there is null. Fields may be added; none is taken away.
"""

from typing import Any

import msgspec
from msgspec import to_builtins

from windlass.cli.remedies import remedy
from windlass.cli.words import iso
from windlass.codec import plain
from windlass.core.health import Problem
from windlass.core.model import Attempt, Event, Progress
from windlass.operations import Explanation
from windlass.views import NodeView, Overview, PoolView, WorkerView
from windlass.worker import Job


def status_shape(seen: Overview) -> dict[str, Any]:
    """Everything at a glance."""
    return {
        "at": iso(seen.at),
        "store": seen.store,
        "status": seen.health.status,
        "problems": [problem_shape(problem) for problem in seen.health.problems],
        "leader": seen.leader,
        "nodes": seen.nodes,
        "pools": [pool_shape(pool) for pool in seen.pools],
        "workers": [worker_shape(worker) for worker in seen.workers],
    }


def problem_shape(problem: Problem) -> dict[str, Any]:
    """Something that is wrong, and what to do about it from here."""
    return {
        "severity": problem.severity,
        "code": problem.code,
        "subject": problem.subject,
        "message": problem.message,
        "remedy": remedy(problem),
    }


def worker_shape(worker: WorkerView) -> dict[str, Any]:
    """A worker."""
    config, state = worker.config, worker.state
    return {
        "name": config.name,
        "mode": config.execution_mode,
        "schedule": worker.schedule,
        "pool": config.pool,
        "priority": config.priority.name.lower(),
        "timeout_seconds": config.timeout_seconds,
        "max_retries": config.max_retries,
        "depends_on": config.depends_on,
        "blocks": config.blocks,
        "enabled": state.enabled,
        "reason": state.reason,
        "running": worker.stats.processing,
        "queued": worker.stats.queued,
        "scheduled": worker.stats.scheduled,
        "retrying": worker.stats.retrying,
        "dead": worker.stats.dead,
        "failures": state.failures,
        "last_run_at": iso(state.last_started),
        "last_end_at": iso(state.last_ended),
        "last_success_at": iso(state.last_success),
        "last_error": state.last_error,
        "next_due_at": iso(worker.next_due),
    }


def pool_shape(pool: PoolView) -> dict[str, Any]:
    """A pool."""
    config, stats = pool.config, pool.stats
    return {
        "name": pool.name,
        "kind": config.kind if config else None,
        "min_workers": config.min_workers if config else None,
        "max_workers": config.max_workers if config else None,
        "instances": pool.instances,
        "workers": pool.workers,
        "wanted": pool.wanted,
        "bounds_changed": pool.by_hand,
        "unplaced": pool.unplaced,
        "failing": [{"node": node, "error": error} for node, error in sorted(pool.failing.items())],
        "busy": pool.busy,
        "queued": stats.queued,
        "running": stats.processing,
        "scheduled": stats.scheduled,
        "retrying": stats.retrying,
        "dead": stats.dead,
        "added": stats.added,
        "completed": stats.completed,
        "failed": stats.failed,
        "oldest_wait_seconds": pool.oldest_wait_seconds,
        "paused": pool.change.paused,
        "paused_at": iso(pool.change.since),
        "reason": pool.change.reason,
    }


def node_shape(node: NodeView) -> dict[str, Any]:
    """A node."""
    return {
        "name": node.name,
        "host": node.host,
        "pid": node.pid,
        "started_at": iso(node.started_at),
        "last_beat_at": iso(node.last_beat_at),
        "leads": node.leads,
        "status": node.status,
        "drained_at": iso(node.drained_at),
        "cores": node.cores,
        "memory_bytes": node.memory,
        "labels": node.labels,
        "hosts": node.pools,
        "runs": [
            {
                "pool": run.pool,
                "instances": run.instances,
                "workers": run.workers,
                "busy": run.busy,
                "memory_bytes": run.memory,
            }
            for run in node.runs
        ],
        "failing": [{"pool": pool, "error": error} for pool, error in sorted(node.failing.items())],
    }


def job_shape(job: Job[Any]) -> dict[str, Any]:
    """A job, as lists have it."""
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
        "progress": _progress(record.progress),
        "payload": _plain(job.payload),
    }


def whole_job_shape(job: Job[Any], why: Explanation) -> dict[str, Any]:
    """A job, whole."""
    return job_shape(job) | {
        "result": result_shape(job),
        "why": why.text,
        "attempts": [_attempt(attempt) for attempt in job.attempts],
    }


def result_shape(job: Job[Any]) -> Any:
    """What a job's function returned."""
    return None if job.record.result is None else _plain(plain(job.record.result))


def explanation_shape(why: Explanation) -> dict[str, Any]:
    """Why a job is where it is."""
    waits = [
        {"code": wait.code, "by": wait.by, "why": wait.why, "since_at": iso(wait.since), "until_at": iso(wait.until)}
        for wait in why.waits
    ]
    return {"id": why.job_id, "status": why.status, "text": why.text, "waits": waits}


def event_shape(event: Event) -> dict[str, Any]:
    """Something that happened."""
    return {
        "seq": event.seq,
        "at": iso(event.at),
        "name": event.name,
        "subject": event.subject,
        "message": event.message,
        "data": _plain(event.data),
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "kind": attempt.kind,
        "started_at": iso(attempt.started_at),
        "ended_at": iso(attempt.ended_at),
        "instance": attempt.instance,
        "error": attempt.error,
        "traceback": attempt.traceback,
    }


def _progress(progress: Progress | None) -> dict[str, Any] | None:
    if progress is None:
        return None
    return {"done": progress.done, "total": progress.total, "message": progress.message, "at": iso(progress.at)}


def _plain(value: Any) -> Any:
    """A payload, which may hold what JSON has no word for."""
    try:
        return to_builtins(value, str_keys=True, enc_hook=repr)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(value)
