"""One connection of one event loop, on which calls take effect in the order in which they are made.

A call is handed over and awaited. Whoever is cancelled meanwhile takes back a call that has not begun; one that has
begun goes on. While one call is under way, the jobs that others want to add gather, and go together in one round trip.

It owns connecting, and what becomes of a connection that broke: the call that was under way fails, the next one
connects anew. A call that the server has undone, because two of them wanted each other's locks, is made again.
"""

import asyncio
import select
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg import errors as pg

from shiftwork.errors import StoreBusyError, StoreError, StoreUnavailableError
from shiftwork.store.postgres.address import Address
from shiftwork.store.postgres.faults import TRY_AGAIN, lost, translate

T = TypeVar("T")
Work = Callable[[AsyncConnection[Any]], Awaitable[T]]
LONGEST_CALL: Final = 120.0
TRIES: Final = 10
MOST_TOGETHER: Final = 1_000
LONGEST_FAREWELL: Final = 1.0


class Call(Generic[T]):
    """Something to be done on the connection, and who waits for it."""

    __slots__ = ("done", "work")

    def __init__(self, work: Work[T], done: "asyncio.Future[T]") -> None:
        self.work = work
        self.done = done


class Gathered(Call[Any]):
    """A call that can be made together with others of its kind: things that are answered one by one."""

    __slots__ = ("things", "together")

    def __init__(
        self,
        things: list[Any],
        together: Callable[[AsyncConnection[Any], list[Any]], Awaitable[list[Any]]],
        done: "asyncio.Future[Any]",
    ) -> None:
        super().__init__(lambda conn: together(conn, things), done)
        self.things = things
        self.together = together


