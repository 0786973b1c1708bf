"""Whose turn it is to write, among processes. It owns the wait for SQLite's write lock.

SQLite's own waiting sleeps longer and longer, so that a busy neighbour can keep a waiter out for seconds. Here a waiter
holds a second lock, the *turn*, until it has the first: a process that has just written must queue behind it. The turn
is a courtesy (an flock on a side file): a process that does not get it within a second goes on without it. Windows has
no flock: there SQLite's lock alone decides.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from typing import Final

from shiftwork.store.sqlite.file import faults
from shiftwork.store.sqlite.file.driver import Connection, Error
from shiftwork.store.sqlite.file.modes import file_mode

if sys.platform != "win32":
    import fcntl

LOCK_PATIENCE_SECONDS: Final = 30.0
COURTESY_SECONDS: Final = 1.0
SHORTEST_NAP: Final = 0.0001
LONGEST_NAP: Final = 0.002
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class WriteTurn:
    """The place in line of one process."""

    def __init__(self, path: str, side_file: str) -> None:
        self._path = path
        self._patience = LOCK_PATIENCE_SECONDS
        self._file = os.open(side_file, os.O_RDONLY | os.O_CREAT | _NO_LINK, file_mode(path))

    def begin(self, db: Connection) -> None:
        """Begin a write transaction when it is this process's turn. Raises `StoreBusyError` when patience ends."""
        in_line = self._try_line()
        try:
            if in_line and _try_begin(db):
                return
            self._wait(db, in_line=in_line)
        finally:
            self._leave_line()

    def begin_at_once(self, db: Connection) -> bool:
        """Begin a write transaction if no process writes or waits to write."""
        if not self._try_line():
            return False
        try:
            return _try_begin(db)
        finally:
            self._leave_line()

    def patiently(self, act: Callable[[], None]) -> None:
        """Do something that takes a lock for a moment, and retry until it succeeds."""
        began = time.monotonic()
        while True:
            try:
                return act()
            except Error as error:
                if not faults.is_busy(error):
                    raise
            if time.monotonic() - began > self._patience:
                raise faults.busy(self._path, self._patience)
            time.sleep(LONGEST_NAP * random.random())

    def close(self) -> None:
        os.close(self._file)

    def _wait(self, db: Connection, *, in_line: bool) -> None:
        began = time.monotonic()
        nap = SHORTEST_NAP
        while True:
            time.sleep(nap * (0.5 + random.random()))
            nap = min(nap * 1.5, LONGEST_NAP)
            waited = time.monotonic() - began
            in_line = in_line or self._try_line()
            if (in_line or waited > COURTESY_SECONDS) and _try_begin(db):
                return
            if waited > self._patience:
                raise faults.busy(self._path, waited)

    def _try_line(self) -> bool:
        if sys.platform == "win32":
            return True
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _leave_line(self) -> None:
        if sys.platform != "win32":
            fcntl.flock(self._file, fcntl.LOCK_UN)


def _try_begin(db: Connection) -> bool:
    try:
        db.execute("BEGIN IMMEDIATE")
    except Error as error:
        if faults.is_busy(error):
            return False
        raise
    return True
