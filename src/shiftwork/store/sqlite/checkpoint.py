"""Checkpoints: the contents of the log go into the file, so that the log can start over. It owns the size of the log.

SQLite would do it by itself, in the middle of some unlucky commit. Here the writer's thread does it between two groups,
and calls that are served on the event loop never pay for it.

A SQLite before 3.51.3 can damage the file if one connection checkpoints while another writes. There, this process only
checkpoints while it holds the write lock, so that no other connection writes or checkpoints.
"""

import os
from contextlib import suppress
from typing import Final

from shiftwork.store.sqlite.driver import Connection, Error, connect, wal_reset_fixed

LOG_BYTES: Final = 64 << 20
"""How much the log may grow between two checkpoints. Each checkpoint waits for the disk twice, however small it is.
Jobs of flows lie apart, so that a batch of them writes ten times as many pages as one of plain jobs: twice the log
makes them 4 % faster."""
LOG_KEPT: Final = 7 / 8
"""The share of the log file that stays when the log starts over. A shorter file shows that it did, and what stays is
quicker to overwrite."""


class Checkpointer:
    """Keeps the log from growing without bound."""

    def __init__(self, writer: Connection, *, path: str) -> None:
        self._writer = writer
        self._other = None if wal_reset_fixed() else connect(path)
        self._log = f"{path}-wal"
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute(f"PRAGMA journal_size_limit = {int(LOG_BYTES * LOG_KEPT)}")
        self._size = 0
        """The log's size after the last checkpoint. A smaller file means that the log has started over."""

    def due(self) -> bool:
        """Whether the log has grown enough. Called between transactions."""
        try:
            size = os.stat(self._log).st_size  # noqa: PTH116 - called for every commit
        except OSError:
            return False
        if size < self._size:
            self._size = 0
        return size > self._size + LOG_BYTES

    def checkpoint(self) -> None:
        """Copy the log into the file as far as readers allow. It waits for the disk."""
        with suppress(Error, OSError):  # another process checkpoints or writes: the next commit tries again
            size = os.stat(self._log).st_size  # noqa: PTH116
            if self._other is None:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            else:
                self._checkpoint_alone(self._other)
            self._size = size

    def close(self) -> None:
        """Close its own connection."""
        if self._other is not None:
            self._other.close()

    def _checkpoint_alone(self, other: Connection) -> None:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            self._writer.execute("ROLLBACK")
