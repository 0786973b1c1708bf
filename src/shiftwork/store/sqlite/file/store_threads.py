"""The threads behind a store: one writes, one reads, one listens to the doorbell. It owns when they start and end.

Nothing is started, opened or created before the first call. Every thread ends with `close`, or when the store that used
it is garbage-collected.

If the file is deleted or replaced while it is open, the writer's thread closes everything, opens the file that is at
the path then, and serves the calls that wait on that one. A deleted file is waited for, for a moment, before a new one
is created.
"""

import asyncio
import logging
import threading
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, TypeVar

from shiftwork.errors import LifecycleError
from shiftwork.store.bells import Bells, LoopBell
from shiftwork.store.sqlite.file import call_servers, driver, faults, schema
from shiftwork.store.sqlite.file.call_servers import OpenFile, Reader, Writer, WriteTurn
from shiftwork.store.sqlite.file.calls import CallThread, QueuedCall
from shiftwork.store.sqlite.file.doorbell import DoorbellListener, Doorbells, Poller
from shiftwork.store.sqlite.file.modes import (
    create_database,
    create_folder,
    file_mode,
    refuse_foreign_database,
    refuse_foreign_links,
)
from shiftwork.store.sqlite.file.sqlite_session import SqliteSession

logger: Final = logging.getLogger("shiftwork")

T = TypeVar("T")
MISSING_SECONDS: Final = 5.0
"""How long a deleted file is waited for before a new one is created in its place."""
FENCES_AHEAD: Final = 1_000_000
"""By how many fences another process may have been ahead of what the old file shows."""
UNSYNCED: Final = ("off", "normal")
"""The settings of `synchronous` under which a commit does not wait for the disk."""


