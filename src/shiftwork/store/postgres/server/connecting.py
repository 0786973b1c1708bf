"""Opening and closing a connection to the server, and giving up on one that has fallen silent."""

import asyncio
import select
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection

from shiftwork.errors import StoreUnavailableError
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.faults import translate

PREPARE_SECONDS: Final = 30.0
"""How long `prepare` may take: it may create the schema, or wait while another process creates it."""
Prepare = Callable[[AsyncConnection[Any]], Awaitable[None]]
"""Makes a new connection ready for use: brings the schema up to date, and looks up the namespace."""


async def connect(address: PostgresAddress, prepare: Prepare) -> AsyncConnection[Any]:
    """Open a connection and make it ready."""
    try:
        conn = await AsyncConnection.connect(
            "", autocommit=True, prepare_threshold=address.prepare_threshold, **address.options
        )
    except psycopg.Error as error:
        raise translate(error, address.place) from None
    try:
        async with answered(conn, address.place, within=PREPARE_SECONDS):
            await prepare(conn)
    except BaseException as error:
        disconnect(conn)
        if isinstance(error, psycopg.Error):
            raise translate(error, address.place) from error
        raise
    return conn


@asynccontextmanager
async def answered(conn: AsyncConnection[Any], place: str, *, within: float) -> AsyncIterator[None]:
    """Break the connection and raise `StoreUnavailableError` if the block takes longer than this.

    The driver is not cancelled instead: it would ask the silent server to cancel the statement, and wait for that.
    """
    silent = False

    def give_up() -> None:
        nonlocal silent
        silent = True
        hang_up(conn)

    timer = asyncio.get_running_loop().call_later(within, give_up)
    try:
        yield
    except psycopg.Error:
        if silent:
            raise silence(place, within) from None
        raise
    finally:
        timer.cancel()


def silence(place: str, within: float) -> StoreUnavailableError:
    """Return the error for a call that was not answered within this time."""
    return StoreUnavailableError(
        f"{place} has not answered for {within:.0f} s: check the network, and what the server does "
        "(pg_stat_activity). Whether the call took effect is unknown."
    )


def hang_up(conn: AsyncConnection[Any] | psycopg.Connection[Any]) -> None:
    """Shut down the socket, so that callers that wait for the server stop waiting; from any thread."""
    with suppress(OSError, psycopg.Error):
        sock = socket.socket(fileno=conn.fileno())
        try:
            sock.shutdown(socket.SHUT_RDWR)
        finally:
            sock.detach()  # the driver closes it


def is_usable(conn: AsyncConnection[Any]) -> bool:
    """Return whether an idle connection is still open. If there is something to read, the server has closed it."""
    return not conn.closed and not _has_input(conn.fileno())


def disconnect(conn: AsyncConnection[Any]) -> None:
    """Close a connection without waiting for anything; from any thread."""
    conn.pgconn.finish()


def _has_input(fd: int) -> bool:
    if sys.platform == "win32":
        return bool(select.select([fd], [], [], 0)[0])
    poll = select.poll()  # unlike select, it takes any number of open files
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
