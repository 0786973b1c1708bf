"""Opening and closing a connection to the server."""

import select
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from psycopg import AsyncConnection

from shiftwork.store.postgres.address import PostgresAddress
from shiftwork.store.postgres.faults import translate

Prepare = Callable[[AsyncConnection[Any]], Awaitable[None]]
"""Makes a new connection ready for use."""


async def connect(address: PostgresAddress, prepare: Prepare) -> AsyncConnection[Any]:
    """Open a connection and make it ready."""
    try:
        conn = await AsyncConnection.connect(
            "", autocommit=True, prepare_threshold=address.prepare_threshold, **address.options
        )
    except psycopg.Error as error:
        raise translate(error, address.place) from None
    try:
        await prepare(conn)
    except BaseException as error:
        disconnect(conn)
        if isinstance(error, psycopg.Error):
            raise translate(error, address.place) from error
        raise
    return conn


def is_usable(conn: AsyncConnection[Any]) -> bool:
    """Whether an idle connection is still open: the server sends nothing unasked, except that it closes."""
    if conn.closed:
        return False
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    return not poll.poll(0)


def disconnect(conn: AsyncConnection[Any]) -> None:
    """Close a connection without waiting for anything; from any thread."""
    conn.pgconn.finish()
