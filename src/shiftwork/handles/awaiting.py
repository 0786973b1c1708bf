"""Reports calls that a program forgot to await, with the line that made them: without this they are lost in silence.

A call returns a real coroutine, whose frame holds an `Unstarted` until it starts. Only a coroutine that is freed
unstarted is reported: one that was closed unstarted, as a task does that was cancelled in time, is still there when
its frame lets go.
"""

import inspect
import logging
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from types import CodeType, CoroutineType
from typing import Any, Final, TypeVar, cast
from weakref import ref

from shiftwork.handles.coroutine_mark import mark_as_coroutine_function

Handle = TypeVar("Handle", bound=type)

logger: Final = logging.getLogger("shiftwork")


class Unstarted:
    """A coroutine that has not started, and the place where it was called."""

    __slots__ = ("call", "code", "coroutine", "instead", "instruction")

    call: str
    """The call as it is written."""
    instead: str
    """The same from code that has no event loop."""
    code: CodeType
    instruction: int
    coroutine: ref[Coroutine[Any, Any, Any]] | None
    """None once it has started."""

    def __del__(self) -> None:
        if self.coroutine is None:
            return
        coroutine = self.coroutine()
        if coroutine is None or inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            where = f"{self.code.co_filename}:{self._line}"
            remedy = f"Write await {self.call}, or {self.instead} in code without an event loop"
            logger.error("%s: %s was not awaited, so it did nothing. %s", where, self.call, remedy)

    @property
    def _line(self) -> int:
        lines = (line for start, end, line in self.code.co_lines() if start <= self.instruction < end)
        return next(lines, None) or self.code.co_firstlineno


def unstarted(call: str, instead: str) -> Unstarted:
    """Return what the coroutine should hold that the caller creates for its own caller."""
    made, line = Unstarted(), sys._getframe(2)  # noqa: SLF001 - a tenth of the price of inspect.stack()
    made.call, made.instead, made.coroutine = call, instead, None
    # Not the frame, which would keep the caller's locals alive. The number of the line is looked up if it is needed.
    made.code, made.instruction = line.f_code, line.f_lasti
    return made


def report_forgotten(owner: str, instead: str) -> Callable[[Handle], Handle]:
    """Report the public coroutines of a class that are not awaited.

    `owner` is how people name an object of the class. `instead` is a call from code that has no event loop, with
    {name} for the name of the method.
    """

    def decorate(handle: Handle) -> Handle:
        for name, method in list(vars(handle).items()):
            if not name.startswith("_") and inspect.iscoroutinefunction(method):
                setattr(handle, name, _reported(method, f"{owner}.{name}(…)", instead.format(name=name)))
        return handle

    return decorate


def _reported(method: Callable[..., Coroutine[Any, Any, Any]], call: str, instead: str) -> Callable[..., Any]:
    @wraps(method)
    def start(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        mark = unstarted(call, instead)
        coroutine = cast("CoroutineType[Any, Any, Any]", _started(mark, method, args, kwargs))
        coroutine.__qualname__ = method.__qualname__  # Python's own warning names it
        mark.coroutine = ref(coroutine)
        return coroutine

    mark_as_coroutine_function(start)
    return start


async def _started(
    mark: Unstarted,
    method: Callable[..., Coroutine[Any, Any, Any]],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    mark.coroutine = None
    return await method(*args, **kwargs)
