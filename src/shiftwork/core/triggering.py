"""Whether a worker may be triggered now."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

from shiftwork.core.admission import Lane
from shiftwork.core.model import JobRecord, JobStatus, WorkerConfig, WorkerExecutionMode


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
