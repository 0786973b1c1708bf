"""How programs call shiftwork: with or without an event loop of their own, and from processes that were forked.

**Event loops.** Those that shiftwork makes are uvloop's where it is installed (the extra `fast`), else asyncio's; on
Windows asyncio's selector loop, because psycopg cannot use the default one. A loop that the caller made is left alone.

**Blocking calls.** A `Portal` runs coroutines for synchronous callers: on the orchestrator's event loop, or on a loop
of its own in a thread.

**Forks.** A forked process begins anew: it has its parent's memory, but neither its threads nor connections of its own.
What it inherits must be neither used nor closed: a socket, an event loop and a lock on a file are still the parent's.
"""

import asyncio
import importlib
import os
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import WeakSet

from shiftwork.errors import LifecycleError

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a program on a new event loop, as `asyncio.run` does."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)


def run_once(main: Coroutine[Any, Any, T]) -> T:
    """Do the same for a short program, which would end before uvloop is imported."""
    with asyncio.Runner(loop_factory=_plain_event_loop) as runner:
        return runner.run(main)


def new_event_loop() -> asyncio.AbstractEventLoop:
    try:
        fast = importlib.import_module("uvloop")
    except ImportError:  # as always on Windows
        return _plain_event_loop()
    return cast("Callable[[], asyncio.AbstractEventLoop]", fast.new_event_loop)()


def _plain_event_loop() -> asyncio.AbstractEventLoop:
    return asyncio.SelectorEventLoop() if sys.platform == "win32" else asyncio.new_event_loop()


def running_kind() -> str:
    """Return which library made the event loop that runs here: "uvloop" or "asyncio"."""
    return type(asyncio.get_running_loop()).__module__.partition(".")[0]


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


class Forkable(Protocol):
    """Something that holds threads, connections or locks."""

    def forked(self) -> None:
        """Start over, in a process that was just forked. Only one thread runs."""


_concerned: Final[WeakSet[Any]] = WeakSet()
_inherited: Final[list[object]] = []


def begin_anew_when_forked(one: Forkable) -> None:
    """Call `one.forked()` in every process that is forked from this one."""
    _concerned.add(one)


def never_free(inherited: object) -> None:
    """Keep an object of the parent for as long as this process lives: freeing it would close what is not ours."""
    import ctypes  # noqa: PLC0415 - few processes are forked

    _inherited.append(inherited)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))  # the list itself is freed when the interpreter ends


def _forked() -> None:
    for one in [*_concerned]:
        one.forked()


if hasattr(os, "register_at_fork"):  # Windows never forks
    os.register_at_fork(after_in_child=_forked)