class Line:
    """A connection, the calls that wait for it, and the task that makes them."""

    def __init__(self, address: Address, prepare: Callable[[AsyncConnection[Any]], Awaitable[None]]) -> None:
        self.loop = asyncio.get_running_loop()
        self._address = address
        self._prepare = prepare
        self._calls: deque[Call[Any]] = deque()
        self._conn: AsyncConnection[Any] | None = None
        self.task: asyncio.Task[None] | None = None
        """What makes the calls, while there are any."""
        self._last: asyncio.Future[Any] | None = None

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(self, work: Work[T]) -> T:
        """Do this when everything before it is done."""
        done: asyncio.Future[T] = self.loop.create_future()
        return await self._enqueue(Call(work, done))

    async def gather(
        self, things: list[Any], together: Callable[[AsyncConnection[Any], list[Any]], Awaitable[list[Any]]]
    ) -> list[Any]:
        """The same, together with what others want of the same kind."""
        done: asyncio.Future[list[Any]] = self.loop.create_future()
        answer: list[Any] = await self._enqueue(Gathered(things, together, done))
        return answer

    def pending(self) -> "asyncio.Future[Any] | None":
        """What was called last, if it is not done yet."""
        return self._last if self._last is not None and not self._last.done() else None

    async def _enqueue(self, call: Call[T]) -> T:
        self._calls.append(call)
        self._last = call.done
        if self.task is None:
            self.task = self.loop.create_task(self._run(), name="shiftwork postgres")
        try:
            return await asyncio.shield(call.done)
        except asyncio.CancelledError:
            await self._let_go(call)
            raise

    async def _let_go(self, call: Call[Any]) -> None:
        """Its caller is cancelled: it never happens, or, if it has begun, it has happened when the caller goes on."""
        if call in self._calls:
            self._calls.remove(call)
            call.done.cancel()
        elif not call.done.done():
            await asyncio.wait([call.done], timeout=LONGEST_FAREWELL)

    # ── making the calls ─────────────────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> None:
        try:
            while self._calls:
                await self._make(self._next())
        except asyncio.CancelledError:
            self._give_up(StoreUnavailableError(f"{self._address.place}: the event loop of this call has ended"))
            raise
        finally:
            self.task = None

    def _next(self) -> list[Call[Any]]:
        """The call whose turn it is, and those that can be made together with it."""
        calls = [self._calls.popleft()]
        first = calls[0]
        if not isinstance(first, Gathered):
            return calls
        size = len(first.things)
        while self._calls and isinstance(self._calls[0], Gathered) and size < MOST_TOGETHER:
            following = self._calls[0]
            size += len(following.things)
            calls.append(self._calls.popleft())
        return calls

    async def _make(self, calls: list[Call[Any]]) -> None:
        if len(calls) == 1:
            await self._settle(calls[0], calls[0].work)
            return
        gathered = [call for call in calls if isinstance(call, Gathered)]
        everything = [thing for call in gathered for thing in call.things]
        try:
            answers = await self._try(lambda conn: gathered[0].together(conn, everything))
        except StoreUnavailableError as error:
            for call in gathered:
                _fail(call, error)
        except asyncio.CancelledError:
            self._calls.extendleft(gathered)
            raise
        except StoreError:  # one of them is bad; the others need not suffer for it
            for call in gathered:
                await self._settle(call, call.work)
        else:
            for call in gathered:
                own, answers = answers[: len(call.things)], answers[len(call.things) :]
                _answer(call, own)

    async def _settle(self, call: Call[Any], work: Work[Any]) -> None:
        try:
            answer = await self._try(work)
        except StoreError as error:
            _fail(call, error)
        except asyncio.CancelledError:
            self._calls.appendleft(call)
            raise
        except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to whoever called
            _fail(call, error)
        else:
            _answer(call, answer)

    async def _try(self, work: Work[T]) -> T:
        for attempt in range(TRIES):
            conn = await self._connected()
            try:
                async with asyncio.timeout(LONGEST_CALL):
                    return await work(conn)
            except TRY_AGAIN as error:
                if attempt == TRIES - 1:
                    raise translate(error, self._address.place) from error
            except pg.UndefinedFunction as error:
                # A newer version has dropped our functions too early. A new connection installs them again.
                self._drop()
                if attempt:
                    raise translate(error, self._address.place) from error
            except TimeoutError:
                self._drop()
                raise StoreBusyError(
                    f"{self._address.place} has not answered for {LONGEST_CALL:.0f} s; look into pg_stat_activity"
                ) from None
            except asyncio.CancelledError:
                self._drop()
                raise
            except (psycopg.Error, UnicodeEncodeError) as error:
                if lost(error) or conn.closed:
                    self._drop()
                raise translate(error, self._address.place) from error
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    # ── the connection ───────────────────────────────────────────────────────────────────────────────────────────

    async def _connected(self) -> AsyncConnection[Any]:
        if self._conn is not None and (self._conn.closed or hung_up(self._conn)):
            self._drop()
        if self._conn is None:
            self._conn = await connect(self._address, self._prepare)
        return self._conn

    def _drop(self) -> None:
        conn, self._conn = self._conn, None
        if conn is not None:
            hang_up(conn)

    def _give_up(self, error: StoreError) -> None:
        self._drop()
        while self._calls:
            _fail(self._calls.popleft(), error)

    async def close(self) -> None:
        """Finish what was called, and close the connection. On its own event loop."""
        while (task := self.task) is not None:
            await asyncio.wait([task])
        self._drop()

    def abandon(self) -> None:
        """Its event loop has ended: close the connection, from any thread."""
        self._drop()


async def connect(address: Address, prepare: Callable[[AsyncConnection[Any]], Awaitable[None]]) -> AsyncConnection[Any]:
    """A new connection, made ready."""
    try:
        conn = await AsyncConnection.connect(
            "", autocommit=True, prepare_threshold=address.prepare_threshold, **address.options
        )
    except psycopg.Error as error:
        raise translate(error, address.place) from None
    try:
        await prepare(conn)
    except BaseException as error:
        hang_up(conn)
        if isinstance(error, psycopg.Error):
            raise translate(error, address.place) from error
        raise
    return conn


def hung_up(conn: AsyncConnection[Any]) -> bool:
    """Whether the server has said something unasked while nobody looked: that it closes."""
    poll = select.poll()
    poll.register(conn.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def hang_up(conn: AsyncConnection[Any]) -> None:
    """Close it, without waiting for anything and from any thread."""
    conn.pgconn.finish()


def _answer(call: Call[Any], answer: Any) -> None:
    if not call.done.done():
        call.done.set_result(answer)


def _fail(call: Call[Any], error: Exception) -> None:
    if not call.done.done():
        call.done.set_exception(error)
        call.done.exception()  # its caller may have been cancelled: nobody else need hear of it
