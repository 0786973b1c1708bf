"""A job, as Django's task API shows it: a `TaskResult`."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from django.conf import settings

from shiftwork.contrib.django.task_api import Task, TaskError, TaskResult, TaskResultStatus
from shiftwork.core.jobs.retry import EndKind
from shiftwork.core.model.jobs import Attempt, JobStatus
from shiftwork.core.values.envelopes import revealed
from shiftwork.handles.job import Job
from shiftwork.handles.plain_values import plain

_STATUS: Final = {
    JobStatus.PROCESSING: TaskResultStatus.RUNNING,
    JobStatus.COMPLETED: TaskResultStatus.SUCCESSFUL,
    JobStatus.DEAD: TaskResultStatus.FAILED,
    JobStatus.CANCELLED: TaskResultStatus.FAILED,
}
"""All other jobs wait for their first or next attempt."""
_CLASS_WITHOUT_EXCEPTION: Final = {
    EndKind.TIMED_OUT: "builtins.TimeoutError",
    EndKind.CANCELLED: "asyncio.CancelledError",
}
"""What stands for the end of an attempt that raised nothing; all others are a `JobFailedError`."""
_HANDED_BACK: Final = frozenset({EndKind.DRAINED, EndKind.SNOOZED})
"""Such attempts have not failed."""
_FRAME: Final = re.compile(r'^  File ".*\n(?:    .*\n)*', re.MULTILINE)
_CLASS_NAME: Final = re.compile(r"[^\W\d]\w*(?:\.\w+)*")


def new_result(task: Task, args: Any, kwargs: Any, alias: str) -> TaskResult:
    """Return the result of a task that is about to be added. Raises `TypeError` for arguments that JSON cannot hold."""
    return TaskResult(
        task=task,
        id="",
        status=TaskResultStatus.READY,
        enqueued_at=None,
        started_at=None,
        last_attempted_at=None,
        finished_at=None,
        args=list(args),
        kwargs=dict(kwargs),
        backend=alias,
        errors=[],
        worker_ids=[],
    )


def result_of(job: Job[Any], task: Task, alias: str) -> TaskResult:
    """Return the result of a task whose job is in the store."""
    payload, runs = job.payload, list(_runs(job))
    changes = {"priority": payload.get("priority", 0), "run_after": payload.get("run_after"), "queue_name": job.pool}
    result = new_result(replace(task, backend=alias, **changes), payload["args"], payload["kwargs"], alias)
    first = job.history[0].started_at if job.history else job.started_at
    update(
        result,
        id=job.id,
        status=_STATUS.get(job.status, TaskResultStatus.READY),
        enqueued_at=local_time(job.created_at),
        started_at=local_time(first),
        last_attempted_at=local_time(job.started_at),
        finished_at=local_time(job.ended_at),
        errors=[_error(attempt) for attempt in job.history if attempt.kind not in _HANDED_BACK],
        worker_ids=runs,
    )
    if job.status is JobStatus.COMPLETED and job.record.result is not None:
        update(result, _return_value=plain(revealed(job.record.result)))
    return result


def update(result: TaskResult, **values: Any) -> None:
    """Change a result in place, which is frozen for everyone but its backend."""
    for name, value in values.items():
        object.__setattr__(result, name, value)


def local_time(instant: float | None) -> datetime | None:
    """Return an instant as Django shows it: with a time zone, unless `USE_TZ` is off."""
    if instant is None:
        return None
    return datetime.fromtimestamp(instant, UTC if settings.USE_TZ else None)


def class_path(kind: type) -> str:
    """Return where the class of an exception is."""
    return f"{kind.__module__}.{kind.__qualname__}"


def _runs(job: Job[Any]) -> Iterator[str]:
    """Yield the instance of each attempt."""
    for attempt in job.history:
        yield attempt.instance or ""
    recorded = bool(job.history) and job.history[-1].started_at >= (job.started_at or 0.0)
    if job.started_at is not None and not recorded:
        yield job.instance or ""


def _error(attempt: Attempt) -> TaskError:
    trace = attempt.traceback or ""
    named = _CLASS_NAME.match(_last_words(trace)) if attempt.kind == EndKind.RAISED else None
    if named is None:
        path = _CLASS_WITHOUT_EXCEPTION.get(EndKind(attempt.kind), "shiftwork.errors.JobFailedError")
    else:
        path = named[0] if "." in named[0] else f"builtins.{named[0]}"
    return TaskError(exception_class_path=path, traceback=trace or f"{attempt.error}\n")


def _last_words(trace: str) -> str:
    """Return a traceback from the line on that names the exception."""
    frames = list(_FRAME.finditer(trace))
    return trace[frames[-1].end() :] if frames else trace
