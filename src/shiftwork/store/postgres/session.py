"""What one operation works with: a connection, the number of the namespace, the statements, and the topics to ring."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from psycopg import AsyncConnection, AsyncCursor


class PostgresSession:
    """One operation on one connection."""

    def __init__(self, conn: AsyncConnection[Any], namespace: int, sql: dict[str, str], *, pipelines: bool) -> None:
        self.conn = conn
        self.namespace = namespace
        self.sql = sql
        self._pipelines = pipelines
        """Whether statements may be sent before the answers to earlier ones have come."""
        self.topics: set[str] = set()

    async def rows(self, name: str, args: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run a named statement and return its rows."""
        return await self.query(self.sql[name], args)

    async def query(self, text: str, args: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement given as text and return its rows."""
        cursor = self.conn.cursor(binary=True)
        await cursor.execute(text.encode(), args)
        return await cursor.fetchall()

    async def row(self, name: str, args: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Run a named statement and return its only row."""
        return (await self.rows(name, args))[0]

    async def value(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Run a named statement and return its only value; None if there is no row."""
        rows = await self.rows(name, args)
        return rows[0][0] if rows else None

    async def run(self, name: str, args: Sequence[Any] = ()) -> int:
        """Run a named statement that returns no rows, and return how many rows it changed."""
        cursor = self.conn.cursor()
        await cursor.execute(self.sql[name].encode(), args)
        return cursor.rowcount

    @asynccontextmanager
    async def quick_transaction(self) -> AsyncIterator[None]:
        """A transaction whose BEGIN travels with its first statement, and COMMIT with the last ones (see `send`)."""
        try:
            async with self.conn.pipeline() if self._pipelines else nullcontext():
                await self.conn.execute("BEGIN")
                yield
                await self.conn.execute("COMMIT")
        except BaseException:
            if not self.conn.closed:
                await self.conn.rollback()
            raise

    async def send(self, name: str, args: Sequence[Any] = ()) -> "AsyncCursor[tuple[Any, ...]]":
        """Send a named statement in a quick transaction; its rows can be fetched once that has ended."""
        cursor = self.conn.cursor(binary=True)
        await cursor.execute(self.sql[name].encode(), args)
        return cursor

    def ring(self, topics: Iterable[str] | None) -> None:
        """Ring these topics once the operation is done."""
        self.topics.update(topics or ())
