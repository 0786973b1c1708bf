"""Runs coroutines for synchronous callers: on the orchestrator's event loop, or on one of its own in a thread."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from shiftwork.control.calling.event_loop import new_event_loop
from shiftwork.control.calling.forking import begin_anew_when_forked, never_free
from shiftwork.errors import LifecycleError

T = TypeVar("T")


class Portal:
    """Runs coroutines for callers that have no event loop."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        """The loop to use, in another thread; None for a loop of the portal's own, made when first needed."""
        self._lock = threading.Lock()
        self._own_loop: asyncio.AbstractEventLoop | None = None
        begin_anew_when_forked(self)

    def forked(self) -> None:
        """Forget the parent's loops, whose threads do not run here, and a lock that one of them may hold."""
        never_free((self.loop, self._own_loop))
        self.loop = self._own_loop = None
        self._lock = threading.Lock()

    def call(self, work: Callable[[], Coroutine[Any, Any, T]], instead: str) -> T:
        """Run a coroutine to its end and return its result. `instead` is what to write where an event loop runs."""
        refuse_on_a_loop(instead)
        with self._lock:
            pending = asyncio.run_coroutine_threadsafe(work(), self.loop or self._own())
        try:
            return pending.result()
        except BaseException:
            pending.cancel()  # if the caller was interrupted; otherwise it has ended
            raise

    def close(self) -> None:
        """End the portal's own thread, if there is one; unless that is the caller, because it has not ended yet."""
        with self._lock:
            if self._own_loop is _running_loop():
                return
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


def refuse_on_a_loop(instead: str) -> None:
    """Raise `LifecycleError`, with what to write instead, if an event loop runs in this thread."""
    if _running_loop() is not None:
        message = f"a blocking call would stop this thread's event loop; use `{instead}` instead"
        raise LifecycleError(message)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
