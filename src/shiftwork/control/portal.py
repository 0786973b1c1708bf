"""A way into the asynchronous world for synchronous callers: one event loop in one thread, made when first needed."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from shiftwork.errors import LifecycleError

T = TypeVar("T")


class Portal:
    """Runs coroutines for callers that have no event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], *, loop: asyncio.AbstractEventLoop | None = None) -> T:
        """Run it to its end, on the given loop if there is one (it runs in another thread), otherwise on our own."""
        _refuse_on_a_loop()
        if loop is not None:
            return asyncio.run_coroutine_threadsafe(work(), loop).result()
        with self._lock:
            pending = asyncio.run_coroutine_threadsafe(work(), self._own())
        return pending.result()

    def close(self) -> None:
        """End the thread, if there is one."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            loop.call_soon_threadsafe(loop.stop)

    def _own(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run, args=(self._loop,), name="shiftwork portal", daemon=True).start()
        return self._loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    cut_off = asyncio.all_tasks(loop)
    for task in cut_off:  # or whoever called would wait for ever
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
