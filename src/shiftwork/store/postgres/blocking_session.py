"""One connection for callers that have no event loop, used by one thread at a time.

A call by way of an event loop in another thread wakes two threads for each of its steps. A caller that finds the line
taken goes that way, where the jobs of many callers are added together. So does every call that the server rejects: this
module sends one prepared statement, and leaves what is unusual to the others. On Windows all of them go that way.
"""

import select
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

from shiftwork.store.postgres.address import PostgresAddress
from shiftwork.store.postgres.connecting import silence
from shiftwork.store.postgres.direct_call import Prepared
from shiftwork.store.postgres.faults import translate

CALLS_BEFORE: Final = 2
"""So many calls go another way first: a program that makes one or two needs no connection for them."""
Watch = Callable[[float], object]
"""Waits for so many milliseconds at most, and returns what has happened on a connection, if anything."""


class BlockingSession:
    """A connection that is opened when it pays, and the statement that is prepared on it."""

    def __init__(self, address: PostgresAddress, statement: Prepared) -> None:
        self._address = address
        self._statement = statement
        self._lock = threading.Lock()
        self._calls = 0
        self._conn: psycopg.Connection[Any] | None = None
        self._readable: Watch = _nothing
        self._writable: Watch = _nothing

    def run(self, arguments: Sequence[bytes | None], patience: float) -> PGresult | None:
        """Run the statement and return its result; None if it has not happened, and has to go another way.

        It may take `patience` seconds.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._run(arguments, patience) if self._is_ready() else None
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection. The next calls open another one."""
        with self._lock:
            self._drop()

    def _is_ready(self) -> bool:
        if self._conn is not None and self._readable(0):  # the server sends nothing unasked, except that it closes
            self._drop()
        if self._conn is None and self._calls >= CALLS_BEFORE and sys.platform != "win32":
            self._open()
        self._calls += 1
        return self._conn is not None

    def _run(self, arguments: Sequence[bytes | None], patience: float) -> PGresult | None:
        try:
            result = self._ask(arguments, time.monotonic() + patience)
        except TimeoutError:
            self._drop()
            raise silence(self._address.place, patience) from None
        except psycopg.Error as error:
            self._drop()
            raise translate(error, self._address.place) from error
        except BaseException:  # an interrupt: the result is still to come
            self._drop()
            raise
        if result is not None and result.status == ExecStatus.TUPLES_OK:
            return result
        self._drop()
        return None

    def _ask(self, arguments: Sequence[bytes | None], until: float) -> PGresult | None:
        if self._conn is None:
            return None
        pgconn = self._conn.pgconn
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

    def _open(self) -> None:
        """Connect, and prepare the statement. If that fails, others report it better."""
        self._calls = 0
        with suppress(psycopg.Error):
            self._conn = conn = psycopg.Connection.connect(
                "", autocommit=True, prepare_threshold=None, **self._address.options
            )
            self._readable = _poll(conn, select.POLLIN)
            self._writable = _poll(conn, select.POLLIN | select.POLLOUT)
            if conn.pgconn.prepare(self._statement.name, self._statement.text).status != ExecStatus.COMMAND_OK:
                self._drop()

    def _drop(self) -> None:
        conn, self._conn = self._conn, None
        self._calls = 0
        if conn is not None:
            conn.pgconn.finish()


def _poll(conn: psycopg.Connection[Any], events: int) -> Watch:
    poll = select.poll()
    poll.register(conn.fileno(), events)
    return poll.poll


def _nothing(_milliseconds: float) -> object:
    return None


def _await(events: Watch, until: float) -> None:
    if not events(max(0.0, until - time.monotonic()) * 1000):
        raise TimeoutError
