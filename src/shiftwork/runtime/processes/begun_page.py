"""Memory that a node shares with one of its processes: which runs have begun there, and which must not begin.

The process notes the number of a run before it begins it, so the node knows what has begun even when the process is
dead. While the node holds the process still, it can withdraw what has not begun. Neither of them waits for the other.
"""

import mmap
import os
from typing import Final

from shiftwork.runtime.processes.unnamed_file import unnamed_file

_SIZE: Final = 3 * 8
_BEGUN, _FIRST, _LAST = range(3)


def page_file() -> int:
    """Return the descriptor of a new file for a page."""
    fd = unnamed_file()
    os.truncate(fd, _SIZE)
    return fd


class BegunPage:
    """One end of it. Runs are numbered from 1, in the order in which they are sent and begin."""

    def __init__(self, fd: int) -> None:
        self._memory = mmap.mmap(fd, _SIZE)
        self._words = memoryview(self._memory).cast("Q")

    def begin(self, number: int) -> bool:
        """Note that a run begins now; False means that it was withdrawn. Called in the process."""
        self._words[_BEGUN] = number
        return not self._words[_FIRST] <= number <= self._words[_LAST]

    @property
    def begun(self) -> int:
        """The number of the run that has begun last."""
        return self._words[_BEGUN]

    def withdraw(self, last: int) -> int:
        """Keep the process from beginning more runs, up to this number; returns the number that has begun last.

        Called by the node, and only while the process stands still.
        """
        self._words[_FIRST], self._words[_LAST] = self.begun + 1, last
        return self.begun

    def close(self) -> None:
        self._words.release()
        self._memory.close()
