"""Tasks for the tests of the Django backend: it takes functions of a module only."""

from typing import Any

from shiftwork.contrib.django.task_api import TaskContext
from tests.contrib.django_place import task

seen: list[Any] = []


class OddError(Exception):
    pass


@task
def add(*args: int, **kwargs: int) -> int:
    return sum(args) + sum(kwargs.values())


@task
async def add_async(a: int, b: int) -> int:
    return a + b


@task
def fail(words: str) -> None:
    raise OddError(words)


@task
def leave() -> None:
    raise SystemExit("bye")


@task
def return_a_function() -> Any:
    seen.append("ran")
    return seen.append


@task(takes_context=True, options={"max_retries": 1})
def fail_once(context: TaskContext) -> list[Any]:
    if context.attempt == 1:
        raise ValueError("at first")
    return [context.attempt, context.task_result.id, context.task_result.status]
