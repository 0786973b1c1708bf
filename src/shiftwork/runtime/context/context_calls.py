"""The calls of a context that a function awaits: what they may be given, and whether they were awaited.

`Context.step` and its like return a coroutine, and the context notes it as a `ContextCall`: a function that returns
before it has ended has forgotten to await it.
"""

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from shiftwork.core.words import Duration, seconds_of
from shiftwork.errors import LifecycleError, StepError

P = ParamSpec("P")

R = TypeVar("R")

T = TypeVar("T")


class ContextCall:
    """A call of `ctx.step` or its like, which the function should await.

    The coroutine refers to the run, and the run to this: so the run forgets its calls when it ends.
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


def refuse_in_a_plain_function(method: str) -> None:
    """Raise where no event loop runs: nothing there would await the coroutine, and the job would go on without it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        message = f"ctx.{method}(…) must be awaited, which a plain function cannot do; use ctx.blocking.{method}(…)"
        raise LifecycleError(message) from None


class StepInTransaction(Generic[P, R]):
    """A function whose first argument is a connection. Only `Context.step` can call it."""

    def __init__(self, function: Callable[Concatenate[Any, P], R]) -> None:
        self.function = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # noqa: ARG002 - it stands for the function in types
        """Raise: without a step there is no transaction."""
        message = "ctx.in_transaction(…) is for steps: await ctx.step(name, ctx.in_transaction(function), …)"
        raise LifecycleError(message)

    async def run(self, connection: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the function with a connection."""
        value: Any = self.function(connection, *args, **kwargs)
        return await value if inspect.isawaitable(value) else value


def plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself, whose annotations say what it returns."""
    return function.function if isinstance(function, StepInTransaction) else function


def check_step(name: str, function: object) -> None:
    """Raise if a step was given something else than a function, such as the result of a call."""
    if callable(function):
        return
    if inspect.iscoroutine(function):
        function.close()
    message = (
        f"step {name!r} needs a function and its arguments, ctx.step({name!r}, function, …), not {function!r}; "
        "write the function without parentheses"
    )
    raise StepError(message)


def patience(timeout_seconds: Duration | None) -> float | None:
    return None if timeout_seconds is None else seconds_of("timeout_seconds", timeout_seconds)
