"""Looks after one process from outside, every second: how hard it works, and why it must be killed, if it must."""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from shiftwork.runtime.clock import Clock
from shiftwork.runtime.gauge import Gauge, Lateness, Load
from shiftwork.runtime.machine import Usage
from shiftwork.runtime.running.job_run import Run

SILENT_SECONDS: Final = 1.0
"""A process that has not answered for this long is given no more runs."""
UNBEGUN_SECONDS: Final = 10.0
"""A process that has not begun a run for this long is killed, unless a run that has begun holds it up."""
BURSTING: Final = 1.5
"""A process whose memory is this many times its limit is killed, whatever it runs."""


class ProcessFault(Struct, frozen=True):
    """Why a process must be killed."""

    why: str
    blamed: Run | None = None
    """The run whose fault it is, if that is certain."""


class ProcessWatch:
    """Measures a process, and finds that it begins nothing, or uses too much memory."""

    def __init__(self, pid: int, clock: Clock, *, alone: bool, usage: Callable[[int], Usage | None]) -> None:
        self.answer: Lateness = Lateness(clock.monotonic)
        """How late its answer to a ping is."""
        self._gauge = Gauge(pid, clock.monotonic, usage)
        self._clock = clock
        self._alone = alone
        """Whether it runs one job at a time."""
        self._unbegun: dict[Run, float] = {}
        """Since when the process should have begun runs that it has not begun, as of the last look."""

    @property
    def load(self) -> Load:
        """How hard the process works. Its event loop is late by as much as it takes to answer a ping."""
        return Load(cpu=self._gauge.cpu, memory=self._gauge.memory, lag=self.answer.seconds)

    def look(
        self, runs: Sequence[Run], began: Callable[[Run], float | None], memory_limit: int | None
    ) -> ProcessFault | None:
        """Measure it; return why it must be killed. `runs` are all that it has, in their order."""
        used = self._gauge.look()
        fault = None
        if memory_limit is not None and used > memory_limit:
            fault = self._exceeding(used, memory_limit, runs, began)
        return fault or self._beginning_nothing(runs, began)

    def _exceeding(
        self, used: int, limit: int, runs: Sequence[Run], began: Callable[[Run], float | None]
    ) -> ProcessFault | None:
        """Return the fault of using too much memory; None where it is enough to replace the process when it is idle."""
        why = f"its process used {used:,} bytes of memory; max_memory_per_instance is {limit:,}"
        if self._alone and runs and began(runs[0]) is not None:
            return ProcessFault(why, blamed=runs[0])
        return ProcessFault(why) if used > BURSTING * limit else None

    def _beginning_nothing(self, runs: Sequence[Run], began: Callable[[Run], float | None]) -> ProcessFault | None:
        """Return the fault of beginning nothing, whatever the reason: no deadline ends a run that has not begun."""
        expected = runs[:1] if self._alone else runs
        unbegun = [run for run in expected if began(run) is None]
        if len(unbegun) < len(expected) and self.answer.overdue > SILENT_SECONDS:
            unbegun.clear()  # one that has begun holds it up, and has its own time for that
        now = self._clock.monotonic()
        self._unbegun = {run: self._unbegun.get(run, now) for run in unbegun}
        for run, since in self._unbegun.items():
            if now - since >= UNBEGUN_SECONDS:
                what = f"it has not begun job {run.job.id} of {run.job.worker} for {UNBEGUN_SECONDS:g} s"
                return ProcessFault(
                    f"{what}: it is frozen, or a job has closed a file descriptor that it has not opened"
                )
        return None
