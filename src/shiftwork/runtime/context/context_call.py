"""What a function calls of its context and should await: whether it was forgotten when the function returns."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class ContextCall:
    """A call of `ctx.step` or its like, which the function should await.

    It refers to the coroutine, and the coroutine not to it; but to the run, which has to let go of it at its end.
    """

    __slots__ = ("_begun_by", "_coroutine", "what")

    def __init__(
        self, what: str, coroutine: Coroutine[Any, Any, Any], begun_by: "list[asyncio.Task[Any] | None]"
    ) -> None:
        self.what: str = what
        """The call as it is written."""
        self._coroutine = coroutine
        self._begun_by = begun_by
        """The task in which the coroutine has begun; empty until then."""

    @property
    def has_ended(self) -> bool:
        """Whether it has returned or raised, or was closed: a task that is cancelled in time closes it unbegun."""
        return inspect.getcoroutinestate(self._coroutine) == inspect.CORO_CLOSED

    @property
    def is_forgotten(self) -> bool:
        """Whether the function, which has returned, missed it: it has not ended, and nothing has cancelled it."""
        if self.has_ended:
            return False
        task = self._begun_by[0] if self._begun_by else _task_of(self._coroutine)
        return task is None or not task.cancelling()


async def begun(begun_by: "list[asyncio.Task[Any] | None]", work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do this, and note the task in which it begins."""
    begun_by.append(asyncio.current_task())
    return await work()


def _task_of(coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any] | None":
    """Return the task that is to run a coroutine, and has not begun it."""
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:  # a plain function had an event loop of its own
        return None
    return next((task for task in tasks if task.get_coro() is coroutine), None)
