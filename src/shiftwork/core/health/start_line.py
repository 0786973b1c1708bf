"""What a node says when it starts: what it has found in its store, and what runs next.

A program that is run twice within a minute does nothing the second time, because its intervals go on where they were.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode, WorkerState
from shiftwork.core.schedules.fire_times import pause, upcoming
from shiftwork.core.words import counted, in_words

MOST_NAMED: Final = 3
"""How many of the next runs are named."""


def start_line(store: str, workers: Iterable[WorkerConfig], states: Mapping[str, WorkerState], now: float) -> str:
    """Return one line for the log."""
    known = [(config, states.get(config.name) or WorkerState(worker=config.name)) for config in workers]
    kept = [config for config, state in known if state.last_started is not None]
    line = f"store {store}"
    if kept:
        going_on = "; intervals go on from their last runs" if any(map(_has_interval, kept)) else ""
        line += f" (kept from earlier: {counted(len(kept), 'worker')}{going_on})"
    due = sorted((at, config.name) for config, state in known for at in _next(config, state, now))
    if due:
        line += f"; next: {', '.join(f'{name} {_in(at - now)}' for at, name in due[:MOST_NAMED])}"
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
