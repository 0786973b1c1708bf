"""Django's tasks as workers. Each is registered when it is defined, and looked up by its name when it runs.

A job carries the name of its worker and the arguments. A name that comes out of the store is never imported.
"""

import asyncio
import os
import socket
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from inspect import iscoroutinefunction
from threading import RLock
from typing import Any, Final

from django.utils import timezone
from msgspec import Struct

from shiftwork.app import WorkerOrchestrator
from shiftwork.contrib.django.task_api import (
    Task,
    TaskContext,
    TaskError,
    TaskResult,
    TaskResultStatus,
    normalize_json,
    task_finished,
    task_started,
)
from shiftwork.contrib.django.task_results import class_path, new_result, update
from shiftwork.core.jobs.retry import GiveUp, Snooze, error_names_of, refusal
from shiftwork.handles.worker import Worker
from shiftwork.runtime.context.context import Context

DEFAULT_ALIAS: Final = "default"
DEFAULTS: Final[Mapping[str, Any]] = {"max_retries": 0}
"""A task is written for any backend, and those of Django run it once: retries have to be asked for."""


class TaskPlace(Struct, frozen=True):
    """Where a task can be sent: which backend, and which of its queues."""

    alias: str
    queue: str


class TaskWorkers:
    """The workers of Django's tasks, in one app."""

    def __init__(self, app: WorkerOrchestrator) -> None:
        self._app = app
        self._workers: dict[tuple[str, TaskPlace], Worker[Any, Any]] = {}
        self._tasks: dict[str, tuple[Task, str]] = {}
        """The task and the alias of its backend, by the name of the worker."""
        self._registering = RLock()

    def worker(self, task: Task, alias: str, queues: Iterable[str], options: Mapping[str, Any]) -> Worker[Any, Any]:
        """Return the worker of a task in its queue. The first time, register it for every queue of its backend.

        All queues at once: the process that runs jobs does not see which one another process will choose.
        """
        path = task.module_path
        with self._registering:
            known = self._workers.get((path, TaskPlace(alias, task.queue_name)))
            if known is None:
                for queue in (task.queue_name, *sorted(set(queues) - {task.queue_name})):
                    self._register(task, TaskPlace(alias, queue), options)
                known = self._workers[path, TaskPlace(alias, task.queue_name)]
            return known

    def _register(self, task: Task, place: TaskPlace, options: Mapping[str, Any]) -> None:
        if (task.module_path, place) in self._workers:
            return
        name = task.module_path if place.alias == DEFAULT_ALIAS else f"{place.alias}/{task.module_path}"
        name = name if name not in self._tasks else f"{name}:{place.queue}"
        chosen: Any = {**DEFAULTS, **options, **getattr(task, "options", {})}
        function = _coroutine(task, place) if iscoroutinefunction(task.func) else _plain(task, place)
        self._workers[task.module_path, place] = self._app.task(name=name, pool=place.queue, **chosen)(function)
        self._tasks[name] = task, place.alias

    def task(self, worker: str) -> tuple[Task, str] | None:
        """Return the task that a worker runs, and the alias of its backend; None if this process has no such task."""
        return self._tasks.get(worker)


# ── one run ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _plain(task: Task, place: TaskPlace) -> Callable[..., Any]:
    def run(
        ctx: Context, args: list[Any], kwargs: dict[str, Any], priority: int = 0, run_after: datetime | None = None
    ) -> Any:
        sent = _sent(task, place, priority, run_after)
        with _run(ctx, new_result(sent, args, kwargs, place.alias)) as result:
            return _kept(ctx, result, task.func(*_context(task, result), *args, **kwargs))

    return run


def _coroutine(task: Task, place: TaskPlace) -> Callable[..., Any]:
    async def run(
        ctx: Context, args: list[Any], kwargs: dict[str, Any], priority: int = 0, run_after: datetime | None = None
    ) -> Any:
        sent = _sent(task, place, priority, run_after)
        with _run(ctx, new_result(sent, args, kwargs, place.alias)) as result:
            return _kept(ctx, result, await task.func(*_context(task, result), *args, **kwargs))

    return run


def _sent(task: Task, place: TaskPlace, priority: int, run_after: datetime | None) -> Task:
    """Return the task as it was when its job was added."""
    return replace(task, backend=place.alias, queue_name=place.queue, priority=priority, run_after=run_after)


def _context(task: Task, result: TaskResult) -> tuple[TaskContext, ...]:
    return (TaskContext(task_result=result),) if task.takes_context else ()


@contextmanager
def _run(ctx: Context, result: TaskResult) -> Iterator[TaskResult]:
    """Send Django's signals about a run: when it begins, and when it ends for good."""
    sender, now = type(result.task.get_backend()), timezone.now()
    update(
        result,
        id=ctx.job_id,
        status=TaskResultStatus.RUNNING,
        started_at=now,
        last_attempted_at=now,
        worker_ids=[f"{socket.gethostname()}-{os.getpid()}"] * ctx.attempt,
    )
    task_started.send(sender=sender, task_result=result)
    try:
        yield result
    except BaseException as error:
        if _is_last(ctx, error):
            trace = "".join(traceback.format_exception(error))
            failure = TaskError(exception_class_path=class_path(type(error)), traceback=trace)
            update(result, status=TaskResultStatus.FAILED, errors=[failure], finished_at=timezone.now())
            task_finished.send(sender=sender, task_result=result)
        raise
    update(result, status=TaskResultStatus.SUCCESSFUL, finished_at=timezone.now())
    task_finished.send(sender=sender, task_result=result)


def _is_last(ctx: Context, error: BaseException) -> bool:
    """Return whether no other attempt follows this error. A run that is stopped from outside may be run again."""
    if isinstance(error, Snooze | asyncio.CancelledError):
        return False
    spent = ctx.attempt > ctx.worker.max_retries
    return spent or isinstance(error, GiveUp) or refusal(ctx.worker.retry, error_names_of(error)) is not None


def _kept(ctx: Context, result: TaskResult, returned: Any) -> Any:
    """Return what a task returned, as JSON has it. If JSON cannot hold it, another attempt would not help."""
    try:
        value = normalize_json(returned)
    except TypeError as error:
        if ctx.attempt > ctx.worker.max_retries:
            raise
        message = f"the task has returned what JSON cannot hold: {error}"
        raise GiveUp(message) from error
    update(result, _return_value=value)
    return value
