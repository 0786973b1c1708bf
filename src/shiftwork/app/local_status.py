"""What `get_status` returns: what this process knows, without asking the store."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import Any

from shiftwork.control.definitions import LocalRegistry
from shiftwork.core.model.workers import WorkerConfig, WorkerState
from shiftwork.core.schedules.fire_times import describe, upcoming
from shiftwork.core.schedules.timing import Rescheduled, rescheduled
from shiftwork.sentences import plain
from shiftwork.views.snapshot import next_due


def status_of(
    state: str,
    registry: LocalRegistry,
    *,
    runs: Iterable[tuple[str, float]],
    retrying: Container[str],
    changes: Mapping[str, Rescheduled],
    now: float,
) -> dict[str, Any]:
    """Return the status. `runs`: the worker and the start of every run here; `retrying`: workers with failed jobs;
    `changes`: the schedules that people changed.
    """
    started = [*runs]
    for name, at in started:
        known = registry.states.setdefault(name, WorkerState(worker=name))
        known.last_started = max(known.last_started or 0.0, at)
    running = Counter(name for name, _ in started)
    read = state != "stopped" or bool(registry.states)
    return {
        "state": state,
        "workers": len(registry.workers),
        "running": running.total(),
        "worker_states": {
            name: {"running": running[name] > 0, "retrying": name in retrying}
            | _worker_status(rescheduled(worker.config, changes.get(name)), registry.states.get(name), now, read=read)
            | {"rescheduled": name in changes and changes[name].timing is not None}
            for name, worker in registry.workers.items()
        },
    }


def _worker_status(config: WorkerConfig, known: WorkerState | None, now: float, *, read: bool) -> dict[str, Any]:
    """Return what is known of a worker. `read`: whether this process has read the states of workers in the store.

    Before that, whether it is enabled is unknown, unless the code says that it is not.
    """
    state = known or WorkerState(worker=config.name, enabled=config.enabled)
    return {
        "enabled": state.enabled if known or read or not config.enabled else None,
        "failures": state.failures,
        "last_run": state.last_started,
        "last_end": state.last_ended,
        "last_success": state.last_success,
        "last_error": state.last_error,
        "last_error_at": state.last_error_at,
        "schedule": plain(describe(config)),
        "next_due": _next_due(config, state, now),
    }


def _next_due(config: WorkerConfig, state: WorkerState, now: float) -> float | None:
    if not state.enabled:
        return None
    if config.cron is not None:
        return next(iter(upcoming(config, now, 1)), None)
    live = state.last_started is not None and state.last_started > (state.last_ended or 0.0)
    return next_due(config, cursor=None, state=state, live=live)
