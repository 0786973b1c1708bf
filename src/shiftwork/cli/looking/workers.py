"""`shiftwork workers`, `enable`, `disable`, `forget`."""

import click

from shiftwork.cli.connect import Source, with_source
from shiftwork.cli.terminal.formatting import ago
from shiftwork.cli.terminal.output import Cell, answer, aside, json_option, show_json, show_table
from shiftwork.core.model.workers import WorkerState
from shiftwork.core.workers.state import DISABLED_BY_HAND, is_failing
from shiftwork.views.overview import WorkerView
from shiftwork.views.shapes.system import worker_shape

_TITLES = (
    *("WORKER", "MODE", "SCHEDULE", "ENABLED", "RUNNING", "RETRYING", "FAILURES", "LAST RUN", "NEXT", "LAST ERROR"),
)
_LEAST = ("MODE", "RETRYING", "RUNNING", "FAILURES", "SCHEDULE", "LAST RUN")


@click.command()
@with_source
@json_option
def workers(source: Source, *, as_json: bool) -> None:
    """List every worker: schedule, whether it is enabled, last run, last error, next due.

    A schedule with a * was set by hand: shiftwork reschedule WORKER --reset restores the one in the code.
    """
    seen = source.look(lambda control: control.system.overview())
    if as_json:
        show_json({"workers": [worker_shape(worker) for worker in seen.workers]})
    elif seen.workers:
        show_table(_TITLES, [_row(worker, seen.at) for worker in seen.workers], least=_LEAST)
    else:
        aside(f"{seen.store} has no workers yet: `shiftwork run` publishes those of an app")


@click.command()
@click.argument("worker")
@with_source
@json_option
def enable(worker: str, source: Source, *, as_json: bool) -> None:
    """Enable a worker everywhere, and reset its count of failures."""
    source.ask(lambda control: control.workers.enable(worker), create=True)
    answer(
        {"worker": worker, "enabled": True, "reason": None},
        f"worker {worker} is enabled; its count of failures is reset",
        as_json=as_json,
    )


@click.command()
@click.argument("worker")
@click.option("--reason", default=DISABLED_BY_HAND, help="The reason, shown wherever the worker is.")
@with_source
@json_option
def disable(worker: str, reason: str, source: Source, *, as_json: bool) -> None:
    """Disable a worker everywhere: it does not start, and its queued jobs wait. Running jobs continue."""
    source.ask(lambda control: control.workers.disable(worker, reason), create=True)
    answer(
        {"worker": worker, "enabled": False, "reason": reason},
        f"worker {worker} is disabled: {reason}; running jobs continue, queued ones wait",
        as_json=as_json,
    )


@click.command()
@click.argument("worker")
@with_source
@json_option
def forget(worker: str, source: Source, *, as_json: bool) -> None:
    """Delete what is kept about a worker that is gone for good: its definition, state and schedule.

    No live node may have it, no stored schedule run it, and no job of it be live. Its ended jobs stay.
    """
    source.ask(lambda control: control.workers.forget(worker))
    answer(
        {"worker": worker},
        f"worker {worker} is forgotten; its ended jobs stay until they are pruned or discarded",
        as_json=as_json,
    )


def _row(worker: WorkerView, now: float) -> list[Cell]:
    config, state = worker.config, worker.state
    return [
        config.name,
        config.execution_mode,
        worker.schedule.removesuffix(", counted from the end of the last run") + ("*" if worker.rescheduled else ""),
        "yes" if state.enabled else "NO",
        worker.stats.processing,
        worker.stats.retrying,
        state.failures,
        ago(state.last_started, now),
        _due(worker, now),
        _wrong(state, now) if worker.known else "no running node has it",
    ]


def _wrong(state: WorkerState, now: float) -> str | None:
    """Return why a worker is disabled, or the last error and when it was; a success since then is said as well."""
    if not state.enabled and state.reason:
        return f"disabled: {state.reason}"
    if state.last_error is None:
        return None
    since = "" if is_failing(state) else ", succeeded since"
    return f"{ago(state.last_error_at, now)}{since}: {state.last_error}"


def _due(worker: WorkerView, now: float) -> str | None:
    if worker.next_due is None:
        return "after the retry" if worker.stats.retrying and worker.config.cron is None else None
    return ago(worker.next_due, now) if worker.next_due > now else "now"
