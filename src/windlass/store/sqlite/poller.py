"""The fallback where no doorbell can be made: look twice a second whether somebody has written."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from windlass.store.sqlite.driver import Connection, Error

INTERVAL_SECONDS: Final = 0.5


class Poller:
    """A thread that looks at the file's version, and rings when it has moved."""

    def __init__(self, connect: Callable[[], Connection], ring: Callable[[], None]) -> None:
        self._connect = connect
        self._ring = ring
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="windlass-poller", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stop looking. Does not wait for that."""
        self._closed.set()

    def join(self) -> None:
        """Block until it has stopped."""
        self._thread.join()

    def _run(self) -> None:
        db = self._connect()
        seen = None
        while not self._closed.wait(INTERVAL_SECONDS):
            with suppress(Error):  # locked for a moment: the next look will do
                version = db.execute("PRAGMA data_version").fetchone()[0]
                if seen is not None and version != seen:
                    self._ring()
                seen = version
        db.close()
