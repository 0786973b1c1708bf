"""Virtual time: when nothing is left to do, the clock jumps to the next timer.

Each process has a queue of its own, in which order is kept, as on an event loop of its own. Which process goes on next
is drawn. A process may be taken off the processor in the middle of something (`preempt`): then others go on meanwhile,
as they do on a real machine between any two of its system calls.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from heapq import heapify, heappop, heappush
from random import Random
from typing import Any, Final

from shiftwork.simulation.ground.sim_machine import Due, SimProcess

MOST_AT_ONCE: Final = 200_000
"""This many callbacks without time passing mean that something goes round in circles."""
KILLED: Final = -9
MOST_INTERRUPTED: Final = 3
"""How many processes may be off the processor in the middle of something at a time."""


class StuckError(Exception):
    """The simulation cannot go on: time does not pass."""


class VirtualTime:
    """Calls back in many processes, in one thread, by a clock that only it moves."""

    def __init__(self, chance: Random) -> None:
        self.current: SimProcess | None = None
        """The process that does something now."""
        self.now: float = 0.0
        """Seconds since the simulation began."""
        self.over: bool = False
        """Whether the simulation is over."""
        self.surprises: list[str] = []
        """What callbacks raised."""
        self.callbacks: int = 0
        """How many were called."""
        self._on: SimProcess | None = None
        """The process whose event loop is the running one; a thread that goes on beside it changes `current` alone."""
        self._draw = chance.random
        self._timers: list[tuple[float, int, Due]] = []
        self._made = 0
        self._listed: list[SimProcess] = []
        """The processes that have something to do and can do it."""
        self._depth = 0

    # ── what it runs ─────────────────────────────────────────────────────────────────────────────────────────────

    def run_until(self, over: Callable[[], bool], *, latest: float) -> bool:
        """Run until this is so, or this time has come. Returns whether it is so."""
        try:
            while not over():
                self._run_all()
                if not over() and not self._pass_time(latest):
                    return over()
        finally:  # whatever stops it, this thread has no event loop afterwards
            self.current = None
            self._enter(None)
        return True

    def _run_all(self) -> None:
        """Do everything that can be done now."""
        ready, draw, most = self._listed, self._draw, self.callbacks + MOST_AT_ONCE
        while ready:
            process = ready[int(draw() * len(ready))] if len(ready) > 1 else ready[0]
            due = process.due
            if not due or not process.runs:
                process.listed = False
                ready.remove(process)
                continue
            handle = due.popleft()
            callback = handle.callback
            if callback is None:  # it was cancelled
                continue
            self.callbacks += 1
            self.current = process
            if process is not self._on:
                self._enter(process)
            try:
                handle.context.run(callback, *handle.args)
            except Exception as error:  # noqa: BLE001 - whatever it is, others go on
                self.surprises.append(f"in {handle!r}: {error!r}")
            if process.fuse:
                process.fuse -= 1
                if not process.fuse:
                    process.main.die(KILLED)
            if self.callbacks > most:
                message = f"time does not pass: the last thing that happened is {handle!r}"
                raise StuckError(message)
        self.current = None
        self._enter(None)

    def _enter(self, process: SimProcess | None) -> None:
        """Let the event loop of this process be the one that runs."""
        self._on = process
        set_running_loop(None if process is None else process.loop)

    def _pass_time(self, latest: float) -> bool:
        """Let time pass until something is to be done; False if that is later than this time, which has come then."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heappop(timers)
        if not timers or timers[0][0] > latest:
            self.now = max(self.now, latest)
            return False
        when = timers[0][0]
        self.now = max(self.now, when)
        while timers and timers[0][0] <= when:
            handle = heappop(timers)[2]
            if handle.callback is not None:
                self._put(handle)
        return True

    def _put(self, handle: Due) -> None:
        process = handle.process
        if process.alive and not self.over:
            process.due.append(handle)
            if not process.listed and process.runs:
                process.listed = True
                self._listed.append(process)

    def preempt(self, seconds: float) -> None:
        """Take the process that runs off the processor for this long, in the middle of what it does."""
        process = self.current
        if process is None or self._depth >= MOST_INTERRUPTED or not process.runs:
            return
        self._depth += 1
        process.lose_processor()
        until = self.now + seconds
        self._run_all()
        while self._pass_time(until):
            self._run_all()
        process.back()
        self._depth -= 1
        self.current = process
        self._enter(process)
        self.wake(process)

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    def inside(self, process: SimProcess, work: Callable[[], None]) -> None:
        """Do this in another process, now, as part of what the present one does: it waits for that."""
        before = self.current
        self.current = process
        self._enter(process)
        work()
        self.current = before
        self._enter(before)

    def freeze(self, process: SimProcess) -> None:
        """Stop a process until it thaws; its threads go on."""
        process.freeze()

    def thaw(self, process: SimProcess) -> None:
        """Let a process go on."""
        process.thaw()
        self.wake(process)

    def wake(self, process: SimProcess) -> None:
        """Let a process go on with what is due, if it can."""
        if process.due and process.runs and not process.listed:
            process.listed = True
            self._listed.append(process)

    def put_off(self, of: Callable[[SimProcess], bool], seconds: float) -> None:
        """Let the timers of these processes come later: their machine has slept."""
        self._timers = [
            (when + seconds if of(handle.process) else when, number, handle) for when, number, handle in self._timers
        ]
        heapify(self._timers)

    # ── callbacks ────────────────────────────────────────────────────────────────────────────────────────────────

    def soon(
        self, process: SimProcess, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> Due:
        """Let a process call this next."""
        handle = Due(process, self.now, callback, args, context or copy_context())
        if process.alive and not self.over:
            process.due.append(handle)
            if not process.listed and process.runs:
                process.listed = True
                self._listed.append(process)
        return handle

    def at(
        self,
        process: SimProcess,
        when: float,
        callback: Callable[..., Any],
        *args: Any,
        context: Context | None = None,
    ) -> Due:
        """Let a process call this at this time."""
        handle = Due(process, when, callback, args, context or copy_context())
        self._made += 1
        heappush(self._timers, (when, self._made, handle))
        return handle

    def later(self, process: SimProcess, seconds: float, callback: Callable[..., Any], *args: Any) -> Due:
        """Let a process call this after a while; `callback` leaves its context as it is."""
        return self.at(process, self.now + seconds, callback, *args, context=process.context)

    def close(self) -> None:
        """End for good."""
        self.over = True
        self._timers.clear()
        self._listed.clear()


set_running_loop: Final = asyncio._set_running_loop  # noqa: SLF001 - as every event loop does
