"""Sentry: exceptions from the process that ran the job, dead jobs that raised none, and check-ins of schedules.

Every process that runs jobs imports the app. So `sentry_sdk.init(…)` and `track(app)` belong into its module.
"""

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from uuid import NAMESPACE_URL, uuid5

import sentry_sdk
from sentry_sdk.crons import capture_checkin
from sentry_sdk.integrations.logging import ignore_logger
from sentry_sdk.utils import event_from_exception

from shiftwork.app import WorkerOrchestrator
from shiftwork.core.jobs.retry import EndKind, backoff
from shiftwork.core.model.event import Event
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.runtime.context.context import Context

__all__ = ["track"]

if TYPE_CHECKING:
    from sentry_sdk.types import Event as SentryEvent

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))
"""Those of an interval that Sentry knows and that have a fixed length, the longest first."""
_LONGEST_SLUG: Final = 50
_MINUTE: Final = 60.0


def track(app: WorkerOrchestrator, *, retried: bool = False, monitors: bool = True) -> None:
    """Report to Sentry what goes wrong in the jobs of an app.

    An exception is reported if it makes the job dead; with `retried` also, as a warning, if the job is tried again.
    With `monitors`, each run of a worker with a schedule is a check-in of the cron monitor with its name.
    """
    tracker = Tracker(app, retried=retried, monitors=monitors)
    app.around_job(tracker.around)
    app.on("job.dead", tracker.died)
    ignore_logger("shiftwork.runs")  # it logs what is reported here


class Tracker:
    """Reports to the client of `sentry_sdk.init`."""

    def __init__(self, app: WorkerOrchestrator, *, retried: bool, monitors: bool) -> None:
        self._app = app
        self._retried = retried
        self._monitors = monitors

    def around(self, ctx: Context) -> Iterator[None]:
        """Run a job in a scope of its own."""
        with sentry_sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            _name(scope, ctx.worker, ctx.job_id)
            scope.set_tag("attempt", ctx.attempt)
            scope.set_context("job", {"attempt": ctx.attempt, "fence": ctx.fence, "last_error": ctx.last_error})
            scope.add_event_processor(partial(_without_secrets, redact=ctx.redact))
            sentry_sdk.add_breadcrumb(category="shiftwork", message=f"attempt {ctx.attempt} of {ctx.worker.name}")
            self._check_in(ctx.worker, ctx.job_id, "in_progress")
            try:
                yield
            except BaseException as error:
                self._failed(ctx, error)
                raise
            self._check_in(ctx.worker, ctx.job_id, "ok")

    def died(self, event: Event) -> None:
        """Report a dead job whose last run raised nothing that `around` could see: a crash, a timeout, a payload."""
        if event.data.get("kind") == EndKind.RAISED:
            return
        worker = self._app.registered()[0].get(event.data["worker"]) or WorkerConfig(name=event.data["worker"])
        with sentry_sdk.isolation_scope() as scope:
            scope.clear_breadcrumbs()
            _name(scope, worker, event.subject)
            scope.set_tag("end", event.data.get("kind"))
            # One issue for each worker and way to die, not for each job.
            scope.fingerprint = ["shiftwork", worker.name, str(event.data.get("kind"))]
            sentry_sdk.capture_message(event.message, level="error")
            self._check_in(worker, event.subject, "error")

    def _failed(self, ctx: Context, error: BaseException) -> None:
        if ctx.cancelled or isinstance(error, asyncio.CancelledError):
            return  # it was asked to stop, and did
        follows = ctx.what_follows(error)
        if follows == "dead" or (follows == "retry" and self._retried):
            event, hint = event_from_exception(
                error,
                client_options=sentry_sdk.get_client().options,
                mechanism={"type": "shiftwork", "handled": False},
            )
            event["level"] = "error" if follows == "dead" else "warning"
            sentry_sdk.capture_event(event, hint=hint)
        if follows == "dead":
            self._check_in(ctx.worker, ctx.job_id, "error")

    def _check_in(self, worker: WorkerConfig, job_id: str, status: Literal["in_progress", "ok", "error"]) -> None:
        """Send how the run of a schedule goes. All attempts of a job, in whatever process, are one check-in."""
        if not self._monitors or worker.execution_mode is not WorkerExecutionMode.SCHEDULED:
            return
        monitor = monitor_of(worker)
        if monitor is not None:
            capture_checkin(
                monitor_slug=re.sub(r"[^a-z0-9_-]+", "-", worker.name.lower())[:_LONGEST_SLUG],
                check_in_id=uuid5(NAMESPACE_URL, f"shiftwork:{self._app.control.store.url}:{job_id}").hex,
                status=status,
                monitor_config=cast("Any", monitor),  # a TypedDict that sentry_sdk does not export
            )


def monitor_of(worker: WorkerConfig) -> dict[str, Any] | None:
    """Return the settings of a worker's monitor; None for an interval that Sentry cannot monitor.

    Sentry counts intervals in whole minutes. A run may take as long as all its attempts and the waits between them.
    """
    schedule: dict[str, Any]
    if worker.cron is not None:
        schedule = {"type": "crontab", "value": worker.cron}
    else:
        seconds = worker.interval_seconds or 0.0
        unit = next(((name, size) for name, size in _UNITS if seconds >= size and seconds % size == 0), None)
        if unit is None:
            return None
        schedule = {"type": "interval", "value": int(seconds // unit[1]), "unit": unit[0]}
    monitor: dict[str, Any] = {"schedule": schedule, "timezone": worker.timezone or "UTC"}
    if worker.timeout_seconds is not None:
        waits = sum(backoff(worker.retry, attempt, 0.5) for attempt in range(1, worker.max_retries + 1))
        monitor["max_runtime"] = ceil((worker.timeout_seconds * (worker.max_retries + 1) + waits) / _MINUTE)
    return monitor


def _name(scope: sentry_sdk.Scope, worker: WorkerConfig, job_id: str) -> None:
    scope.set_transaction_name(worker.name, source="task")
    for tag, value in (("job", job_id), ("worker", worker.name), ("pool", worker.pool)):
        scope.set_tag(tag, value)


def _without_secrets(event: "SentryEvent", _hint: Mapping[str, Any], redact: Callable[[str], str]) -> "SentryEvent":
    """Hide the job's secret arguments: Sentry reads the local variables of every frame."""
    for part in ("exception", "breadcrumbs", "logentry", "message", "extra"):
        if part in event:
            event[part] = _redacted(event[part], redact)
    return event


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(one, redact) for key, one in value.items()}
    return [_redacted(one, redact) for one in value] if isinstance(value, list | tuple) else value
