"""What a step runs if its writes and its kept result belong together. `Context.in_transaction` makes it."""

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from shiftwork.errors import LifecycleError

P = ParamSpec("P")
R = TypeVar("R")


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
