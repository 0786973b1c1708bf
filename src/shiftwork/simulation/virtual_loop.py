"""An event loop in virtual time: when nothing is left to do, the clock jumps to the next timer.

Each process has a queue of its own, in which order is kept, as on an event loop of its own. Which process goes on next
is drawn. A process may be taken off the processor in the middle of something (`preempt`): then others go on meanwhile,
as they do on a real machine between any two of its system calls.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Final, TypeVar

from shiftwork.simulation.sim_process import PROCESS, SimProcess

T = TypeVar("T")

MOST_AT_ONCE: Final = 200_000
"""So many callbacks without time passing mean that something goes round in circles."""
DEEPEST: Final = 3
"""How many processes may be off the processor in the middle of something at a time."""


class StuckError(Exception):
    """The simulation cannot go on: time does not pass."""


class Due(asyncio.TimerHandle):
    """Something that is to be called, in the process that its context names."""

    __slots__ = ("process",)

    def __init__(  # not the base's, which asks the loop for its debug mode each time
        self, loop: "VirtualLoop", when: float, callback: Callable[..., Any], args: tuple[Any, ...], context: Context
    ) -> None:
        self._loop = loop
        self._when = when
        self._callback: Callable[..., Any] | None = callback
        self._args: tuple[Any, ...] | None = args
        self._context = context
        self._cancelled = False
        self._scheduled = False
        self._repr = None
        self._source_traceback = None
        self.process: SimProcess = context[PROCESS]

    def cancel(self) -> None:
        """Do not call it."""
        self._cancelled = True
        self._callback = self._args = None


class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs callbacks of many processes, in one thread, by a clock that only it moves."""

    def __init__(self, chance: Random) -> None:
        self.current: SimProcess | None = None
        """The process that does something now."""
        self.surprises: list[dict[str, Any]] = []
        """What callbacks raised."""
        self.callbacks: int = 0
        """How many were called."""
        self._draw = chance.random
        self._now = 0.0
        self._timers: list[tuple[float, int, Due]] = []
        self._made = 0
        self._ready: list[SimProcess] = []
        """The processes that can go on."""
        self._closed = False
        self._depth = 0
        self._at_once = 0

    # ── what it runs ─────────────────────────────────────────────────────────────────────────────────────────────

    def run_until(self, over: Callable[[], bool], *, latest: float) -> bool:
        """Run until this is so, or this time has come. Returns whether it is so."""
        asyncio._set_running_loop(self)
        try:
            while not over():
                if not self._step(latest):
                    return False
        finally:
            asyncio._set_running_loop(None)
        return True

    def _step(self, latest: float) -> bool:
        """Do one thing; False if nothing is to be done up to this time, which has come then."""
        ready = self._ready
        if not ready:
            return self._pass_time(latest)
        place = int(self._draw() * len(ready)) if len(ready) > 1 else 0
        process = ready[place]
        if not process.due or not process.runs:
            ready[place] = ready[-1]
            ready.pop()
            return True
        handle = process.due.popleft()
        if not handle._cancelled:
            self.callbacks += 1
            self._at_once += 1
            if self._at_once > MOST_AT_ONCE:
                message = f"time does not pass: the last thing that happened is {handle!r}"
                raise StuckError(message)
            self.current = process
            handle._run()
            self.current = None
        return True

    def _pass_time(self, latest: float) -> bool:
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        if not timers or timers[0][0] > latest:
            self._now = max(self._now, latest)
            return False
        self._at_once = 0
        when = timers[0][0]
        self._now = max(self._now, when)
        while timers and timers[0][0] <= when:
            self._put(heappop(timers)[2])
        return True

    def _put(self, handle: Due) -> None:
        process = handle.process
        if process.alive and not self._closed:
            if not process.due and process.runs:
                self._ready.append(process)
            process.due.append(handle)

    def preempt(self, seconds: float) -> None:
        """Take the process that runs off the processor for this long, in the middle of what it does."""
        process = self.current
        if process is None or self._depth >= DEEPEST or not process.runs:
            return
        self._depth += 1
        process.off += 1
        task = asyncio.current_task(self)
        if task is not None:
            asyncio._leave_task(self, task)
        until = self._now + seconds
        while self._step(until):
            pass
        if task is not None:
            asyncio._enter_task(self, task)
        process.back()
        self._depth -= 1
        self.current = process
        self.wake(process)

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    def begin(self, process: SimProcess, main: Callable[..., object], *args: Any) -> None:
        """Let a process call this next."""
        self.call_soon(main, *args, context=process.context())

    def freeze(self, process: SimProcess) -> None:
        """Stop a process until it thaws."""
        process.frozen = True

    def thaw(self, process: SimProcess) -> None:
        """Let a process go on."""
        process.frozen = False
        self.wake(process)

    def wake(self, process: SimProcess) -> None:
        """Let a process go on with what is due, if it can."""
        if process.due and process.runs and process not in self._ready:
            self._ready.append(process)

    def put_off(self, of: Callable[[SimProcess], bool], seconds: float) -> None:
        """Let the timers of these processes come later: their machine has slept."""
        self._timers = [
            (when + seconds if of(handle.process) else when, number, handle) for when, number, handle in self._timers
        ]
        heapify(self._timers)

    # ── what asyncio wants ───────────────────────────────────────────────────────────────────────────────────────

    def time(self) -> float:
        """Return virtual time, in seconds since the simulation began."""
        return self._now

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:
        """Call back next, in the process of this context."""
        handle = Due(self, self._now, callback, args, context or copy_context())
        self._put(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Do the same: there is one thread at a time."""
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back after this long."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at this time."""
        handle = Due(self, when, callback, args, context or copy_context())
        self._made += 1
        heappush(self._timers, (when, self._made, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:  # type: ignore[override]
        """Begin a task in the process that asks for it."""
        context = context or copy_context()
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        context[PROCESS].keep(task)
        return task

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def is_running(self) -> bool:
        """Return True: nothing asks that while it does not."""
        return True

    def is_closed(self) -> bool:
        """Return whether the simulation is over."""
        return self._closed

    def close(self) -> None:
        """End for good."""
        self._closed = True
        self._timers.clear()
        self._ready.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what a callback has raised."""
        self.surprises.append(context)

    # ── readers ──────────────────────────────────────────────────────────────────────────────────────────────────

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        """Call back whenever something arrives at this end of a simulated link."""
        fd.watch(partial(self.call_soon, callback, *args, context=copy_context()))

    def remove_reader(self, fd: Any) -> bool:
        """Call back no more."""
        fd.watch(None)
        return True

    def add_writer(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        """Refuse: a simulated link always has room."""
        raise NotImplementedError

    def remove_writer(self, fd: Any) -> bool:
        """Return False: there is no writer."""
        return False
