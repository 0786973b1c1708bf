"""Adding jobs within a transaction of the user's own. If it is rolled back, the jobs never existed.

A connection is recognised by its methods; the libraries it may come from are not imported:

    async     psycopg's AsyncConnection, asyncpg's Connection, SQLAlchemy's AsyncConnection and AsyncSession
    blocking  psycopg's (and psycopg2's) connection, SQLAlchemy's Connection and Session, Django's connection

What new jobs need is compared with other jobs by the leader, after the commit: the transaction holds no lock on these.
Claimers are woken by a NOTIFY inside the transaction, which PostgreSQL delivers at the commit.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from shiftwork.core.model import Added, NewJob
from shiftwork.errors import LifecycleError
from shiftwork.store.postgres import jobs, rows

ASYNC: Final = "psycopg's AsyncConnection, asyncpg's Connection, SQLAlchemy's AsyncConnection or AsyncSession"
BLOCKING: Final = "psycopg's Connection, SQLAlchemy's Connection or Session, Django's connection"
Place = tuple[int, str]
"""The number of the namespace, and the channel of its notifications."""
Sql = Mapping[str, str]
"""The statements by name."""


async def add(connection: Any, sql: Sql, new: Sequence[NewJob], *, now: float, place: Place) -> list[Added]:
    """Add these jobs on an asynchronous connection."""
    run = await _async_runner(connection)
    added: list[Added] = []
    for part, statement, args in _parts(new, now, place):
        twins, _ = await run(sql[statement], args)
        added += jobs.added(part, twins)
    return added


def add_blocking(connection: Any, sql: Sql, new: Sequence[NewJob], *, now: float, place: Place) -> list[Added]:
    """Add these jobs on a blocking connection."""
    run = _blocking_runner(connection)
    added: list[Added] = []
    for part, statement, args in _parts(new, now, place):
        twins, _ = run(sql[statement], args)
        added += jobs.added(part, twins)
    return added


def _parts(new: Sequence[NewJob], now: float, place: Place) -> list[tuple[list[NewJob], str, tuple[Any, ...]]]:
    """Return parts in which no id occurs twice, each with its statement and arguments."""
    namespace, channel = place
    parts = [[job for job, _ in part] for part in jobs.split_by_id([(job, now) for job in new])]
    statements: list[tuple[list[NewJob], str, tuple[Any, ...]]] = []
    for part in parts:
        args = (channel, namespace, *rows.new_columns(part, [now] * len(part)))
        if all(rows.is_plain(job) for job in part):
            statements.append((part, "add_in_transaction", args))
        else:
            statements.append((part, "add_any_in_transaction", (*args, *rows.part_columns(part))))
    return statements


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
