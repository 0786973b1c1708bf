"""Runs the calls of the writer's and the reader's thread in transactions (`calls` says how they get to the thread).

The writer runs all operations that wait in one transaction and commits them together, in the order in which they were
called. One that fails harms no other of its group: the group is rolled back, and then each runs by itself. No call
returns before the commit, and topics are rung after it.

The reader has a connection of its own, which cannot write, so no read waits for a write. Each call sees the newest
commit when it began, which includes every write that has returned before.

A process keeps what it has open, and would go on writing into a file that was deleted, moved away or replaced, and that
no other process ever reads. So after each commit, before any call returns, it is checked that the path still leads to
the open file.
"""

import os
import random
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from shiftwork.errors import StoreBusyError, StoreUnavailableError
from shiftwork.store.bells import Bells
from shiftwork.store.sqlite.file import faults
from shiftwork.store.sqlite.file.calls import QueuedCall
from shiftwork.store.sqlite.file.checkpoint import Checkpointer
from shiftwork.store.sqlite.file.doorbell import Doorbells
from shiftwork.store.sqlite.file.driver import Connection, Error, tolerate_damage
from shiftwork.store.sqlite.file.modes import file_mode
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession

if sys.platform != "win32":
    import fcntl

# ── the turn to write ────────────────────────────────────────────────────────────────────────────────────────────────

LOCK_PATIENCE_SECONDS: Final = 30.0
COURTESY_SECONDS: Final = 1.0
SHORTEST_NAP: Final = 0.0001
LONGEST_NAP: Final = 0.002
_NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)


class WriteTurn:
    """Whose turn it is to write, among processes: the place in line of this one for SQLite's write lock.

    SQLite's own waiting sleeps longer and longer, so that a busy neighbour can keep a waiter out for seconds. Here a
    waiter holds a second lock, the *turn*, until it has the first: a process that has just written must queue behind
    it. The turn is a courtesy (an flock on a side file): a process that does not get it within a second goes on without
    it. Windows has no flock: there SQLite's lock alone decides.
    """

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


# ── the file that is open ────────────────────────────────────────────────────────────────────────────────────────────


class OutdatedReaderError(Exception):
    """The reader found a file that the writer has not opened yet. Callers never see it: the call is repeated."""