class StoreThreads:
    """The threads of one open store."""

    def __init__(self, path: str, given: Path, *, synchronous: str, namespace: str) -> None:
        self._path = path
        self._given = given
        """The path as it was written, in which there may be links."""
        self._side = Path(f"{path}.side")
        self._synchronous = synchronous
        self._namespace = namespace
        self._bells = Bells()
        self._lock = threading.Lock()
        self._closed = False
        self._writer: CallThread | None = None
        self._reader: CallThread | None = None
        self._listener: DoorbellListener | Poller | None = None
        self.quick_writer: CallThread | None = None
        """The writer while it runs, if quick calls may be served at once: no commit waits for the disk."""
        self._last_write: dict[AbstractEventLoop, Future[Any]] = {}
        self._served: Writer | None = None
        """The server of the writer's thread since the store was opened, or its last one."""
        self._missing_since: float | None = None
        self._number = 0
        """The number of the namespace, once the writer has prepared the file."""

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, todo: Callable[[SqliteSession], T], *, quick: bool = False) -> "Future[T]":
        """Run it on the writer. A quick one may run on this thread, unless each commit waits for the disk."""
        with self._lock:
            answer = self._started_writer().call(todo, quick=quick and self._synchronous in UNSYNCED)
            loop = answer.get_loop()
            if loop not in self._last_write:
                self._last_write = {each: last for each, last in self._last_write.items() if not each.is_closed()}
            self._last_write[loop] = answer
        return answer

    def write_here(self, todo: Callable[[SqliteSession], Any]) -> QueuedCall | None:
        """Run it on this thread, which runs no event loop, if nothing is in its way; otherwise return None."""
        writer = self._writer
        return None if writer is None or writer.ended else writer.call_here(todo)

    def pending_write(self) -> "Future[Any] | None":
        """Return the last write that this event loop called, if it is still waiting for it."""
        last = self._last_write.get(asyncio.get_running_loop())
        return None if last is None or last.done() else last

    def read(self, todo: Callable[[SqliteSession], T]) -> "Future[T]":
        """Run it on the reader."""
        with self._lock:
            writer = self._started_writer()
            if self._reader is None or self._reader.ended:
                self._reader = CallThread("shiftwork-reader", lambda: self._open_reader(writer))
            return self._reader.call(todo)

    def listen(self, topics: Collection[str]) -> LoopBell:
        """Return a bell that writes in every process ring."""
        bell = self._bells.listen(topics)
        with self._lock:
            if self._side.is_dir():
                self._start_listening()
        return bell

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def reopen(self) -> None:
        """Accept calls, also after a close."""
        with self._lock:
            self._closed = False

    def close(self) -> None:
        """Finish the calls in progress, end every thread, and wait for that."""
        for thread in self._end():
            thread.join()
        self._bells.close()

    def abandon(self) -> None:
        """End every thread soon, without waiting: no call will come."""
        self._end()

    def _end(self) -> list[CallThread | DoorbellListener | Poller]:
        with self._lock:
            self._closed = True
            threads = [thread for thread in (self._listener, self._reader, self._writer) if thread is not None]
            self._listener = self._reader = self._writer = self._served = self.quick_writer = None
        for thread in threads:
            thread.end()
        return threads

    # ── the writer ───────────────────────────────────────────────────────────────────────────────────────────────

    def _started_writer(self) -> CallThread:
        if self._closed:
            raise LifecycleError(f"the store {self._path} is closed")
        if self._writer is None or self._writer.ended:
            self._writer = CallThread("shiftwork-writer", self._open_writer)
            self.quick_writer = self._writer if self._synchronous in UNSYNCED else None
        return self._writer

    def _open_writer(self) -> Writer:
        schema.check_driver()
        with ExitStack() as opened:
            try:
                writer = self._served = self._prepare_writer(opened)
            except driver.Error as error:
                raise faults.translate(error, self._path) from error
            except OSError as error:
                raise faults.unavailable(error, self._path) from error
            opened.pop_all()  # the writer closes them from now on
        with self._lock:
            if self._bells.topics():
                self._start_listening()
        return writer

    def _prepare_writer(self, opened: ExitStack) -> Writer:
        before = self._served
        if before is not None:
            self._close_others()
            self._await_file()
        turn, db, file = self._open_file(opened)
        session = SqliteSession(db, self._number)
        if before is not None:
            self._adopt(session, turn, before.last_fence)
        doorbells = opened.enter_context(closing(Doorbells(self._side, self._namespace, self._own_bell)))
        return Writer(session, turn, path=self._path, file=file, bells=self._bells, doorbells=doorbells)

    def _open_file(self, opened: ExitStack) -> tuple[WriteTurn, driver.Connection, OpenFile]:
        """Open the file, create what is missing in it, and learn the number of the namespace."""
        refuse_foreign_links(self._given)
        create_folder(self._side, self._path)
        turn = opened.enter_context(closing(WriteTurn(self._path, str(self._side / "turn"))))
        before = OpenFile(self._path) if call_servers.exists(self._path) else None
        create_database(self._path)
        refuse_foreign_database(self._path)
        db = opened.enter_context(closing(driver.connect(self._path)))
        turn.patiently(lambda: schema.require_ours(db, self._path))
        turn.patiently(lambda: driver.prepare_writer(db, self._synchronous))
        file = OpenFile(self._path)
        if before is not None and before.gone() is not None:  # it is not sure which of them was opened
            raise call_servers.replaced(self._path)
        self._number = schema.prepare(db, turn, path=self._path, namespace=self._namespace)
        refuse_foreign_database(self._path)  # what another user has put there in between
        return turn, db, file

    # ── a file that was deleted or replaced ──────────────────────────────────────────────────────────────────────

    def _close_others(self) -> None:
        """Close what else is open here: two files that share one log's name must not be open in the same process."""
        with self._lock:
            others = [thread for thread in (self._listener, self._reader) if thread is not None]
            self._listener = self._reader = None
        for thread in others:
            thread.end()
            thread.join()

    def _await_file(self) -> None:
        """Raise an error if the file was deleted a moment ago: a person may be about to put another one there."""
        if call_servers.exists(self._path):
            self._missing_since = None
            return
        now = time.monotonic()
        if self._missing_since is None:
            self._missing_since = now
            logger.error("%s", call_servers.deleted(self._path))
        if now - self._missing_since < MISSING_SECONDS:
            raise call_servers.deleted(self._path)
        self._missing_since = None

    def _adopt(self, session: SqliteSession, turn: WriteTurn, last_fence: int) -> None:
        """Make claims report the new file, and raise its fences above all that were handed out before."""
        logger.error(
            "%s was deleted or replaced while it was in use. This process goes on with the file that is there now; "
            "jobs that are only in the old one do not run",
            self._path,
        )
        turn.begin(session.db)
        session.run("raise_fence", (last_fence + FENCES_AHEAD,))
        session.db.execute("COMMIT")
        session.replaced = True
        self._bells.ring_all()

    # ── the reader ───────────────────────────────────────────────────────────────────────────────────────────────

    def _open_reader(self, writer: CallThread) -> Reader:
        writer.await_start()
        served = self._served
        if served is None or served.outdated() is not None:
            raise call_servers.OutdatedReaderError  # the writer must open the new file first
        try:
            file = OpenFile(self._path)
            refuse_foreign_database(self._path)
            db = driver.connect(self._path)
            driver.prepare_reader(db)
        except driver.Error as error:
            raise faults.translate(error, self._path) from error
        return Reader(SqliteSession(db, self._number), path=self._path, file=file)

    # ── bells ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _own_bell(self) -> str | None:
        listener = self._listener
        return listener.name if isinstance(listener, DoorbellListener) else None

    def _ring(self, topics: Collection[str] | None) -> None:
        if topics is None:
            self._bells.ring_all()
        else:
            self._bells.ring(topics)

    def _start_listening(self) -> None:
        """Listen to what other processes ring, from now on."""
        if self._listener is not None or self._closed:
            return
        try:
            self._listener = DoorbellListener(self._side, self._namespace, self._ring, file_mode(self._path))
        except OSError:
            self._listener = Poller(driver.connect(self._path), self._bells.ring_all)
