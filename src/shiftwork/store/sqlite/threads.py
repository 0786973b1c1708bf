"""The threads behind a store: one writes, one reads, one listens to the doorbell. It owns when they start and end.

Nothing is started, opened or created before the first call. Every thread ends with `close`, or when the store that used
it is garbage-collected.
"""

import asyncio
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Collection
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final, TypeVar

from shiftwork.errors import LifecycleError
from shiftwork.store.bells import Bells, LoopBell
from shiftwork.store.sqlite import driver, faults, schema
from shiftwork.store.sqlite.calls import CallThread
from shiftwork.store.sqlite.doorbell import DoorbellListener, Doorbells
from shiftwork.store.sqlite.file_modes import create_database, create_folder, file_mode
from shiftwork.store.sqlite.poller import Poller
from shiftwork.store.sqlite.reader import Reader
from shiftwork.store.sqlite.session import SqliteSession
from shiftwork.store.sqlite.turn import WriteTurn
from shiftwork.store.sqlite.writer import Writer

T = TypeVar("T")
UNSYNCED: Final = ("off", "normal")
"""The settings of `synchronous` under which a commit does not wait for the disk."""


class StoreThreads:
    """The threads of one open store."""

    def __init__(self, path: str, *, synchronous: str, namespace: str) -> None:
        self._path = path
        self._side = Path(f"{path}.side")
        self._synchronous = synchronous
        self._namespace = namespace
        self._bells = Bells()
        self._lock = threading.Lock()
        self._closed = False
        self._writer: CallThread | None = None
        self._reader: CallThread | None = None
        self._listener: DoorbellListener | Poller | None = None
        self._last_write: dict[AbstractEventLoop, Future[Any]] = {}
        self._number = 0
        """The number of the namespace, once the writer has prepared the file."""

    # ── calls ────────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self, todo: Callable[[SqliteSession], T], *, quick: bool = False) -> "Future[T]":
        """Run it on the writer. A quick one may run at once on this thread, unless each commit waits for the disk."""
        with self._lock:
            answer = self._started_writer().call(todo, quick=quick and self._synchronous in UNSYNCED)
            loop = answer.get_loop()
            if loop not in self._last_write:
                self._last_write = {each: last for each, last in self._last_write.items() if not each.is_closed()}
            self._last_write[loop] = answer
        return answer

    def pending_write(self) -> "Future[Any] | None":
        """The last write that this event loop called, if it is still waiting for it."""
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
        """A bell that writes in every process ring."""
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
            self._listener = self._reader = self._writer = None
        for thread in threads:
            thread.end()
        return threads

    # ── the writer ───────────────────────────────────────────────────────────────────────────────────────────────

    def _started_writer(self) -> CallThread:
        if self._closed:
            raise LifecycleError(f"the store {self._path} is closed")
        if self._writer is None or self._writer.ended:
            self._writer = CallThread("shiftwork-writer", self._open_writer)
        return self._writer

    def _open_writer(self) -> Writer:
        schema.check_driver()
        with ExitStack() as opened:
            try:
                writer = self._prepare_writer(opened)
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
        create_database(self._path)  # first, because the files beside it follow its mode
        create_folder(self._side, self._path)
        turn = opened.enter_context(closing(WriteTurn(self._path, str(self._side / "turn"))))
        db = opened.enter_context(closing(driver.connect(self._path)))
        turn.patiently(lambda: schema.require_ours(db, self._path))
        turn.patiently(lambda: driver.prepare_writer(db, self._synchronous))
        self._number = schema.prepare(db, turn, path=self._path, namespace=self._namespace)
        doorbells = opened.enter_context(closing(Doorbells(self._side, self._namespace, self._own_bell)))
        return Writer(SqliteSession(db, self._number), turn, path=self._path, bells=self._bells, doorbells=doorbells)

    # ── the reader ───────────────────────────────────────────────────────────────────────────────────────────────

    def _open_reader(self, writer: CallThread) -> Reader:
        writer.await_start()
        try:
            db = driver.connect(self._path)
            driver.prepare_reader(db)
        except driver.Error as error:
            raise faults.translate(error, self._path) from error
        return Reader(SqliteSession(db, self._number), path=self._path)

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
