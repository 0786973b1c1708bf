"""One prepared statement without the driver's cursor: for callers that come alone, with an event loop or without.

The driver makes a cursor, two waits and several generators for each statement, which take longer than the server does.
`DirectCall` uses an idle connection of a call queue, and the event loop calls back when the reply is there.
`BlockingSession` has a connection of its own for threads without an event loop (not on Windows). What an error means,
and whether the call is made again, is decided by the callers.
"""

import asyncio
import re
import select
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from shiftwork.store.blocking_connection import BlockingConnection
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.connecting import silence
from shiftwork.store.postgres.server.faults import translate

_PLACE: Final = re.compile("%s")


class Prepared(Struct, frozen=True):
    """A statement to be prepared once on a connection."""

    name: bytes
    text: bytes
    """The statement, with $1, $2 … in it."""
    formats: list[int]
    """For each argument: 0 if it is sent as text, 1 if as bytes."""

    @classmethod
    def of(cls, name: str, statement: str, *, binary: Sequence[int]) -> "Prepared":
        """Return a statement of queries.sql under this name; the arguments at the `binary` places are bytes."""
        numbers = iter(range(1, statement.count("%s") + 1))
        text = _PLACE.sub(lambda _: f"${next(numbers)}", statement)
        formats = [1 if place in binary else 0 for place in range(statement.count("%s"))]
        return cls(name.encode(), text.encode(), formats)

    async def prepare(self, conn: AsyncConnection[Any]) -> None:
        await conn.execute(b"PREPARE %s AS %s" % (self.name, self.text), prepare=False)


class DirectCall:
    """A prepared statement under way."""

    __slots__ = ("_ended", "_fd", "_loop", "_pgconn")

    def __init__(
        self,
        conn: AsyncConnection[Any],
        statement: Prepared,
        arguments: Sequence[bytes | None],
        ended: Callable[[PGresult | psycopg.Error], None],
    ) -> None:
        """Send it, and call `ended` once with the result or the error. Raises if it cannot be sent."""
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._pgconn = pgconn = conn.pgconn
        self._fd = pgconn.socket
        pgconn.send_query_prepared(statement.name, arguments, statement.formats)
        if pgconn.flush():
            self._loop.add_writer(self._fd, self._flush)
        self._loop.add_reader(self._fd, self._receive)

    def _flush(self) -> None:
        """Send the rest of a large statement."""
        try:
            more = self._pgconn.flush()
        except psycopg.Error as error:
            self._end(error)
        else:
            if not more:
                self._loop.remove_writer(self._fd)

    def _receive(self) -> None:
        pgconn = self._pgconn
        try:
            pgconn.consume_input()
            if pgconn.is_busy():
                return
            result = pgconn.get_result()
            while pgconn.get_result() is not None:
                pass
        except psycopg.Error as error:
            self._end(error)
            return
        if result is None:
            self._end(psycopg.OperationalError("the server has closed the connection"))
        elif result.status != ExecStatus.TUPLES_OK:
            self._end(error_from_result(result))
        else:
            self._end(result)

    def _end(self, outcome: PGresult | psycopg.Error) -> None:
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._ended(outcome)


Watch = Callable[[float], object]
"""Waits for events on a connection, for this many milliseconds at most, and returns them."""


class BlockingSession(BlockingConnection[psycopg.Connection[Any], Sequence[bytes | None], PGresult]):
    """Runs one prepared statement on a connection of its own; it may take `patience` seconds."""

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
