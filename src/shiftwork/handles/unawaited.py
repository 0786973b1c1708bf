"""Reports calls that a program forgot to await, with the line that made them: without this they are lost in silence.

A call returns a real coroutine, whose frame holds an `Unstarted` until it starts. Only a coroutine that is freed
unstarted is reported. One that is cancelled unstarted still exists when its frame lets go. One that is closed unstarted
does so too in Python 3.11. Later versions keep its frame until it is freed. There, one difference remains: Python asks
for the name of a forgotten coroutine, to warn about it.
"""

import asyncio
import inspect
import logging
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from types import CodeType, CoroutineType
from typing import Any, Final, TypeVar, cast
from weakref import ref

Handle = TypeVar("Handle", bound=type)

CLOSING_FREES: Final = sys.version_info < (3, 12)
"""Whether a coroutine that is closed unstarted lets go of what its frame holds."""

logger: Final = logging.getLogger("shiftwork")


class Unstarted:
    """A coroutine that has not started, and the place where it was called."""

    __slots__ = ("call", "code", "coroutine", "instead", "instruction", "named")

    call: str
    """The call as it is written."""
    instead: str
    """The same from code that has no event loop."""
    code: CodeType | None
    """None if no Python code made the call, as with `atexit.register(app.stop)`."""
    instruction: int
    named: bool
    """Whether something has asked for the name of the coroutine, as Python does to warn about it."""
    coroutine: ref[Coroutine[Any, Any, Any]] | None
    """None once it has started."""

    def __del__(self) -> None:
        if self.coroutine is None or not self.named:
            return
        coroutine = self.coroutine()
        if coroutine is None or inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
            remedy = f"Write await {self.call}, or {self.instead} in code without an event loop"
            logger.error("%s: %s was not awaited, so it did nothing. %s", self._place, self.call, remedy)

    @property
    def _place(self) -> str:
        if self.code is None:
            return "called by the interpreter itself"
        lines = (line for start, end, line in self.code.co_lines() if start <= self.instruction < end)
        return f"{self.code.co_filename}:{next(lines, None) or self.code.co_firstlineno}"


class _Name(str):
    """The name of a coroutine, which notes that it is asked for."""

    __slots__ = ("mark",)
    mark: Unstarted

    def __format__(self, spec: str) -> str:
        self.mark.named = True
        return super().__format__(spec)

    def __str__(self) -> str:
        self.mark.named = True
        return super().__str__()


def unstarted(call: str, instead: str) -> Unstarted:
    """Return a mark for the coroutine that the calling function is about to create and return."""
    made = Unstarted()
    made.call, made.instead, made.coroutine, made.named = call, instead, None, CLOSING_FREES
    try:
        line = sys._getframe(2)  # noqa: SLF001 - a tenth of the price of inspect.stack()
    except ValueError:
        made.code, made.instruction = None, 0
    else:
        # Not the frame, which would keep the caller's locals alive. The line is looked up if it is needed.
        made.code, made.instruction = line.f_code, line.f_lasti
    return made


def watch(mark: Unstarted, coroutine: Coroutine[Any, Any, Any], name: str) -> None:
    """Report this coroutine if it is freed unstarted. `name` is what Python calls it."""
    mark.coroutine = ref(coroutine)
    if not CLOSING_FREES:
        name = _Name(name)
        name.mark = mark
    cast("CoroutineType[Any, Any, Any]", coroutine).__qualname__ = name


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
        coroutine = _started(mark, method, args, kwargs)
        watch(mark, coroutine, method.__qualname__)
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


if sys.version_info >= (3, 12):

    def mark_as_coroutine_function(called: Callable[..., Any]) -> None:
        """Let `inspect.iscoroutinefunction` and `asyncio.iscoroutinefunction` return True for this object."""
        inspect.markcoroutinefunction(called)

else:

    def mark_as_coroutine_function(called: Callable[..., Any]) -> None:
        """Let `asyncio.iscoroutinefunction` return True for this object, and that of `inspect` if it is a function."""
        called._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]  # noqa: SLF001
        if inspect.isfunction(called):
            # `inspect` has no mark in this Python, and reads the flag, which is for readers alone: what makes a
            # coroutine is an instruction of the code.
            code = called.__code__
            called.__code__ = code.replace(co_flags=code.co_flags | inspect.CO_COROUTINE)
