"""How the handles of workers reach the store: by way of the app, which may stand on another one during a test."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from shiftwork.handles.call import Call
from shiftwork.handles.job import Job
from shiftwork.handles.submitter import Submitter

R = TypeVar("R")


class CurrentSubmitter:
    """Adds jobs to the store that the app stands on now. The coroutines are passed on as they are."""

    def __init__(self, current: Callable[[], Submitter]) -> None:
        self._current = current

    def submit(self, calls: Sequence[Call[Any]]) -> Coroutine[Any, Any, list[Job[Any]]]:
        return self._current().submit(calls)

    def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> Coroutine[Any, Any, list[Job[Any]]]:
        return self._current().submit_with(connection, calls)

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        return self._current().submit_with_blocking(connection, calls)

    def run_blocking(self, work: Callable[[], Coroutine[Any, Any, R]], instead: str) -> R:
        return self._current().run_blocking(work, instead)
