"""What an operation works with: a connection, the number of its namespace, the statements, and what it wants rung."""

from collections.abc import Iterable, Sequence
from typing import Any

from psycopg import AsyncConnection


class Session:
    """One operation on one connection."""

    def __init__(self, conn: AsyncConnection[Any], namespace: int, sql: dict[str, str]) -> None:
        self.conn = conn
        self.namespace = namespace
        self.sql = sql
        self.topics: set[str] = set()

    async def rows(self, name: str, args: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run a named statement, and read what it answers."""
        return await self.query(self.sql[name], args)

    async def query(self, text: str, args: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement that was put together."""
        cursor = self.conn.cursor(binary=True)
        await cursor.execute(text.encode(), args)
        return await cursor.fetchall()

    async def row(self, name: str, args: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The one row of an answer."""
        return (await self.rows(name, args))[0]

    async def value(self, name: str, args: Sequence[Any] = ()) -> Any:
        """The one value of an answer; None if there is no row."""
        rows = await self.rows(name, args)
        return rows[0][0] if rows else None

    async def run(self, name: str, args: Sequence[Any] = ()) -> int:
        """Run a named statement that answers nothing; how many rows it concerned."""
        cursor = self.conn.cursor()
        await cursor.execute(self.sql[name].encode(), args)
        return cursor.rowcount

    def ring(self, topics: Iterable[str] | None) -> None:
        """Ring these once the operation is done."""
        self.topics.update(topics or ())
