"""Instances and what they run: a pool's entries in the form that the contract gives them, all running jobs at one
moment, and the stack of one.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from msgspec import Struct

from shiftwork.core.model.jobs import JobRecord
from shiftwork.core.observing.beats import InstanceRecord, WorkerInstance
from shiftwork.core.observing.pool_stats import PoolStats
from shiftwork.core.scaling.size import Decision, PoolLoad
from shiftwork.views.overview import NodeView, PoolView


class Glance(Struct, frozen=True, kw_only=True):
    """What runs; its parts are read side by side."""

    at: float
    store: str
    leader: str | None
    nodes: list[NodeView]
    pools: list[PoolView]
    instances: list[WorkerInstance]
    """The instances of all pools; `current_jobs` lists only jobs that are also in `jobs`."""
    jobs: list[JobRecord]
    """The running jobs, longest running first; of very many, the newest. Jobs that were claimed ahead are left out."""
    more: bool = False
    """Whether there are jobs that were not read."""


class JobStack(Struct, frozen=True, kw_only=True):
    """What a running job was doing at one moment: its own stack first, then everything else in its process."""

    job_id: str
    at: float
    instance: str
    pid: int
    stack: str


def instance_of(record: InstanceRecord, jobs: Sequence[str], now: float) -> WorkerInstance:
    """Return an instance with the ids of the jobs that it holds, in the order in which it starts them."""
    beat = record.beat
    slots = max(beat.slots, beat.busy)
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
        current_jobs=list(jobs[:slots]),
        started_at=beat.started_at,
        last_heartbeat=record.last_beat_at,
        slots=slots,
        completed=beat.completed,
        failed=beat.failed,
        memory=beat.memory,
        pid=beat.pid,
        cpu=beat.cpu,
        lag=beat.lag,
    )


def held(jobs: Iterable[JobRecord]) -> dict[str, list[str]]:
    """Return the ids of processing jobs by instance, in the order in which the instance claimed them."""
    found: dict[str, list[str]] = {}
    for job in sorted(jobs, key=lambda job: (job.started_at or 0.0, job.fence)):
        found.setdefault(job.instance or "", []).append(job.id)
    return found


def place(instance: WorkerInstance) -> tuple[str, float, str]:
    """Return what instances are sorted by."""
    return instance["pool"], instance["started_at"], instance["id"]


def dashboard_entry(stats: PoolStats, instances: list[WorkerInstance]) -> dict[str, Any]:
    return {
        "workers": instances,
        "queue_depth": stats.queued,
        "completed": stats.completed,
        "failed": stats.failed,
        "dead": stats.dead,
    }


def scaling_entry(decision: Decision, seen: PoolLoad) -> dict[str, Any]:
    return {
        "current": decision.current,
        "target": decision.target,
        "action": decision.action,
        "queue_depth": seen.queue_depth,
        "busy_workers": seen.busy_slots,
        "reason": decision.reason,
    }
