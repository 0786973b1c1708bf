"""What a node asks of the machine that it runs on. A simulation passes machines of its own.

Clocks and chance are not among it: a node has a `Clock`, and chance comes from the standard library.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from msgspec import Struct

from shiftwork.core.observing.beats import ProcessMark
from shiftwork.runtime import machine
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.local_processes import end_groups, is_dead, own_mark
from shiftwork.runtime.machine import Machine, Usage
from shiftwork.runtime.processes.process_guard import NodeGuard, ProcessGuard
from shiftwork.runtime.processes.spawn import Spawned, SpawnedProcess
from shiftwork.runtime.running.job_threads import JobThreads


class PulseLoop(Protocol):
    """Runs the pulse of a node, with other duties that go on while the event loop of the node is blocked."""

    def start(self) -> None:
        """Begin to beat."""

    async def stop(self) -> None:
        """End, without blocking the caller's loop."""


class Host(Struct, frozen=True, kw_only=True):
    """A machine, as a node of it sees it: by default the one that this process runs on."""

    measure: Callable[[], Machine] = machine.measure
    usage: Callable[[int], Usage | None] = machine.usage
    """Returns what a process uses, by its pid."""
    starved: Callable[[], int] = machine.starved
    mark: Callable[[], ProcessMark | None] = own_mark
    is_dead: Callable[[ProcessMark, ProcessMark], bool] = is_dead
    end_groups: Callable[[Collection[int], ProcessMark], bool] = end_groups
    start: Callable[[ExitStack], Spawned] = SpawnedProcess
    """Starts a process for jobs. Raises `OSError`."""
    guard: Callable[[], NodeGuard] = ProcessGuard
    threads: Callable[[], JobThreads] = JobThreads
    """Makes the threads for plain functions that run in the node itself."""
    pulse: Callable[[Any, Callable[[], Sequence[Duty]]], PulseLoop] | None = None
    """Makes what runs the pulse, and these other duties, beside the event loop of the node; None for a thread."""
    watches_loops: bool = True
    """Whether a thread names what blocks an event loop."""


THIS_HOST = Host()
