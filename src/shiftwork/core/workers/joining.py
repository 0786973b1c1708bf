"""What a node learns of the store that it joins: whether another app uses it, and what runs next."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.schedules.fire_times import pause, upcoming
from shiftwork.core.words import counted, in_words

# ── another app in the same store ────────────────────────────────────────────────────────────────────────────────────

MOST_LISTED: Final = 5
"""How many workers of an app are named in a message."""


class Tenant(Struct, frozen=True):
    """A live node that runs workers."""

    node: str
    workers: tuple[str, ...]
    expires_at: float
    """When its last lease ends unless it is renewed."""


def other_app(node: str, workers: Collection[str], instances: Sequence[InstanceRecord], now: float) -> Tenant | None:
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


def joining_refusal(tenant: Tenant, workers: Collection[str], *, namespace: str, store: str, now: float) -> str:
    """Return the message for the app that started later."""
    where = f"namespace {namespace!r} of {store}" if namespace else store
    return (
        f"{where} is in use by another app: node {tenant.node} runs {_some(tenant.workers)}, and none of the "
        f"workers of this app ({_some(workers)}). Give this app its own store or namespace: "
        'WorkerOrchestrator("sqlite:///other.db") or WorkerOrchestrator(…, namespace="…"), or set SHIFTWORK_NAMESPACE '
        "where it runs. "
        f"If that node is gone, its lease ends in {max(0.0, tenant.expires_at - now):.0f} s; start this app again then."
    )


def _some(names: Collection[str]) -> str:
    shown = sorted(names)[:MOST_LISTED]
    return ", ".join(shown) + (f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else "")


# ── the line that a node logs ────────────────────────────────────────────────────────────────────────────────────────

MOST_NEXT_RUNS: Final = 3
"""How many of the next runs are named."""


def start_line(store: str, workers: Iterable[WorkerConfig], states: Mapping[str, WorkerState], now: float) -> str:
    """Return what a node has found in its store and what runs next, in one line for the log.

    A program that is run twice within a minute does nothing the second time, because its intervals go on where they
    were; this line says so.
    """
    known = [(config, states.get(config.name) or WorkerState(worker=config.name)) for config in workers]
    kept = [config for config, state in known if state.last_started is not None]
    line = f"store {store}"
    if kept:
        going_on = "; intervals go on from their last runs" if any(map(_has_interval, kept)) else ""
        line += f" (kept from earlier: {counted(len(kept), 'worker')}{going_on})"
    due = sorted((at, config.name) for config, state in known for at in _next(config, state, now))
    if due:
        line += f"; next: {', '.join(f'{name} {_in(at - now)}' for at, name in due[:MOST_NEXT_RUNS])}"
    return line


def _next(config: WorkerConfig, state: WorkerState, now: float) -> list[float]:
    """Return when a worker runs next, if a schedule says so."""
    if not state.enabled or config.execution_mode is WorkerExecutionMode.TRIGGERED:
        return []
    if config.cron is not None:
        return upcoming(config, now, 1)
    return [now if state.last_ended is None else max(now, state.last_ended + pause(config))]


def _has_interval(config: WorkerConfig) -> bool:
    return config.execution_mode is not WorkerExecutionMode.TRIGGERED and config.cron is None


def _in(seconds: float) -> str:
    return "now" if seconds <= 0 else f"in {in_words(seconds)}"
