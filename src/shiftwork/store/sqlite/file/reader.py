"""Serves the calls that read, on a connection of its own, so that no reader waits for a writer. It cannot write.

Each call sees one moment: the newest commit when it began, which includes every write that has returned before.
"""

import time
from contextlib import suppress
from typing import Final

from shiftwork.store.sqlite.file import faults
from shiftwork.store.sqlite.file.calls import QueuedCall
from shiftwork.store.sqlite.file.driver import Error, tolerate_damage
from shiftwork.store.sqlite.file.open_file import OpenFile
from shiftwork.store.sqlite.file.session import SqliteSession

PATIENCE_SECONDS: Final = 10.0
NAP_SECONDS: Final = 0.005


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
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._read(call)
            except Error as error:
                if faults.is_damage(error) and self._session.db.text_factory is str:
                    tolerate_damage(self._session.db)
                elif not faults.is_busy(error) or time.monotonic() > until:
                    raise
                else:
                    time.sleep(NAP_SECONDS)
            else:
                return

    def _read(self, call: QueuedCall) -> None:
        db = self._session.db
        db.execute("BEGIN")
        try:
            self._session.look()
            call.value = call.todo(self._session)
        finally:
            with suppress(Error):
                db.execute("COMMIT")
