"""Writes down what simulated processes do, in the format of recorded histories, with the store's own order."""

from collections.abc import Callable
from typing import Any, Final

from shiftwork.history.lines import VERSION, Answered, AnyLine, Opened, decode, encode
from shiftwork.history.recorder import HistoryRecorder
from shiftwork.simulation.ground.ambience import EPOCH
from shiftwork.simulation.ground.network import Connection
from shiftwork.simulation.ground.sim_machine import SimProcess
from shiftwork.simulation.ground.virtual_time import VirtualTime


class RecordedLines:
    """The lines of all processes."""

    def __init__(self, time: VirtualTime) -> None:
        self.texts: Final[dict[str, list[bytes]]] = {}
        """What each process has written, by its name."""
        self._time = time
        self._open = True

    def recorder(self, process: SimProcess, connection: Connection) -> "SimRecorder":
        """Return what writes the lines of a process."""
        now = self._time.now
        name = f"{process.machine.name}-{process.pid}-{process.name}"
        self.write(name, Opened(now, VERSION, name, process.pid, EPOCH + now))
        return SimRecorder(_LinesOf(self, name, process), lambda: self._time.now, connection)

    def write(self, name: str, line: AnyLine) -> None:
        """Write a line that is of no call."""
        self.put(name, encode(line))

    def put(self, name: str, text: bytes) -> None:
        """Write lines."""
        if self._open:
            self.texts.setdefault(name, []).append(text)

    def close(self) -> None:
        """Write no more."""
        self._open = False


def decoded(texts: dict[str, list[bytes]]) -> dict[str, list[AnyLine]]:
    """Return the lines of all processes as values."""
    return {name: [decode(line) for line in b"".join(written).splitlines()] for name, written in texts.items()}


class _LinesOf:
    """Takes what one process writes, as long as it lives."""

    def __init__(self, records: RecordedLines, name: str, process: SimProcess) -> None:
        self.write: Callable[[bytes], object] = self.make_room
        self._records = records
        self._name = name
        self._process = process

    def make_room(self, text: bytes) -> None:
        if self._process.alive:
            self._records.put(self._name, text)


class SimRecorder(HistoryRecorder):
    """Writes the lines of one process."""

    def __init__(self, lines: _LinesOf, clock: Callable[[], float], connection: Connection) -> None:
        super().__init__(lines, clock)
        self._connection = connection

    def answered(self, number: int, answer: Any) -> None:
        """Write the answer to a call, and which call of all it was."""
        self._write(Answered(self._clock(), number, answer, self._connection.last_order))
