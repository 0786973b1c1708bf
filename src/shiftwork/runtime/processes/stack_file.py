"""What the threads of another process are doing: a file that its fault handler writes to when it gets a signal."""

import asyncio
import os
from collections.abc import Callable
from typing import Final

from shiftwork.runtime.processes.lifeline import unnamed_file

LONGEST_STACK: Final = 20_000
LOOK_SECONDS: Final = 0.02


class StackFile:
    """A file without a name. The process inherits its descriptor, and appends a stack for every signal."""

    def __init__(self) -> None:
        self._file = os.fdopen(unnamed_file(), "rb")
        self._read = 0

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()

    async def ask(self, signal: Callable[[], None], patience: float) -> str:
        """Have the process write down its threads; returns what it wrote, as far as it came within the patience."""
        self._read = self._size()
        signal()
        size, waited = self._read, 0.0
        while waited < patience and (size == self._read or self._size() != size):
            size = self._size()
            await asyncio.sleep(LOOK_SECONDS)
            waited += LOOK_SECONDS
        return self.unread()

    def unread(self) -> str:
        """What the process wrote since the last look: before it died of a fatal signal, for instance."""
        size = self._size()
        text = b"" if self._file.closed else os.pread(self._file.fileno(), LONGEST_STACK, self._read)
        self._read = size
        return text.decode("utf-8", "backslashreplace").strip()

    def _size(self) -> int:
        return 0 if self._file.closed else os.fstat(self._file.fileno()).st_size
