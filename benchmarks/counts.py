"""How many jobs have run, and when the first and the last one did: one small file for each process that runs jobs.

Every subject's jobs count here, in the same way: a job counts when its function runs.
"""

import mmap
import os
import struct
import time
from pathlib import Path
from typing import Final, NamedTuple

CELLS: Final = struct.Struct("3Q")
SUFFIX: Final = ".counts"


class Counter:
    """Counts the jobs of this process, in a folder that `Counts` reads."""

    def __init__(self, folder: Path) -> None:
        path = folder / f"{os.getpid()}{SUFFIX}"
        unfinished = path.with_suffix(".new")
        unfinished.write_bytes(bytes(CELLS.size))
        with unfinished.open("r+b") as file:
            self._cells = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
        unfinished.rename(path)

    def ran(self) -> None:
        """Count a job. Call it from one thread at a time."""
        cells, now = self._cells, time.monotonic_ns()
        cells[0] += 1
        cells[1] = cells[1] or now
        cells[2] = now


class Seen(NamedTuple):
    """All jobs so far; seconds by the monotonic clock."""

    n: int
    first: float
    last: float


class Counts:
    """Reads what all processes have counted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def look(self) -> Seen:
        """Add up all files."""
        read = [CELLS.unpack(path.read_bytes()) for path in self._folder.glob(f"*{SUFFIX}")]
        ran = [cells for cells in read if cells[0]]
        if not ran:
            return Seen(0, 0.0, 0.0)
        numbers, firsts, lasts = zip(*ran, strict=True)
        return Seen(sum(numbers), min(firsts) / 1e9, max(lasts) / 1e9)
