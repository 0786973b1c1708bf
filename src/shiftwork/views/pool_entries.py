"""A pool, its instances and its scaling, in the form that the contract gives them."""

from typing import Any, Literal

from shiftwork.core.beats import InstanceRecord, WorkerInstance
from shiftwork.core.scaling import Decision, PoolLoad
from shiftwork.core.stats import PoolStats


def instance_of(record: InstanceRecord, jobs: list[str], now: float) -> WorkerInstance:
    """Return an instance with the ids of the jobs that it runs."""
    beat = record.beat
    status: Literal["idle", "busy", "draining", "dead"] = "busy" if jobs else "idle"
    if record.expires_at <= now:
        status = "dead"
    elif beat.status == "draining":
        status = "draining"
    return WorkerInstance(
        id=beat.instance,
        pool=beat.pool,
        node=beat.node,
        status=status,
        current_jobs=jobs,
        started_at=beat.started_at,
        last_heartbeat=record.last_beat_at,
        slots=beat.slots,
        completed=beat.completed,
        failed=beat.failed,
        memory=beat.memory,
        pid=beat.pid,
        cpu=beat.cpu,
        lag=beat.lag,
    )


def dashboard_entry(stats: PoolStats, instances: list[WorkerInstance]) -> dict[str, Any]:
    """Return a pool as `get_pool_dashboard` shows it."""
    return {
        "workers": instances,
        "queue_depth": stats.queued,
        "completed": stats.completed,
        "failed": stats.failed,
        "dead": stats.dead,
    }


def scaling_entry(decision: Decision, seen: PoolLoad) -> dict[str, Any]:
    """Return a pool's scaling decision as `auto_scale` shows it."""
    return {
        "current": decision.current,
        "target": decision.target,
        "action": decision.action,
        "queue_depth": seen.queue_depth,
        "busy_workers": seen.busy_workers,
        "reason": decision.reason,
    }