class OpenFile:
    """The file that a path led to when this was made."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._identity = _identity(path)

    def gone(self) -> StoreUnavailableError | None:
        """Return the error for callers if the path does not lead to this file now."""
        there = _identity(self._path)
        if there == self._identity:
            return None
        return deleted(self._path) if there is None else replaced(self._path)


def exists(path: str) -> bool:
    """Return whether the path leads to a file."""
    return _identity(path) is not None


def deleted(path: str) -> StoreUnavailableError:
    """Return the error while there is no file."""
    return StoreUnavailableError(
        f"{path} was deleted or moved away while it was in use. Put it back; if it stays away for a few seconds, a "
        "new, empty store is created there."
    )


def replaced(path: str) -> StoreUnavailableError:
    """Return the error for a file that was replaced again and again."""
    return StoreUnavailableError(f"{path} is being replaced by other files. Stop what replaces it, then try again.")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - called for every commit
    except OSError:
        return None
    return found.st_dev, found.st_ino


# ── the threads ──────────────────────────────────────────────────────────────────────────────────────────────────────

READ_PATIENCE_SECONDS: Final = 10.0
"""How long a read is retried while another connection keeps it out."""
READ_NAP_SECONDS: Final = 0.005


class Writer:
    """A session that writes, in groups."""

    def __init__(
        self,
        session: SqliteSession,
        turn: WriteTurn,
        *,
        path: str,
        file: OpenFile,
        bells: Bells,
        doorbells: Doorbells,
    ) -> None:
        self._session = session
        self._turn = turn
        self._path = path
        self._file = file
        self.last_fence: int = 0
        """The last fence of the file, once that is gone from its path and this is closed."""
        self._bells = bells
        self._doorbells = doorbells
        self._checkpointer = Checkpointer(session.db, path=path)

    def serve(self, group: list[QueuedCall]) -> None:
        """Run these calls, and give each its value or its error."""
        error = self._together(group, self._begin)
        if error is not None and len(group) > 1 and not isinstance(error, StoreBusyError):
            for call in group:
                call.error = self._together([call], self._begin)
        elif error is not None:
            for call in group:
                call.error = error

    def serve_at_once(self, call: QueuedCall) -> bool:
        """Run this call, if no other process writes."""
        error = self._together([call], self._begin_at_once)
        if isinstance(error, StoreBusyError):
            return False
        call.error = error
        return True

    def outdated(self) -> Exception | None:
        return self._file.gone()

    def upkeep_due(self) -> bool:
        return self._checkpointer.due()

    def upkeep(self) -> None:
        self._checkpointer.checkpoint()

    def close(self) -> None:
        if self.outdated() is not None:
            self._empty_log()
        self._checkpointer.close()
        self._doorbells.close()
        self._session.db.close()
        self._turn.close()

    def _empty_log(self) -> None:
        """Copy the log into a file that is gone from its path: where it is now, if anywhere, there is no log."""
        with suppress(Error, TypeError, ValueError):
            self.last_fence = int(self._session.value("read_store"))
            self._session.db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()

    def _begin(self) -> None:
        self._turn.begin(self._session.db)

    def _begin_at_once(self) -> None:
        if not self._turn.begin_at_once(self._session.db):
            raise faults.busy(self._path, 0.0)

    def _together(self, group: list[QueuedCall], begin: Callable[[], None]) -> Exception | None:
        """Run these calls in one transaction. Returns the error that rolled it back, if one did."""
        try:
            begin()
            self._commit(group)
        except Error as error:
            self._undo()
            if faults.is_damage(error) and self._session.db.text_factory is str:
                tolerate_damage(self._session.db)
                return self._together(group, begin)
            return faults.translate(error, self._path)
        except Exception as error:  # noqa: BLE001 - an operation's error is its caller's, whatever it is
            self._undo()
            return error
        except BaseException:  # an interrupt, where a call is served on the main thread
            self._undo()
            raise
        self._ring()
        return None

    def _commit(self, group: list[QueuedCall]) -> None:
        session = self._session
        session.refresh()
        for call in group:
            call.value = call.todo(session)
        session.flush()
        session.cursor.execute("COMMIT")

    def _ring(self) -> None:
        topics = self._session.take_topics()
        if topics:
            self._bells.ring(topics)
            self._doorbells.ring(topics)

    def _undo(self) -> None:
        with suppress(Error):
            if self._session.db.in_transaction:
                self._session.db.execute("ROLLBACK")
        self._session.forget()


class Reader:
    """A session that reads."""

    def __init__(self, session: SqliteSession, *, path: str, file: OpenFile) -> None:
        self._session = session
        self._path = path
        self._file = file

    def serve(self, group: list[QueuedCall]) -> None:
        """Run these calls one after the other, and give each its value or its error."""
        for call in group:
            try:
                self._patiently(call)
            except Error as error:
                call.error = faults.translate(error, self._path)
            except Exception as error:  # noqa: BLE001 - an operation's error is its caller's, whatever it is
                call.error = error

    def serve_at_once(self, call: QueuedCall) -> bool:  # noqa: ARG002 - a search may take long
        """Return False: reading belongs to the thread."""
        return False

    def outdated(self) -> Exception | None:
        return self._file.gone()

    def upkeep_due(self) -> bool:
        return False

    def upkeep(self) -> None:
        """Do nothing: a reader needs no maintenance."""

    def close(self) -> None:
        self._session.db.close()

    def _patiently(self, call: QueuedCall) -> None:
        """Retry while another connection recovers or closes the file, the only times that keep a reader out."""
        until = time.monotonic() + READ_PATIENCE_SECONDS
        while True:
            try:
                self._read(call)
            except Error as error:
                if faults.is_damage(error) and self._session.db.text_factory is str:
                    tolerate_damage(self._session.db)
                elif not faults.is_busy(error) or time.monotonic() > until:
                    raise
                else:
                    time.sleep(READ_NAP_SECONDS)
            else:
                return

    def _read(self, call: QueuedCall) -> None:
        db = self._session.db
        db.execute("BEGIN")
        try:
            self._session.refresh()
            call.value = call.todo(self._session)
        finally:
            with suppress(Error):
                db.execute("COMMIT")
