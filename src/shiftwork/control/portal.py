"""Runs coroutines for synchronous callers: on the orchestrator's event loop, or on one of its own in a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from shiftwork.control.event_loop import new_event_loop
from shiftwork.errors import LifecycleError

T = TypeVar("T")


class Portal:
    """Runs coroutines for callers that have no event loop."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop to use, in another thread; None for a loop of the portal's own, made when first needed."""
        self._lock = threading.Lock()
        self._own_loop: asyncio.AbstractEventLoop | None = None

    def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Run a coroutine to its end and return its result."""
        _refuse_on_a_loop()
        if self.loop is not None:
            return asyncio.run_coroutine_threadsafe(work(), self.loop).result()
        with self._lock:
            pending = asyncio.run_coroutine_threadsafe(work(), self._own())
        return pending.result()

    def close(self) -> None:
        """End the portal's own thread, if there is one."""
        with self._lock:
            loop, self._own_loop = self._own_loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _own(self) -> asyncio.AbstractEventLoop:
        if self._own_loop is None:
            self._own_loop = new_event_loop()
            threading.Thread(target=_run, args=(self._own_loop,), name="shiftwork portal", daemon=True).start()
        return self._own_loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    cut_off = asyncio.all_tasks(loop)
    for task in cut_off:  # otherwise their callers would wait forever
        task.cancel()
    if cut_off:
        loop.run_until_complete(asyncio.wait(cut_off))
    loop.close()


def _refuse_on_a_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    message = "a blocking call would stop this thread's event loop; await the asynchronous one instead (enqueue)"
    raise LifecycleError(message)
