"""The connection for callers without an event loop, and the statement prepared on it. There is none on Windows."""

import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from shiftwork.store.blocking_connection import BlockingConnection
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.connecting import silence
from shiftwork.store.postgres.server.direct_call import Prepared
from shiftwork.store.postgres.server.faults import translate

Watch = Callable[[float], object]
"""Waits for so many milliseconds at most, and returns what has happened on a connection, if anything."""


class BlockingSession(BlockingConnection[psycopg.Connection[Any], Sequence[bytes | None], PGresult]):
    """Runs one prepared statement, which may take `patience` seconds."""

    def __init__(self, address: PostgresAddress, statement: Prepared, *, patience: float) -> None:
        super().__init__()
        self._address = address
        self._statement = statement
        self._patience = patience
        self._readable: Watch = _nothing
        self._writable: Watch = _nothing

    def ask(self, link: psycopg.Connection[Any], request: Sequence[bytes | None]) -> PGresult | None:
        """Run the statement with these arguments."""
        try:
            result = self._ask(link.pgconn, request, time.monotonic() + self._patience)
        except TimeoutError:
            raise silence(self._address.place, self._patience) from None
        except psycopg.Error as error:
            raise translate(error, self._address.place) from error
        return result if result is not None and result.status == ExecStatus.TUPLES_OK else None

    def _ask(self, pgconn: PGconn, arguments: Sequence[bytes | None], until: float) -> PGresult | None:
        pgconn.send_query_prepared(self._statement.name, arguments, self._statement.formats)
        while pgconn.flush():  # a large one is not sent at once
            _await(self._writable, until)
        while pgconn.is_busy():
            _await(self._readable, until)
            pgconn.consume_input()
        result = pgconn.get_result()
        while pgconn.get_result() is not None:
            pass
        return result

    def connect(self) -> psycopg.Connection[Any] | None:
        """Connect, and prepare the statement."""
        if sys.platform == "win32":
            return None
        try:
            conn = psycopg.Connection.connect("", autocommit=True, prepare_threshold=None, **self._address.options)
        except psycopg.Error:
            return None
        self._readable = _poll(conn, select.POLLIN)
        self._writable = _poll(conn, select.POLLIN | select.POLLOUT)
        self.has_input: Callable[[], object] = partial(self._readable, 0)
        with suppress(psycopg.Error):
            if conn.pgconn.prepare(self._statement.name, self._statement.text).status == ExecStatus.COMMAND_OK:
                return conn
        self.end(conn)
        return None

    def end(self, link: psycopg.Connection[Any]) -> None:
        """Close a connection."""
        link.pgconn.finish()


def _poll(conn: psycopg.Connection[Any], events: int) -> Watch:
    poll = select.poll()
    poll.register(conn.fileno(), events)
    return poll.poll


def _nothing(_milliseconds: float) -> object:
    return None


def _await(events: Watch, until: float) -> None:
    if not events(max(0.0, until - time.monotonic()) * 1000):
        raise TimeoutError
