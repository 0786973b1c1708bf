"""A simulated machine: its clocks, what it has, and its processes."""

from typing import TYPE_CHECKING, Final

from shiftwork.core.observing.beats import ProcessMark
from shiftwork.runtime.machine import Machine, Usage

if TYPE_CHECKING:
    from shiftwork.simulation.sim_process import SimProcess

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
