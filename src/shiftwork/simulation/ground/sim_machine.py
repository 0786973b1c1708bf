"""Simulated machines and their processes: clocks, pids, and what of the event loop belongs to which process.

Everything that happens in the simulation happens in a process, or in a thread of one that has an event loop of its own.
A task or a timer belongs to the event loop on which it was made, and so to its process. A process that is frozen does
nothing until it thaws, and a dead one never does anything again: it stops at the await that it has reached.
"""

import asyncio
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from typing import Any, Final

from shiftwork.core.observing.beats import ProcessMark
from shiftwork.runtime.machine import Machine, Usage

FIRST_PID: Final = 100
MEMORY: Final = 8 << 30
PROCESS_MEMORY: Final = 64 << 20
"""What every process uses."""


class SimMachine:
    """A machine. Its clocks are those of the simulation, each ahead by something of its own."""

    def __init__(self, name: str, *, wall: float, up: float, cores: float) -> None:
        self.name = name
        self.wall: float = wall
        """How far its wall clock is ahead of virtual time."""
        self.up: float = up
        """The same for its monotonic clock."""
        self.cores = cores
        self.processes: Final[dict[int, SimProcess]] = {}
        """Those that live, by pid."""
        self.cut: str | None = None
        """How the store cannot be reached from here, if so."""
        self.full: bool = False
        """Whether no process can be started here."""
        self._next_pid = FIRST_PID

    def give_pid(self) -> int:
        """Return a pid for a new process."""
        self._next_pid += 1
        return self._next_pid

    def forget(self, pid: int) -> None:
        """Forget a process that has died."""
        del self.processes[pid]

    def make_room(self) -> None:
        """Let processes be started again."""
        self.full = False

    def measure(self) -> Machine:
        """Return what the machine has."""
        return Machine(self.cores, MEMORY)

    def usage(self, pid: int) -> Usage | None:
        """Return what a process uses; None if it is gone."""
        return Usage(0.0, PROCESS_MEMORY) if pid in self.processes else None

    def mark(self, pid: int) -> ProcessMark:
        """Return the mark of a process. No pid is given twice, so that its birth says nothing."""
        return ProcessMark(self.name, pid, 0)

    def is_dead(self, mark: ProcessMark, _own: ProcessMark) -> bool:
        """Return whether a process of this machine is dead."""
        return mark.place == self.name and mark.pid not in self.processes


_FORGET_ABOVE: Final = 256
"""With more tasks than this, those that have ended are forgotten."""


class SimProcess:
    """A process of a simulated machine; or a thread of one, with an event loop of its own."""

    def __init__(self, name: str, machine: SimMachine, pid: int, *, of: "SimProcess | None" = None) -> None:
        self.name = name
        self.machine = machine
        self.pid = pid
        self.main: SimProcess = of or self
        """The process itself, of a thread."""
        self.threads: list[SimProcess] = []
        """Its threads with event loops of their own."""
        self.loop: asyncio.AbstractEventLoop
        """Its event loop."""
        self.alive: bool = True
        self.frozen: bool = False
        self.runs: bool = True
        """Whether it can do something now."""
        self.listed: bool = False
        """Whether it is in the loop's list of those that have something to do."""
        self.fuse: int = 0
        """After so many more callbacks it is killed; 0 is never."""
        self._off = 0
        """How often it was taken off the processor in the middle of something, and has not got it back."""
        self.due: Final[deque[Due]] = deque()
        """What it does next, in order."""
        self.status: int | None = None
        """How it ended: its exit status, or the number of the signal that killed it, negative."""
        self._doomed: int | None = None
        self._on_death: list[Callable[[int], None]] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self.context: Final = Context()
        """For callbacks that leave it as it is, so that they can share one."""
        if of is not None:
            of.threads.append(self)
            of.on_death(self.die)

    def freeze(self) -> None:
        """Stop until it thaws."""
        self.frozen, self.runs = True, False

    def thaw(self) -> None:
        """Go on."""
        self.frozen, self.runs = False, self.alive and not self._off

    def lose_processor(self) -> None:
        """Stop in the middle of something."""
        self._off += 1
        self.runs = False

    def on_death(self, callback: Callable[[int], None]) -> None:
        """Call this with the status when the process has died."""
        self._on_death.append(callback)

    def keep(self, task: asyncio.Task[Any]) -> None:
        """Keep a task: one of a dead process must not be collected, because that would run what ends it."""
        self._tasks.append(task)
        if len(self._tasks) > _FORGET_ABOVE and len(self._tasks) % _FORGET_ABOVE == 1:
            self._tasks = [one for one in self._tasks if not one.done()]

    def die(self, status: int) -> None:
        """End now, or as soon as the processor is given back."""
        if not self.alive:
            return
        if self._off:
            self._doomed = status if self._doomed is None else self._doomed
            return
        self.alive = self.runs = False
        self.status = status
        self.due.clear()
        for callback in self._on_death:
            callback(status)

    def back(self) -> None:
        """Have the processor again."""
        self._off -= 1
        self.runs = self.alive and not self._off and not self.frozen
        if not self._off and self._doomed is not None:
            self.die(self._doomed)

    def dispose(self) -> None:
        """Close what waits for ever, once the simulation is over."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a `finally` makes a coroutine that nothing can run
            for task in self._tasks:
                if not task.done():
                    task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it is meant to be so
                    with suppress(Exception):  # it awaits something in a `finally`
                        Context().run(task.get_coro().close)
        self._tasks.clear()


class Due(asyncio.TimerHandle):
    """Something that is to be called in a process."""

    __slots__ = ("args", "callback", "context", "process")

    def __init__(  # not the base's, which asks the loop for its debug mode each time
        self,
        process: SimProcess,
        when: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: Context,
    ) -> None:
        self.process = process
        self._when = when
        self.callback: Callable[..., Any] | None = callback
        """What is called; None once it was cancelled."""
        self.args = args
        self.context = context

    def __repr__(self) -> str:
        return f"{self.callback} of {self.process.name}"

    def cancel(self) -> None:
        """Do not call it."""
        self.callback, self.args = None, ()

    def cancelled(self) -> bool:
        """Return whether it is not called."""
        return self.callback is None
