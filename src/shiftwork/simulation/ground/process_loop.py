"""The event loop of one simulated process, or of one thread of it: what asyncio wants, in virtual time."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeVar

from shiftwork.simulation.ground.sim_machine import SimProcess
from shiftwork.simulation.ground.virtual_time import VirtualTime

T = TypeVar("T")


class ProcessLoop(asyncio.BaseEventLoop):
    """An event loop that has no thread: virtual time calls what is due on it."""

    def __init__(self, time: VirtualTime, process: SimProcess) -> None:  # not the base's, which would make much more
        self._virtual = time
        self._process = process
        # Most of what happens is a call of these, so they are no methods of ours: a frame more costs a twentieth.
        soon: Any = partial(time.soon, process)
        at: Any = partial(time.at, process)
        self.call_soon = self.call_soon_threadsafe = soon  # type: ignore[method-assign]
        self.call_at = at  # type: ignore[method-assign]

    def time(self) -> float:
        """Return virtual time, in seconds since the simulation began."""
        return self._virtual.now

    def call_later(  # type: ignore[override]  # its types are more general
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back after this long."""
        return self._virtual.at(self._process, self._virtual.now + delay, callback, *args, context=context)

    def create_task(  # type: ignore[override]  # as above
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        """Begin a task."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        self._process.keep(task)
        return task

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def is_running(self) -> bool:
        """Return True: nothing asks that while it does not."""
        return True

    def is_closed(self) -> bool:
        """Return whether the simulation is over."""
        return self._virtual.over

    def __del__(self) -> None:
        """Do nothing: there is nothing to close that the system would have to take back."""

    def __repr__(self) -> str:
        return f"<loop of {self._process.name}>"

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what a callback has raised."""
        self._virtual.surprises.append(f"{context['message']}: {context.get('exception')!r}")

    # ── readers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:  # type: ignore[override]
        """Call back whenever something arrives at this end of a simulated link."""
        fd.watch(partial(self.call_soon, callback, *args, context=copy_context()))

    def remove_reader(self, fd: Any) -> bool:
        """Call back no more."""
        fd.watch(None)
        return True

    def remove_writer(self, _fd: Any) -> bool:
        """Return False: a simulated link always has room, so nothing waits for it."""
        return False
