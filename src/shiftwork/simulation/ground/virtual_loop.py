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

from shiftwork.simulation.ground.sim_machine import PROCESS, Due, SimProcess

T = TypeVar("T")

MOST_AT_ONCE: Final = 200_000
"""So many callbacks without time passing mean that something goes round in circles."""
MOST_INTERRUPTED: Final = 3
"""How many processes may be off the processor in the middle of something at a time."""


class StuckError(Exception):
    """The simulation cannot go on: time does not pass."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Runs callbacks of many processes, in one thread, by a clock that only it moves."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
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
        self._listed: list[SimProcess] = []
        """The processes that have something to do and can do it."""
        self._over = False
        self._depth = 0

    # ── what it runs ─────────────────────────────────────────────────────────────────────────────────────────────

    def run_until(self, over: Callable[[], bool], *, latest: float) -> bool:
        """Run until this is so, or this time has come. Returns whether it is so."""
        asyncio._set_running_loop(self)  # noqa: SLF001 - as a loop does
        try:
            while not over():
                self._run_all()
                if not over() and not self._pass_time(latest):
                    return over()
        finally:
            asyncio._set_running_loop(None)  # noqa: SLF001 - as above
        return True

    def _run_all(self) -> None:
        """Do everything that can be done now."""
        ready, draw, callbacks = self._listed, self._draw, self.callbacks
        while ready:
            process = ready[int(draw() * len(ready))] if len(ready) > 1 else ready[0]
            due = process.due
            if not due or not process.runs:
                self._unlist(process)
                continue
            handle = due.popleft()
            if not due:
                self._unlist(process)
            if not handle.dropped:
                self.callbacks += 1
                self.current = process
                try:
                    handle.call()
                except Exception as error:  # noqa: BLE001 - whatever it is, others go on
                    self.surprises.append({"message": f"in {handle!r}", "exception": error})
                self.current = None
            if self.callbacks - callbacks > MOST_AT_ONCE:
                message = f"time does not pass: the last thing that happened is {handle!r}"
                raise StuckError(message)

    def _pass_time(self, latest: float) -> bool:
        """Let time pass until something is to be done; False if that is later than this time, which has come then."""
        timers = self._timers
        while timers and timers[0][2].dropped:
            heappop(timers)
        if not timers or timers[0][0] > latest:
            self._now = max(self._now, latest)
            return False
        when = timers[0][0]
        self._now = max(self._now, when)
        while timers and timers[0][0] <= when:
            handle = heappop(timers)[2]
            if not handle.dropped:
                self._put(handle)
        return True

    def _put(self, handle: Due) -> None:
        process = handle.process
        if process.alive and not self._over:
            process.due.append(handle)
            if not process.listed and process.runs:
                self._list(process)

    def _list(self, process: SimProcess) -> None:
        process.listed = True
        self._listed.append(process)

    def _unlist(self, process: SimProcess) -> None:
        process.listed = False
        self._listed.remove(process)

    def preempt(self, seconds: float) -> None:
        """Take the process that runs off the processor for this long, in the middle of what it does."""
        process = self.current
        if process is None or self._depth >= MOST_INTERRUPTED or not process.runs:
            return
        self._depth += 1
        process.lose_processor()
        task = asyncio.current_task(self)
        if task is not None:
            asyncio._leave_task(self, task)  # noqa: SLF001 - another process goes on, with tasks of its own
        until = self._now + seconds
        self._run_all()
        while self._pass_time(until):
            self._run_all()
        if task is not None:
            asyncio._enter_task(self, task)  # noqa: SLF001 - as above
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
        process.freeze()

    def thaw(self, process: SimProcess) -> None:
        """Let a process go on."""
        process.thaw()
        self.wake(process)

    def wake(self, process: SimProcess) -> None:
        """Let a process go on with what is due, if it can."""
        if process.due and process.runs and not process.listed:
            self._list(process)

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

    def call_soon(self, callback: Callable[..., Any], *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]  # as below
        """Call back next, in the process of this context."""
        handle = Due(self._now, callback, args, context or copy_context())
        process = handle.process
        if process.alive and not self._over:
            process.due.append(handle)
            if not process.listed and process.runs:
                process.listed = True
                self._listed.append(process)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]  # their types are more general
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Do the same: there is one thread at a time."""
        return self.call_soon(callback, *args, context=context)

    def call_later(  # type: ignore[override]  # their types are more general
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back after this long."""
        when = self._now + delay
        handle = Due(when, callback, args, context or copy_context())
        self._made += 1
        heappush(self._timers, (when, self._made, handle))
        return handle

    def call_at(  # type: ignore[override]  # their types are more general
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call back at this time."""
        handle = Due(when, callback, args, context or copy_context())
        self._made += 1
        heappush(self._timers, (when, self._made, handle))
        return handle

    def create_future(self) -> asyncio.Future[Any]:
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]  # their types are more general
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[T]:
        """Begin a task in the process that asks for it."""
        context = context or copy_context()
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        context[PROCESS].keep(task)
        return task

    def get_debug(self) -> bool:
        """Return False."""
        return False

    def set_debug(self, enabled: bool) -> None:  # noqa: FBT001 - the loop's signature
        """Do nothing."""

    def is_running(self) -> bool:
        """Return True: nothing asks that while it does not."""
        return True

    def is_closed(self) -> bool:
        """Return whether the simulation is over."""
        return self._over

    def __del__(self) -> None:
        """Do nothing: there is nothing to close that the system would have to take back."""

    def close(self) -> None:
        """End for good."""
        self._over = True
        self._timers.clear()
        self._listed.clear()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Note what a callback has raised."""
        self.surprises.append(context)

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
