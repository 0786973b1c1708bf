"""Writes down what simulated processes do, in the format of recorded histories, with the store's own order."""

from typing import Any, Final

from shiftwork.history.lines import VERSION, Answered, AnyLine, Opened, decode, encode
from shiftwork.history.recorder import Recorder
from shiftwork.simulation.ambience import EPOCH
from shiftwork.simulation.network import Connection
from shiftwork.simulation.sim_process import SimProcess
from shiftwork.simulation.virtual_loop import VirtualLoop


class Records:
    """The lines of all processes."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.lines: Final[dict[str, list[bytes]]] = {}
        """The lines of each process, by its name."""
        self._loop = loop
        self._open = True

    def recorder(self, process: SimProcess, connection: Connection) -> "SimRecorder":
        """Return what writes the lines of a process."""
        name = f"{process.pid}-{process.name}"
        self.write(name, Opened(self._loop.time(), VERSION, name, process.pid, EPOCH + self._loop.time()))
        return SimRecorder(self, name, process, connection)

    def write(self, name: str, line: AnyLine) -> None:
        """Write a line that is of no call."""
        self.put(name, encode(line))

    def time(self) -> float:
        """Return virtual time."""
        return self._loop.time()

    def put(self, name: str, line: bytes) -> None:
        """Write a line."""
        if self._open:
            self.lines.setdefault(name, []).append(line)

    def close(self) -> None:
        """Write no more."""
        self._open = False

    def decoded(self) -> dict[str, list[AnyLine]]:
        """Return the lines of all processes as values."""
        return {name: [decode(line) for line in lines] for name, lines in self.lines.items()}


class SimRecorder(Recorder):
    """Writes the lines of one process, as long as it lives."""

    def __init__(self, records: Records, name: str, process: SimProcess, connection: Connection) -> None:
        super().__init__(self._put, records.time)
        self._records = records
        self._name = name
        self._process = process
        self._connection = connection

    def _put(self, line: bytes) -> None:
        if self._process.alive:
            self._records.put(self._name, line)

    def answered(self, number: int, answer: Any) -> None:
        """Write the answer to a call, and which call of all it was."""
        self._put(encode(Answered(self._clock(), number, answer, self._connection.last_order)))
