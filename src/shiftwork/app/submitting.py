"""How the handles of workers reach the store: by way of the app, which may stand on another one during a test."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from shiftwork.control.control import Control
from shiftwork.core.model.job import Claimed
from shiftwork.handles.call import Call
from shiftwork.handles.job import Job


class CurrentSubmitter:
    """Adds jobs to the store that the app stands on now. The coroutines are passed on as they are."""

    def __init__(self, current: Callable[[], Control]) -> None:
        self._current = current

    def submit(self, calls: Sequence[Call[Any]]) -> Coroutine[Any, Any, list[Job[Any]]]:
        return self._current().submission.submit(calls)

    def submit_blocking(self, calls: Sequence[Call[Any]], instead: str) -> list[Job[Any]]:
        return self._current().submission.submit_blocking(calls, instead)

    def extend_flow(
        self, job: Claimed, calls: Sequence[Call[Any]], before: Sequence[str]
    ) -> Coroutine[Any, Any, list[str]]:
        return self._current().flows.extend(job, calls, before)

    def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> Coroutine[Any, Any, list[Job[Any]]]:
        return self._current().submission.submit_with(connection, calls)

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        return self._current().submission.submit_with_blocking(connection, calls)
