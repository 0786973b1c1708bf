"""The fallback where no doorbell can be made: check twice a second whether another process has written."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from shiftwork.store.sqlite.driver import Connection, Error
from shiftwork.store.sqlite.sql import SQL

INTERVAL_SECONDS: Final = 0.5


class Poller:
    """A thread that reads the file's version, and rings when it has changed."""

    def __init__(self, db: Connection, ring: Callable[[], None]) -> None:
        self._db = db
        self._ring = ring
        self._seen = self._version()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="shiftwork-poller", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop checking, without waiting for it."""
        self._closed.set()

    def join(self) -> None:
        """Block until it has stopped."""
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(INTERVAL_SECONDS):
            version = self._version()
            if version != self._seen:
                self._seen = version
                self._ring()
        self._db.close()

    def _version(self) -> int:
        with suppress(Error):  # locked for a moment: the next check will show
            return int(self._db.execute(SQL["read_data_version"]).fetchone()[0])
        return -1
