"""The file of a history: lines are appended to memory that it shares with the system, which keeps them from there on.

A line is in the file as soon as it is written, whatever becomes of the process, and costs no call of the system (a
sixth of what `os.write` takes). The price is that the file grows in pieces: there are unused zeros at its end, and
spaces before a line that did not fit into the piece before. It is not flushed to the disk: a machine that loses its
power loses the newest lines.

A process that was forked begins a file of its own.
"""

import logging
import mmap
import os
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from shiftwork.history.lines import RECORDING_ENDED, VERSION, Fault, Opened, encode

logger: Final = logging.getLogger("shiftwork")

FIRST_PIECE_BYTES: Final = 1 << 16
"""The first piece is small: many processes write a few lines. Each next one doubles the file, up to this:"""
LARGEST_PIECE_BYTES: Final = 1 << 20
RESERVED_BYTES: Final = 4096
"""What stays free behind the piece in use, for the line that says why nothing follows."""
_ZEROS: Final = memoryview(bytes(LARGEST_PIECE_BYTES + RESERVED_BYTES))


class HistoryFile:
    """One file of a history, created with its first line. Safe from any thread."""

    def __init__(self, folder: Path, store: Callable[[], str]) -> None:
        self._folder = folder
        self._store = store
        """Returns the URL of the store that the lines are about."""
        self.begin_anew()

    def begin_anew(self) -> None:
        """Begin another file with the next line. In a process that was just forked, this one is the parent's."""
        self.write: Callable[[bytes], object] = _no_room
        """Appends a line, in one call that no other thread interrupts. Raises `ValueError` if there is no room."""
        self._piece: mmap.mmap | None = None
        self._fd = -1
        self._end = 0
        """Where the piece in use ends in the file."""
        self._process = ""
        self._growing = threading.Lock()

    def make_room(self, line: bytes) -> None:
        """Make the file longer, and append a line. If the disk is full, the file ends with a line that says so."""
        with self._growing:
            try:
                while True:
                    with suppress(ValueError):  # unless another thread has made room
                        self.write(line)
                        return
                    self._add_piece(len(line))
            except OSError as error:
                self._give_up(error)

    def _add_piece(self, needed: int) -> None:
        opened = b"" if self._piece is not None else self._open()
        size = max(FIRST_PIECE_BYTES, min(self._end, LARGEST_PIECE_BYTES))
        while size < len(opened) + needed:
            size *= 2
        self._lengthen(size + RESERVED_BYTES)
        piece = mmap.mmap(self._fd, size, offset=self._end)
        piece.write(opened)
        self._fill_piece()
        self._piece, self._end = piece, self._end + size
        self.write = piece.write

    def _open(self) -> bytes:
        """Create the file, and return its first line."""
        pid = os.getpid()
        self._process = f"{pid}-{secrets.token_hex(4)}"
        path = self._folder / f"{self._process}.jsonl"
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        return encode(Opened(time.monotonic(), VERSION, self._process, pid, time.time(), self._store()))

    def _fill_piece(self) -> None:
        """Leave no room in the piece in use, so that what other threads write meanwhile comes into the next one."""
        piece = self._piece
        while piece is not None and piece.tell() < len(piece):
            with suppress(ValueError):  # a short line of another thread came between
                piece.write(b" " * (len(piece) - piece.tell()))

    def _give_up(self, error: OSError) -> None:
        self._fill_piece()
        self.write = len  # forgets each line
        with suppress(OSError):
            os.lseek(self._fd, self._end, os.SEEK_SET)
            os.write(self._fd, encode(Fault(time.monotonic(), RECORDING_ENDED, self._process)))
        logger.error("the history of this process in %s ends here: %s", self._folder, error)

    def _lengthen(self, size: int) -> None:
        """Write zeros behind the piece in use. Raises `OSError` if the disk is full.

        A page that is written and then mapped costs a quarter of one that is made when it is first touched, and
        touching it cannot fail.
        """
        os.lseek(self._fd, self._end, os.SEEK_SET)
        while size:
            size -= os.write(self._fd, _ZEROS[:size])

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def _no_room(_: bytes) -> None:
    raise ValueError
