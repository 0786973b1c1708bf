"""Checkpoints, for a SQLite that has the WAL-reset bug (before 3.51.3). Newer ones checkpoint by themselves.

The bug needs a checkpoint in one connection while another connection writes. So SQLite's own checkpoints are off, and
here one is only made while this process holds the write lock: nobody writes then, and nobody else checkpoints. It owns
the size of the log; it never changes data.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

from windlass.store.sqlite.driver import Connection, Error

LOG_BYTES: Final = 8 << 20
"""How much the log may grow between two checkpoints."""


class Checkpointer:
    """Keeps the log from growing for ever."""

    def __init__(self, writer: Connection, other: Connection, *, path: str) -> None:
        self._writer = writer
        self._other = other
        self._log = Path(f"{path}-wal")
        self._size = 0
        """The log's size after the last checkpoint. The log is cut back once it is reset, so less means new content."""

    def after_commit(self) -> None:
        """Checkpoint if the log has grown enough, and if the write lock is free."""
        size = self._log_size()
        if size < self._size:
            self._size = 0
        if size < self._size + LOG_BYTES:
            return
        with suppress(Error):  # somebody writes: after the next commit, then
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                self._other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                self._size = size
            finally:
                self._writer.execute("ROLLBACK")

    def close(self) -> None:
        self._other.close()

    def _log_size(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0
