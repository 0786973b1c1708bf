"""Adding jobs within a transaction of the user's own. If it is rolled back, the jobs never existed.

A connection is recognised by its methods; the libraries are not imported:

    async     psycopg's AsyncConnection, asyncpg's Connection, SQLAlchemy's AsyncConnection and AsyncSession
    blocking  psycopg's (and psycopg2's) connection, SQLAlchemy's Connection and Session, Django's connection

The transaction locks no job that another one needs: the leader compares needs after the commit. Claimers are woken by a
NOTIFY inside the transaction, which PostgreSQL delivers at the commit.
"""

import inspect
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from shiftwork.core.model.jobs import Added, NewJob
from shiftwork.errors import LifecycleError
from shiftwork.store.postgres import arrays, flows, rows
from shiftwork.store.postgres.add import read_added, split_by_id
from shiftwork.store.postgres.rows import TimedJob

ASYNC: Final = "psycopg's AsyncConnection, asyncpg's Connection, SQLAlchemy's AsyncConnection or AsyncSession"
BLOCKING: Final = "psycopg's Connection, SQLAlchemy's Connection or Session, Django's connection"
Place = tuple[int, str]
"""The number of the namespace, and the channel of its notifications."""
Sql = Mapping[str, str]
"""The statements by name."""
Statement = tuple[str, tuple[Any, ...]]
"""The text of a statement, and its arguments."""


async def add(connection: Any, sql: Sql, new: Sequence[NewJob], *, now: float, place: Place) -> list[Added]:
    """Add these jobs on an asynchronous connection."""
    run = await _async_runner(connection)
    adding = _adding(sql, [(job, now) for job in new], place)
    statement = next(adding)
    while True:
        row = await run(*statement)
        try:
            statement = adding.send(row)
        except StopIteration as end:
            return _result(end)


def add_blocking(connection: Any, sql: Sql, new: Sequence[NewJob], *, now: float, place: Place) -> list[Added]:
    run = _blocking_runner(connection)
    adding = _adding(sql, [(job, now) for job in new], place)
    statement = next(adding)
    while True:
        row = run(*statement)
        try:
            statement = adding.send(row)
        except StopIteration as end:
            return _result(end)


def _result(end: StopIteration) -> list[Added]:
    added: list[Added] = end.value
    return added


def _adding(sql: Sql, new: Sequence[TimedJob], place: Place) -> Generator[Statement, Any, list[Added]]:
    """Yield the statements that add these jobs, and receive the row of each; in parts in which no id occurs twice."""
    namespace, channel = place
    parts = split_by_id(new)
    in_flows = {job.flow for job, _ in new if job.flow is not None} if len(parts) > 1 else None
    begun = (yield sql["begun_flows"], (namespace, arrays.texts([*in_flows])))[0] if in_flows else ()
    added: list[Added] = []
    for part in parts:
        of_part = [job for job, _ in part]
        args = (channel, namespace, *rows.new_columns(of_part, [now for _, now in part]))
        if all(rows.is_plain(job) for job in of_part):
            twins, _ = yield sql["add_in_transaction"], args
        else:
            twins, _ = yield sql["add_full_in_transaction"], (*args, *rows.part_columns(of_part))
        added += read_added(of_part, twins)
    if in_flows:
        beginning = flows.beginning(new, added, {None, *begun})
        if beginning:
            yield sql["aim"], (namespace, *flows.aim_columns(beginning))
    return added


# ── asynchronous ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def _async_runner(connection: Any) -> Callable[[str, tuple[Any, ...]], Any]:
    """Return a function that runs a statement on the connection and returns its only row."""
    if hasattr(connection, "get_bind") and inspect.iscoroutinefunction(getattr(connection, "connection", None)):
        connection = await connection.connection()  # SQLAlchemy's AsyncSession

    async def on_sqlalchemy(text: str, args: tuple[Any, ...]) -> Any:
        result = await connection.exec_driver_sql(_for(connection.dialect, text), args)
        return result.fetchone()

    async def on_asyncpg(text: str, args: tuple[Any, ...]) -> Any:
        return await connection.fetchrow(_numbered(text), *args)

    async def on_psycopg(text: str, args: tuple[Any, ...]) -> Any:
        async with connection.cursor() as cursor:
            await cursor.execute(text, args)
            return await cursor.fetchone()

    if inspect.iscoroutinefunction(getattr(connection, "exec_driver_sql", None)):
        return on_sqlalchemy
    if inspect.iscoroutinefunction(getattr(connection, "fetchrow", None)):
        return on_asyncpg
    if inspect.iscoroutinefunction(getattr(connection, "execute", None)) and hasattr(connection, "cursor"):
        return on_psycopg
    blocks = hasattr(connection, "cursor") or hasattr(connection, "exec_driver_sql") or hasattr(connection, "get_bind")
    advice = ". It is a blocking connection: use enqueue_with_blocking" if blocks else ""
    raise LifecycleError(f"enqueue_with takes {ASYNC}; {_named(connection)} is not one of them{advice}")


# ── blocking ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _blocking_runner(connection: Any) -> Callable[[str, tuple[Any, ...]], Any]:
    _refuse_async(connection)
    if hasattr(connection, "get_bind") and callable(getattr(connection, "connection", None)):
        connection = connection.connection()  # SQLAlchemy's Session

    def on_sqlalchemy(text: str, args: tuple[Any, ...]) -> Any:
        return connection.exec_driver_sql(_for(connection.dialect, text), args).fetchone()

    def on_cursor(text: str, args: tuple[Any, ...]) -> Any:
        with connection.cursor() as cursor:
            cursor.execute(text, args)
            return cursor.fetchone()

    if hasattr(connection, "exec_driver_sql"):
        return on_sqlalchemy
    if hasattr(connection, "cursor"):
        return on_cursor
    raise LifecycleError(f"enqueue_with_blocking takes {BLOCKING}; {_named(connection)} is not one of them")


def _refuse_async(connection: Any) -> None:
    if any(
        inspect.iscoroutinefunction(getattr(connection, name, None))
        for name in ("execute", "exec_driver_sql", "fetchrow")
    ):
        raise LifecycleError(
            f"{_named(connection)} is asynchronous: await enqueue_with instead. enqueue_with_blocking takes {BLOCKING}"
        )


# ── dialects ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _for(dialect: Any, text: str) -> str:
    if getattr(dialect, "name", "postgresql") != "postgresql":
        raise LifecycleError(f"the store is a PostgreSQL database, but this connection is to {dialect.name}")
    return text if getattr(dialect, "paramstyle", "format") in ("format", "pyformat") else _numbered(text)


def _numbered(text: str) -> str:
    """Return the statement with $1, $2 … as placeholders."""
    numbers = count(1)
    return re.sub("%s", lambda _: f"${next(numbers)}", text)


def _named(connection: Any) -> str:
    kind = type(connection)
    return f"{kind.__module__}.{kind.__qualname__}"
