"""Simulated threads for plain functions: real ones, which run one at a time and wait in virtual time.

A thread runs until its function waits (`Strands.sleep`) or has returned; then the event loop goes on. So a plain
function runs where it does in production, beside the event loop of its process, and yet everything follows from the
seed. A thread of a process that has died waits for ever, and is ended when the simulation is over.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, Final

from shiftwork.runtime.running.job_threads import JobThreads
from shiftwork.simulation.ground.sim_machine import SimProcess
from shiftwork.simulation.ground.virtual_time import VirtualTime

SIMULATED: Final = threading.local()
"""Has `on` in the thread of a simulation's event loop and in its strands; all other threads see the real world."""


class StrandEnded(BaseException):
    """Ends a thread that waits when the simulation is over."""


class Strands:
    """The threads of a simulation."""

    def __init__(self, time: VirtualTime, home: SimProcess) -> None:
        self._time = time
        self._home = home
        """Whose callbacks come whatever becomes of other processes."""
        self._idle: list[_Strand] = []
        self._all: list[_Strand] = []
        self._running: _Strand | None = None
        self._back = _closed_gate()
        """Opened when the event loop may go on."""
        self._closing = False

    @property
    def inside(self) -> bool:
        """Whether a thread runs, and not the event loop."""
        return self._running is not None

    def begin(self, work: Callable[[], object], context: Context) -> None:
        """Run this in a thread until it waits or is done."""
        strand = self._idle.pop() if self._idle else None
        if strand is None:
            strand = _Strand(self)
            self._all.append(strand)
        strand.work, strand.process = (work, context), self._time.current
        self._go_on(strand)

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass, in a thread."""
        strand = self._running
        assert strand is not None  # noqa: S101 - only plain functions call this
        assert strand.process is not None  # noqa: S101 - as above
        self._time.later(strand.process, seconds, self._go_on, strand)
        self._wait(strand)

    def lose_processor(self, process: SimProcess, seconds: float) -> None:
        """Take the whole process off the processor, in a thread, for this long."""
        strand = self._running
        assert strand is not None  # noqa: S101 - as above
        process.lose_processor()
        self._time.later(self._home, seconds, self._regain, strand, process)
        self._wait(strand)

    def _regain(self, strand: "_Strand", process: SimProcess) -> None:
        process.back()
        self._time.wake(process)
        if process.alive:
            if process.frozen:
                self._time.soon(process, self._go_on, strand, context=process.context)
                return
            self._time.current = process
            self._go_on(strand)

    def _go_on(self, strand: "_Strand") -> None:
        self._running = strand
        strand.go.release()
        self._back.acquire()

    def _wait(self, strand: "_Strand") -> None:
        if self._closing:
            raise StrandEnded
        self._running = None
        self._back.release()
        strand.go.acquire()
        if strand.over:
            raise StrandEnded

    def done(self, strand: "_Strand") -> None:
        """Take a thread back that has done its work."""
        self._running = None
        self._idle.append(strand)
        self._back.release()

    def close(self) -> None:
        """End every thread."""
        self._closing = True
        for strand in self._all:
            strand.over = True
            self._time.current = strand.process
            self._go_on(strand)
            strand.join()


class _Strand(threading.Thread):
    def __init__(self, home: Strands) -> None:
        super().__init__(name="shiftwork simulated thread", daemon=True)
        self.go = _closed_gate()
        self.work: tuple[Callable[[], object], Context] | None = None
        self.process: SimProcess | None = None
        self.over = False
        self._home = home
        self.start()

    def run(self) -> None:
        SIMULATED.on = True
        while True:
            self.go.acquire()
            if self.work is not None:
                work, context = self.work
                self.work = None
                with suppress(StrandEnded):
                    context.run(work)
            self._home.done(self)
            if self.over:
                return


def _closed_gate() -> threading.Lock:
    """Return a lock that is taken: one thread opens it by `release`, and another one waits for that by `acquire`."""
    gate = threading.Lock()
    gate.acquire()
    return gate


class SimThreads(JobThreads):
    """The threads of one simulated process."""

    def __init__(self, strands: Strands, time: VirtualTime, delay: Callable[[], float]) -> None:
        super().__init__()
        self._strands = strands
        self._virtual = time
        self._delay = delay
        """Returns how long a thread takes to begin."""

    def start(self, work: Callable[[], Any]) -> None:
        """Run this in a thread, soon."""
        process = self._virtual.current
        assert process is not None  # noqa: S101 - nothing else starts threads
        self._virtual.later(process, self._delay(), self._strands.begin, work, copy_context())

    def close(self) -> None:
        """Do nothing: the threads are the simulation's."""
