"""Checkpoints: the contents of the log go into the file, so that the log can start over. It owns the size of the log.

SQLite would do it by itself, in the middle of some unlucky commit. Here the writer's thread does it between two groups,
and calls that are served on the event loop never pay for it.

The log starts over with the first write after all of it was copied, unless something still reads from it. Where
something always reads, that moment never comes by itself. So if the log has grown on after a checkpoint, the next one
keeps writers out for a moment, in which reads from the log come to an end: a read that begins meanwhile
reads the file alone. That moment grows with each try.

A SQLite before 3.51.3 can damage the file if one connection checkpoints while another writes. There, this process only
checkpoints while it holds the write lock, so that no other connection writes or checkpoints.
"""

import os
import time
from contextlib import suppress
from typing import Final

from shiftwork.store.sqlite.file.driver import Connection, Error, connect, wal_reset_fixed

LOG_BYTES: Final = 64 << 20
"""How much the log may grow between two checkpoints. Each checkpoint waits for the disk twice, however small it is.
Jobs of flows lie apart, so that a batch of them writes ten times as many pages as one of plain jobs: twice the log
makes them 4 % faster."""
LOG_KEPT: Final = 7 / 8
"""The share of the log file that stays when the log starts over. A shorter file shows that it did, and what stays is
quicker to overwrite."""
RETRY_SHARE: Final = 1 / 16
"""By how much of its size the log may grow on after a checkpoint before the next one. Beside a reader that never ends,
tries become rare: each of them keeps writers out for as long as it waits."""
FIRST_PATIENCE_SECONDS: Final = 0.005
LONGEST_PATIENCE_SECONDS: Final = 0.5
"""How long a checkpoint waits for readers, at most: while it does, nothing is written."""
CHECKPOINT_NAP_SECONDS: Final = 0.001


class Checkpointer:
    """Keeps the log from growing without bound."""

    def __init__(self, writer: Connection, *, path: str) -> None:
        self._writer = writer
        self._other = None if wal_reset_fixed() else connect(path)
        self._log = f"{path}-wal"
        writer.execute("PRAGMA wal_autocheckpoint = 0")
        writer.execute(f"PRAGMA journal_size_limit = {int(LOG_BYTES * LOG_KEPT)}")
        self._size = 0
        """The log's size after the last checkpoint, until the log starts over: then its file is smaller."""
        self._patience = 0.0
        """How long the next checkpoint waits for readers."""

    def due(self) -> bool:
        """Return whether the log has grown enough. Called between transactions."""
        try:
            size = os.stat(self._log).st_size  # noqa: PTH116 - called for every commit
        except OSError:
            return False
        if size < self._size:
            self._size, self._patience = 0, 0.0
        return size > (self._size * (1 + RETRY_SHARE) if self._size else LOG_BYTES)

    def checkpoint(self) -> None:
        """Copy the log into the file as far as readers allow. It waits for the disk."""
        with suppress(Error, OSError):  # another process checkpoints or writes: the next commit tries again
            size = os.stat(self._log).st_size  # noqa: PTH116
            if self._other is not None:
                self._checkpoint_alone(self._other)
            elif self._patience:
                self._restart()
            else:
                self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._size = size
            self._patience = min(LONGEST_PATIENCE_SECONDS, 2 * self._patience or FIRST_PATIENCE_SECONDS)

    def close(self) -> None:
        """Close its own connection."""
        if self._other is not None:
            self._other.close()

    def _restart(self) -> None:
        """Copy everything, and wait until nothing reads from the log, so that the next write starts it over."""
        self._writer.execute(f"PRAGMA busy_timeout = {int(self._patience * 1000)}")
        try:
            self._writer.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
        finally:
            self._writer.execute("PRAGMA busy_timeout = 0")

    def _checkpoint_alone(self, other: Connection) -> None:
        """Do the same while nothing else writes. SQLite does not say whether something reads: the time has to do."""
        until = time.monotonic() + self._patience
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            while not _is_whole(other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()):
                if time.monotonic() >= until:
                    return
                time.sleep(CHECKPOINT_NAP_SECONDS)
            time.sleep(max(0.0, until - time.monotonic()))
        finally:
            self._writer.execute("ROLLBACK")


def _is_whole(result: tuple[int, int, int]) -> bool:
    """Return whether a checkpoint, of which this is the result, has copied the whole log."""
    busy, pages, copied = result
    return not busy and pages == copied
