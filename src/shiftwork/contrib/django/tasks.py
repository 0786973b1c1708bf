"""A backend for Django's tasks (`django.tasks`, or the backport `django_tasks`), which shiftwork runs.

TASKS = {"default": {"BACKEND": "shiftwork.contrib.django.tasks.ShiftworkBackend"}}
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from django.apps import apps
from django.core.checks import CheckMessage, Error
from django.db import connections
from django.utils import timezone
from django.utils.asyncio import async_unsafe

from shiftwork.contrib.django.project_app import OUR_APP, project_app
from shiftwork.contrib.django.site_settings import SETTING, site_settings
from shiftwork.contrib.django.task_api import (
    BaseTaskBackend,
    InvalidTask,
    Task,
    TaskResult,
    TaskResultDoesNotExist,
    task_enqueued,
)
from shiftwork.contrib.django.task_results import local_time, new_result, result_of, update
from shiftwork.contrib.django.task_workers import TaskWorkers
from shiftwork.control.definitions import DEFAULT_POOL
from shiftwork.core.model.jobs import JobPriority
from shiftwork.errors import ConfigurationError, UnknownJobError
from shiftwork.handles.job import Job

DATABASE: Final = "database"
"""The one option of the backend that is not an option of its workers."""
_HIGH_ABOVE: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ShiftworkTask(Task):
    """A task that may have worker options of its own: `@task(options={"timeout_seconds": 600})`."""

    options: Mapping[str, Any] = field(default_factory=dict, hash=False)


class ShiftworkBackend(BaseTaskBackend):
    """Adds tasks to the store of the project's app. A queue is a pool of the same name.

    `OPTIONS` are worker options for all tasks of the backend, and `database`: the alias of the database through whose
    connection tasks are added, so that they exist once its transaction commits. The store must be in it.
    """

    task_class = ShiftworkTask
    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        self._database = self.options.get(DATABASE)
        self._worker_options = {name: value for name, value in self.options.items() if name != DATABASE}

    def validate_task(self, task: Task) -> None:
        """Register the task, so that this process can run it. Raises `InvalidTask` if it cannot be run."""
        super().validate_task(task)
        if task.queue_name not in _pools():
            message = f'Queue {task.queue_name!r} has no pool: add it to {SETTING}["POOLS"].'
            raise InvalidTask(message)
        try:
            self._worker(task)
        except ConfigurationError as error:
            raise InvalidTask(str(error)) from error

    def _worker(self, task: Task) -> Any:
        pools = _pools()
        return _workers().worker(task, self.alias, (self.queues or pools) & pools, self._worker_options)

    @async_unsafe("A task is added from a coroutine by `await task.aenqueue(…)`.")
    def enqueue(self, task: Task, args: Any, kwargs: Any) -> TaskResult:
        """Add a job that runs the task."""
        self.validate_task(task)
        result = new_result(task, args, kwargs, self.alias)
        job = self._add(task, {"args": result.args, "kwargs": result.kwargs})
        update(result, id=job.id, enqueued_at=local_time(job.created_at))
        task_enqueued.send(type(self), task_result=result)
        return result

    def _add(self, task: Task, payload: dict[str, Any]) -> Job[Any]:
        if task.priority:
            payload["priority"] = task.priority
        when = task.run_after
        if when is not None:
            when = payload["run_after"] = when if timezone.is_aware(when) else timezone.make_aware(when)
        worker = self._worker(task).with_options(priority=_priority(task.priority), run_at=when)
        job: Job[Any] = (
            worker.enqueue_blocking(**payload)
            if self._database is None
            else worker.enqueue_with_blocking(connections[self._database], **payload)
        )
        return job

    @async_unsafe("A coroutine reads a result by `await task.aget_result(…)` or `await result.arefresh()`.")
    def get_result(self, result_id: str) -> TaskResult:
        """Return the result of a task. Raises `TaskResultDoesNotExist`, also once its job is pruned."""
        try:
            job = project_app().blocking.get_job(str(result_id))
        except UnknownJobError:
            raise TaskResultDoesNotExist(result_id) from None
        known = _workers().task(job.worker)
        if known is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(job, *known)

    def check(self, **_: Any) -> Iterator[CheckMessage]:
        """Report what would keep tasks of this backend from being run."""
        if not apps.is_installed(OUR_APP):
            hint = f"Add {OUR_APP!r} to INSTALLED_APPS."
            yield Error(
                f'TASKS["{self.alias}"] uses shiftwork, which is not installed.', hint=hint, id="shiftwork.E004"
            )
        for queue in sorted(self.queues - _pools()):
            yield Error(
                f'TASKS["{self.alias}"]: the queue {queue!r} has no pool.',
                hint=f'Add it to {SETTING}["POOLS"], or remove it from QUEUES.',
                id="shiftwork.E003",
            )


@cache
def _workers() -> TaskWorkers:
    return TaskWorkers(project_app())


def _pools() -> set[str]:
    return {DEFAULT_POOL, *site_settings().pools}


def _priority(priority: int) -> JobPriority:
    """Return which of shiftwork's four priorities comes nearest to one of Django's, from -100 to 100."""
    if priority < 0:
        return JobPriority.LOW
    if priority == 0:
        return JobPriority.NORMAL
    return JobPriority.HIGH if priority <= _HIGH_ABOVE else JobPriority.CRITICAL
