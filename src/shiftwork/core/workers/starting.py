"""Whether a worker may be triggered now."""

from collections.abc import Collection, Mapping, Sequence
from shlex import quote
from typing import Any

from msgspec import Struct

from shiftwork.core.model.jobs import JobRecord, JobStatus
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.workers.admission import Lane


class Tenant(Struct, frozen=True):
    """A live node that runs workers."""

    node: str
    workers: tuple[str, ...]
    expires_at: float
    """When its last lease ends unless it is renewed."""


def stranger(node: str, workers: Collection[str], instances: Sequence[InstanceRecord], now: float) -> Tenant | None:
    """Return the live node that has no worker in common with this one; of several, the one that started first."""
    if not workers:
        return None
    tenants: dict[str, Tenant] = {}
    for known in sorted(instances, key=lambda known: (known.beat.started_at, known.beat.instance)):
        beat = known.beat
        if beat.node == node or not beat.workers or known.expires_at <= now:
            continue
        so_far = tenants.get(beat.node, Tenant(beat.node, (), known.expires_at))
        names = tuple(sorted({*so_far.workers, *beat.workers}))
        tenants[beat.node] = Tenant(beat.node, names, max(so_far.expires_at, known.expires_at))
    return next((tenant for tenant in tenants.values() if not {*tenant.workers} & {*workers}), None)


def refusal(tenant: Tenant, workers: Collection[str], *, namespace: str, store: str, now: float) -> str:
    """Return the message for the app that started later."""
    where = f"namespace {namespace!r} of {store}" if namespace else store
    return (
        f"{where} is in use by another app: node {tenant.node} runs {_some(tenant.workers)}, and none of the "
        f"workers of this app ({_some(workers)}). Give this app its own store or namespace: "
        'WorkerOrchestrator("sqlite:///other.db") or WorkerOrchestrator(…, namespace="…"), or set SHIFTWORK_NAMESPACE '
        "where it runs. "
        f"If that node is gone, its lease ends in {max(0.0, tenant.expires_at - now):.0f} s; start this app again then."
    )


_SHOWN = 5


def _some(names: Collection[str]) -> str:
    shown = sorted(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def runs_beside_itself(config: WorkerConfig, payload: Mapping[str, Any]) -> bool:
    """Return whether a run with this payload is work of its own, next to others of the same worker.

    A TRIGGERED worker does other work for each payload. Any other run would repeat the one that is running.
    """
    return config.execution_mode is WorkerExecutionMode.TRIGGERED and bool(payload)


def first_run_ended(job: JobRecord) -> bool:
    """Return whether a run of the job that counts has ended, well or not. One that was handed back does not count."""
    return not job.status.live or job.attempt > 1 or (job.attempt == 1 and job.status is not JobStatus.PROCESSING)


def trigger_refusal(config: WorkerConfig, lane: Lane | None, payload: Mapping[str, Any]) -> str | None:
    """Return why a worker in this state may not be triggered now; None if it may."""
    if lane is None:
        return None
    name = config.name
    if not lane.state.enabled:
        return f"worker {name} is disabled: {lane.state.reason}; enable it first: shiftwork enable {quote(name)}"
    if lane.running and not runs_beside_itself(config, payload):
        return f"worker {name} is already running; see: shiftwork jobs --worker {quote(name)} --status processing"
    return None
