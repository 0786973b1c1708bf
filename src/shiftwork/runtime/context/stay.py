"""A context manager that is entered and left in one task, whichever tasks or threads ask for that.

Many asynchronous context managers (task groups, timeouts) must be left by the task that has entered them. An app is
started and stopped by different tasks, and a plain function runs in a thread, which has no task.
"""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import Any

Manager = AbstractContextManager[Any] | AbstractAsyncContextManager[Any]


class Stay:
    """One stay in a context manager, on this event loop. Both methods are safe from any thread."""

    def __init__(self, manager: Manager, loop: asyncio.AbstractEventLoop) -> None:
        self._manager = manager
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()
        self._end: tuple[BaseException | None, Future[bool]] = None, Future()

    def enter(self) -> "Future[Any]":
        """Enter; the result is what the context manager yields."""
        entered: Future[Any] = Future()
        self._loop.call_soon_threadsafe(self._begin, entered)
        return entered

    def leave(self, error: BaseException | None = None) -> "Future[bool]":
        """Leave, with the exception that ended the stay; the result is whether the manager suppresses it."""
        left: Future[bool] = Future()
        self._end = error, left
        self._loop.call_soon_threadsafe(self._over.set)
        return left

    def _begin(self, entered: "Future[Any]") -> None:
        self._task = self._loop.create_task(self._live(entered), name="shiftwork context manager")

    async def _live(self, entered: "Future[Any]") -> None:
        if await settle_into(entered, partial(enter, self._manager)):
            await self._over.wait()
            # An exception refers to the frames that it passed, and they to us: we must not refer to it.
            (error, left), self._end = self._end, (None, Future())
            await settle_into(left, partial(leave, self._manager, error))


async def settle_into(future: "Future[Any]", act: Callable[[], Awaitable[Any]]) -> bool:
    """Put into the future what this returns or raises; return whether it returned.

    The future takes every exception: a SystemExit that left the task would end the event loop.
    """
    try:
        future.set_result(await act())
    except BaseException as error:  # noqa: BLE001 - a user's code
        future.set_exception(error)
        return False
    else:
        return True
    finally:
        del future, act  # the exception refers to this frame


async def enter(manager: Manager) -> Any:
    """Enter a context manager of either kind."""
    if isinstance(manager, AbstractAsyncContextManager):
        return await manager.__aenter__()
    return manager.__enter__()


async def leave(manager: Manager, error: BaseException | None) -> bool:
    """Leave a context manager of either kind; return whether it suppresses the exception."""
    kind, trace = (None, None) if error is None else (type(error), error.__traceback__)
    if isinstance(manager, AbstractAsyncContextManager):
        return bool(await manager.__aexit__(kind, error, trace))
    return bool(manager.__exit__(kind, error, trace))
