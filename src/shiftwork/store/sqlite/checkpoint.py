"""Checkpoints: what the log holds goes into the file, so that the log can begin anew. It owns the size of the log.

SQLite would do it by itself, in the middle of some unlucky commit. Here the writer's thread does it between two groups,
and calls that are served on the event loop never pay for it.

A SQLite before 3.51.3 can damage the file if one connection checkpoints while another one writes. There, a checkpoint
is only made while this process holds the write lock: nobody writes then, and nobody else checkpoints.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from shiftwork.store.sqlite.driver import Connection, Error, connect, wal_reset_fixed

LOG_BYTES: Final = 32 << 20
"""How much the log may grow between two checkpoints. Each waits for the disk twice, whatever it copies."""
LOG_KEPT: Final = 7 / 8
"""The share that stays when the log begins anew: less is the sign that it has, and what stays is quicker to write."""


class Checkpointer:
    """Keeps the log from growing for ever."""

    def __init__(self, writer: Connection, *, path: str) -> None:
        self._writer = writer
        self._other = None if wal_reset_fixed() else connect(path)
        self._log = Path(f"{path}-wal")
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute(f"PRAGMA journal_size_limit = {int(LOG_BYTES * LOG_KEPT)}")
        self._size = 0
        """The log's size after the last checkpoint. It is cut back when it begins anew: less means new content."""

    def due(self) -> bool:
        """Whether the log has grown enough. Between transactions."""
        try:
            size = self._log.stat().st_size
        except OSError:
            return False
        if size < self._size:
            self._size = 0
        return size > self._size + LOG_BYTES

    def checkpoint(self) -> None:
        """Empty the log as far as readers allow. It waits for the disk."""
        with suppress(Error, OSError):  # somebody else checkpoints, or writes: after the next commit, then
            size = self._log.stat().st_size
            if self._other is None:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            else:
                self._checkpoint_alone(self._other)
            self._size = size

    def close(self) -> None:
        """Release the connection that is its own."""
        if self._other is not None:
            self._other.close()

    def _checkpoint_alone(self, other: Connection) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            self._writer.execute("ROLLBACK")
