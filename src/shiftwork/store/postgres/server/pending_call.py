"""A call that waits for its connection: the work to do, and the future that its caller awaits.

What happens to it (when it begins, what an error means, what follows a cancelled caller) is decided in `call_queue`.
"""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.pq.abc import PGresult

from shiftwork.store.postgres.server.direct_call import Prepared

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")
Work = Callable[[AsyncConnection[Any]], Awaitable[T]]
BatchWork = Callable[[AsyncConnection[Any], list[Any]], Awaitable[list[Any]]]
"""Work on a list of items that returns one answer for each item."""


class PendingCall(Generic[T]):
    """Work to do on the connection, and the future that its caller awaits."""

    __slots__ = ("_end", "after", "answer", "over", "passable", "patience", "work")

    def __init__(
        self, work: Work[T], answer: "asyncio.Future[T]", patience: float, after: Sequence["asyncio.Future[Any]"] = ()
    ) -> None:
        self.work: Work[T] = work
        self.answer: asyncio.Future[T] = answer
        """Cancelled with its caller, even if the call is under way."""
        self.patience: float = patience
        """How many seconds it may take."""
        self.after: Sequence[asyncio.Future[Any]] = after
        """The ends of calls of other queues that must be over before it begins."""
        self.over: bool = False
        """Whether it has succeeded, failed or was withdrawn."""
        self.passable: bool = False
        """Whether claims may overtake it."""
        self._end: asyncio.Future[None] | None = None

    def end(self) -> "asyncio.Future[None]":
        """Return a future that is done once the call is over."""
        if self._end is None:
            self._end = self.answer.get_loop().create_future()
            if self.over:
                self._end.set_result(None)
        return self._end

    def succeed(self, answer: T) -> None:
        """Pass the answer to the caller."""
        if not self.answer.done():
            self.answer.set_result(answer)
        self.is_over()

    def fail(self, error: Exception) -> None:
        """Pass the error to the caller."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # asyncio must not log it if the caller was cancelled
        self.is_over()

    def is_over(self) -> None:
        """Wake callers that wait for this call."""
        self.over = True
        if self._end is not None and not self._end.done():
            self._end.set_result(None)


class BatchableCall(PendingCall[Any]):
    """A call on a list of items, which one statement can do together with other calls of the same work."""

    __slots__ = ("alone", "batch_work", "items")

    def __init__(self, items: list[Any], batch_work: BatchWork, answer: "asyncio.Future[Any]", patience: float) -> None:
        super().__init__(partial(_on_items, batch_work, items), answer, patience)
        self.items: list[Any] = items
        self.batch_work: BatchWork = batch_work
        self.alone: bool = False
        """Whether a batch that it was part of has failed: then each of its calls is made by itself."""

    def goes_with(self, first: "BatchableCall") -> bool:
        """Return whether it can be part of a batch that begins with this call."""
        return self.batch_work == first.batch_work and not (self.alone or first.alone)


def _on_items(batch_work: BatchWork, items: list[Any], conn: AsyncConnection[Any]) -> Awaitable[list[Any]]:
    return batch_work(conn, items)


class LoneStatement(Struct, frozen=True):
    """A prepared statement that does the same as a batchable call on one item."""

    statement: Prepared
    arguments: Sequence[bytes | None]
    read: Callable[[PGresult], list[Any]]
    """Reads the answers from the result."""
