"""Running named statements: what an operation of the store is given, with the topics to ring when it is done.

A `PostgresSession` has a connection for itself. `QueuedStatements` are for an operation that runs one statement: it
goes in one round trip with those of other operations.
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from psycopg import AsyncConnection, AsyncCursor, AsyncPipeline

from shiftwork.store.postgres.server import search_path
from shiftwork.store.postgres.server.call_queue import CallQueue
from shiftwork.store.postgres.server.pending_call import BatchWork

Arguments = Sequence[Any] | dict[str, Any]
Rows = list[tuple[Any, ...]]


class Statements(ABC):
    """Runs named statements of queries.sql, and gathers the topics to ring."""

    def __init__(self, namespace: int) -> None:
        self.namespace = namespace
        self.topics: set[str] = set()

    @abstractmethod
    async def rows(self, name: str, args: Arguments = ()) -> Rows:
        """Run a named statement and return its rows."""

    async def row(self, name: str, args: Arguments = ()) -> tuple[Any, ...]:
        return (await self.rows(name, args))[0]

    async def value(self, name: str, args: Sequence[Any] = ()) -> Any:
        """Run a named statement and return its only value; None if there is no row."""
        rows = await self.rows(name, args)
        return rows[0][0] if rows else None

    def ring(self, topics: Iterable[str] | None) -> None:
        """Ring these topics once the operation is done."""
        self.topics.update(topics or ())


class PostgresSession(Statements):
    """One operation on one connection."""

    def __init__(self, conn: AsyncConnection[Any], namespace: int, sql: dict[str, str], *, pooled: bool) -> None:
        super().__init__(namespace)
        self.conn = conn
        self.sql = sql
        self._pooled = pooled
        """Whether a proxy pools by transaction, so that settings of the session are lost."""
        self._pipelines = AsyncPipeline.is_supported() and not pooled
        """Whether statements can be sent before earlier ones are answered."""

    async def rows(self, name: str, args: Arguments = ()) -> Rows:
        return await self.query(self.sql[name], args)

    async def query(self, text: str, args: Arguments = ()) -> Rows:
        """Run a statement given as text and return its rows."""
        return await (await self._execute(text, args)).fetchall()

    async def together(self, statements: Sequence[tuple[str, Arguments]]) -> list[Rows]:
        """Run these named statements in one transaction, in order, and return the rows of each."""
        if len(statements) == 1:
            return [await self.rows(*statements[0])]
        async with self.quick_transaction():
            sent = [await self.send(name, args) for name, args in statements]
        return [await cursor.fetchall() for cursor in sent]

    async def run(self, name: str, args: Sequence[Any] = ()) -> int:
        """Run a named statement that returns no rows, and return how many rows it changed."""
        return (await self._execute(self.sql[name], args)).rowcount

    @asynccontextmanager
    async def quick_transaction(self) -> AsyncIterator[None]:
        """A transaction in few round trips: BEGIN goes with the first statement, COMMIT with the last (see `send`)."""
        try:
            async with self.conn.pipeline() if self._pipelines else nullcontext():
                await self.conn.execute("BEGIN")
                yield
                await self.conn.execute("COMMIT")
        except BaseException:
            if not self.conn.closed:
                await self.conn.rollback()
            raise

    async def send(self, name: str, args: Arguments = ()) -> "AsyncCursor[tuple[Any, ...]]":
        """Send a named statement in a quick transaction; its rows can be fetched after the transaction."""
        return await self._execute(self.sql[name], args)

    async def _execute(self, text: str, args: Arguments) -> "AsyncCursor[tuple[Any, ...]]":
        if self._pooled and not search_path.is_call(text):
            return await search_path.execute(self.conn, text, args)
        cursor = self.conn.cursor(binary=True)
        await cursor.execute(text.encode(), args)
        return cursor


class QueuedStatements(Statements):
    """One operation whose statements go through a queue, each in one round trip with those of other operations."""

    def __init__(self, queue: CallQueue, namespace: int, together: BatchWork) -> None:
        super().__init__(namespace)
        self._queue = queue
        self._together = together

    async def rows(self, name: str, args: Arguments = ()) -> Rows:
        [found] = await self._queue.call_in_batch([(name, args)], self._together)
        rows: Rows = found
        return rows
