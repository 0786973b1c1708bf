"""One prepared statement on an idle connection, without a task and without a cursor: for callers that come alone.

The driver makes a cursor, two waits and several generators for each statement, which take longer than the server does.
Here the event loop calls back when the reply is there. This module owns the bytes between; what happens next, and what
an error means, belongs to the queue.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import psycopg
from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

_PLACE: Final = re.compile("%s")


class Prepared(Struct, frozen=True):
    """A statement to be prepared once on a connection."""

    name: bytes
    text: bytes
    """The statement, with $1, $2 … in it."""
    formats: list[int]
    """Of each argument: 0 for text, 1 for bytes."""

    @classmethod
    def of(cls, name: str, statement: str, *, binary: Sequence[int]) -> "Prepared":
        """Return a statement of queries.sql under this name; the arguments at these places are bytes."""
        numbers = iter(range(1, statement.count("%s") + 1))
        text = _PLACE.sub(lambda _: f"${next(numbers)}", statement)
        formats = [1 if place in binary else 0 for place in range(statement.count("%s"))]
        return cls(name.encode(), text.encode(), formats)

    async def prepare(self, conn: AsyncConnection[Any]) -> None:
        """Prepare it on a connection."""
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
        """Send it. `ended` is called once, with the result or the error. Raises what keeps it from being sent."""
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
