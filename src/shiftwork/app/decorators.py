"""How `@app.task` and `@app.worker` register the function that they decorate."""

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload

from shiftwork.errors import ConfigurationError
from shiftwork.handles.worker import Worker
from shiftwork.runtime.context.context import Context

P = ParamSpec("P")
R = TypeVar("R")


if TYPE_CHECKING:  # a `Worker` each, of which a type checker knows how it is called

    class PlainWorker(Worker[P, R]):
        """A worker whose function is a plain one, without a context."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...

    class AsyncWorker(Worker[P, R]):
        """A worker whose function is a coroutine function, without a context."""

        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...

    class PlainWorkerWithContext(Worker[P, R]):
        """A worker whose function is a plain one, with a context first."""

        def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> R: ...

    class AsyncWorkerWithContext(Worker[P, R]):
        """A worker whose function is a coroutine function, with a context first."""

        def __call__(self, ctx: Context, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]: ...


class WorkerDecorator:
    """The decorator that `@app.task(...)` and `@app.worker(...)` make: it takes a function and returns a typed handle.

    A type checker can leave out a parameter in first place only. So a context goes first.
    """

    def __init__(self, add: Callable[[Callable[..., Any], Mapping[str, Any]], Any], options: Mapping[str, Any]) -> None:
        self._add = add
        self._options = options

    @overload
    def __call__(  # type: ignore[overload-overlap]  # a coroutine is a value, too
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> "AsyncWorkerWithContext[P, R]": ...

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R], /) -> "PlainWorkerWithContext[P, R]": ...

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> "AsyncWorker[P, R]": ...  # type: ignore[overload-overlap]

    @overload
    def __call__(self, function: Callable[P, R], /) -> "PlainWorker[P, R]": ...

    def __call__(self, function: Callable[..., Any], /) -> Worker[Any, Any]:
        """Register the function."""
        worker: Worker[Any, Any] = self._add(function, self._options)
        return worker


def name_of(function: Callable[..., Any], options: Mapping[str, Any]) -> str:
    """Return the worker's name: the given one, or the function's."""
    return str(options.get("name") or getattr(function, "__name__", ""))


def checked(decorator: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function. Raises `ConfigurationError` if something else was passed in its place."""
    if not callable(function):
        raise ConfigurationError(
            f"@app.{decorator} takes options by name, not {function!r}: @app.{decorator}(name={str(function)!r})"
        )
    return function


def nameless(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without the name."""
    return {name: value for name, value in options.items() if name != "name"}
