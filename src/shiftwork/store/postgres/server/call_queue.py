"""One connection of one event loop, on which calls take effect in the order in which they are made.

A call waits in the queue until those before it are over. If its caller is cancelled, a call that has not begun is
withdrawn; one that has begun is completed. Calls that can go together (jobs to add, steps to keep, single statements
that lock no jobs) are gathered while another call is under way, and go in one round trip. Once many wait, half of them
go at a time: the server works on these while the callers of the others prepare their next calls.

This module owns what happens when the connection breaks:

* The call under way fails, and the next one connects again.
* A call that the server has undone because of a deadlock is made again.
* If the server cannot be reached or does not answer in time, all waiting calls fail at once, because each of them would
  wait as long again. The other connections of the process are replaced before their next call, because they may be
  silent for the same reason.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg import errors as pg
from psycopg.pq.abc import PGresult

from shiftwork.errors import StoreError, StoreUnavailableError
from shiftwork.store.postgres.server.address import PostgresAddress
from shiftwork.store.postgres.server.connecting import (
    Prepare,
    answered,
    connect,
    disconnect,
    hang_up,
    is_usable,
    silence,
)
from shiftwork.store.postgres.server.direct_call import DirectCall, Prepared
from shiftwork.store.postgres.server.faults import UNDONE, lost, translate
from shiftwork.store.postgres.server.pending_call import BatchableCall, BatchWork, LoneStatement, PendingCall, Work

T = TypeVar("T")
DIRECT_AFTER: Final = 2
"""The statement of lone calls is prepared after this many of them: a program that makes a single one never needs it."""
CALL_SECONDS: Final = 12.0
"""How long a call may take: a little longer than the server waits for a lock, whose error says more."""
ITEM_SECONDS: Final = 0.002
"""How much longer it may take for every item of its batch."""
DEADLOCK_ATTEMPTS: Final = 10
"""How often a call is made that the server undoes because of a deadlock."""
MAX_BATCH: Final = 1_000
LEAST_SHARED: Final = 32
"""Once this many calls wait, half of them go at a time."""
GATHERING_TURNS: Final = 3
"""How many loop iterations a gathering queue waits: callers that wake together reach their calls within them."""
CANCEL_TIMEOUT: Final = 1.0
"""Seconds that a cancelled caller waits for its call to complete, and that closing waits for all calls."""


class CallQueue:
    """A connection, the calls that wait for it, and the task that makes them."""

    def __init__(
        self, address: PostgresAddress, prepare: Prepare, silent: Callable[[], None], *, gathers: bool = False
    ) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._gathers = gathers
        """Whether it waits a few loop iterations before the first call, so that others can join it."""
        self._address = address
        self._prepare = prepare
        self._silent = silent
        """Called when the server does not answer in time."""
        self._suspected = False
        """Whether another connection has fallen silent since this one was opened."""
        self._calls: deque[PendingCall[Any]] = deque()
        self._conn: AsyncConnection[Any] | None = None
        self.task: asyncio.Future[Any] | None = None
        """The task that makes the calls while there are any, or the end of the direct call under way."""
        self._lone = 0
        """How many lone calls this connection has seen, counted up to `DIRECT_AFTER`."""
        self._is_prepared = False
        """Whether that statement is prepared on this connection."""
        self._fell_silent = False
        """Whether the direct call under way has not been answered in time."""
        self._under_way: Sequence[PendingCall[Any]] = ()
        self._closed = False

    # ── calling ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def call(
        self,
        work: Work[T],
        patience: float = CALL_SECONDS,
        *,
        after: "Sequence[asyncio.Future[Any]]" = (),
        passable: bool = False,
    ) -> T:
        """Do this work after all earlier calls of this queue and the calls of other queues that end with `after`.

        It may take `patience` seconds from then. Claims may overtake it if it is `passable`.
        """
        answer: asyncio.Future[T] = self.loop.create_future()
        return await self._enqueue(PendingCall(work, answer, patience, after), passable=passable)

    async def call_in_batch(self, items: list[Any], batch_work: BatchWork, *, passable: bool = False) -> list[Any]:
        """Do this work on the items, in one batch with those of other callers; return the answers for these items."""
        patience = CALL_SECONDS + ITEM_SECONDS * len(items)
        call = BatchableCall(items, batch_work, self.loop.create_future(), patience)
        answers: list[Any] = await self._enqueue(call, passable=passable)
        return answers

    async def call_alone(self, items: list[Any], batch_work: BatchWork, lone: LoneStatement) -> list[Any]:
        """Do the same as `call_in_batch`, by the prepared statement if nothing else is under way."""
        patience = CALL_SECONDS + ITEM_SECONDS * len(items)
        call = BatchableCall(items, batch_work, self.loop.create_future(), patience)
        if self.task is None and self._is_prepared and not self._closed and self._begin_directly(call, lone):
            return await self._completed(call)
        if self._lone < DIRECT_AFTER:
            self._lone += 1
            if self._lone == DIRECT_AFTER:
                self._calls.append(
                    PendingCall(partial(self._prepare_lone, lone.statement), self.loop.create_future(), CALL_SECONDS)
                )
        answers: list[Any] = await self._enqueue(call)
        return answers

    @property
    def busy(self) -> bool:
        """Whether a call is under way or waits."""
        return self.task is not None

    def pending(self) -> "list[asyncio.Future[Any]]":
        """Return the end of the latest call that is not over, if there is one."""
        return self._end_of_latest(passable=True)

    def pending_for_claims(self) -> "list[asyncio.Future[Any]]":
        """Return the end of the latest call that claims must not overtake and that is not over, if there is one."""
        return self._end_of_latest(passable=False)

    def _end_of_latest(self, *, passable: bool) -> "list[asyncio.Future[Any]]":
        for call in chain(reversed(self._calls), reversed(self._under_way)):
            if not call.over and (passable or not call.passable):
                return [call.end()]
        return []

    async def _enqueue(self, call: PendingCall[T], *, passable: bool = False) -> T:
        if self._closed:
            raise StoreUnavailableError(f"{self._address.place}: the store was closed before this call was made")
        call.passable = passable
        self._calls.append(call)
        if self.task is None:
            self._start()
        return await self._completed(call)

    def _start(self) -> None:
        self.task = self.loop.create_task(self._run(), name="shiftwork postgres")

    async def _completed(self, call: PendingCall[T]) -> T:
        try:
            return await call.answer
        except asyncio.CancelledError:
            await self._withdraw(call)
            raise

    async def _withdraw(self, call: PendingCall[Any]) -> None:
        """Remove the call of a cancelled caller; if it has begun, wait until it is over."""
        if call in self._calls:
            self._calls.remove(call)
            call.is_over()
        elif not call.over:
            await asyncio.wait([call.end()], timeout=CANCEL_TIMEOUT)

    # ── making the calls ─────────────────────────────────────────────────────────────────────────────────────────

    async def _run(self) -> None:
        try:
            for _ in range(GATHERING_TURNS if self._gathers else 0):
                await asyncio.sleep(0)
            while self._calls:
                self._under_way = self._next()
                await self._make(self._under_way)
        except asyncio.CancelledError:
            self._give_up(StoreUnavailableError(f"{self._address.place}: the event loop of this call has ended"))
            raise
        finally:
            self.task, self._under_way = None, ()

    def _next(self) -> list[PendingCall[Any]]:
        """Take the next call off the queue, and those that can go in one batch with it."""
        calls = [self._calls.popleft()]
        first = calls[0]
        if not isinstance(first, BatchableCall):
            return calls
        size, most = len(first.items), len(self._calls)
        if most >= LEAST_SHARED:
            most //= 2
        while self._calls and size < MAX_BATCH and len(calls) <= most:
            following = self._calls[0]
            if not isinstance(following, BatchableCall) or not following.goes_with(first):
                break
            size += len(following.items)
            calls.append(self._calls.popleft())
        return calls

    async def _make(self, calls: Sequence[PendingCall[Any]]) -> None:
        if len(calls) == 1:
            await self._make_one(calls[0])
            return
        batch = [call for call in calls if isinstance(call, BatchableCall)]
        items = [item for call in batch for item in call.items]
        patience = CALL_SECONDS + ITEM_SECONDS * len(items)
        try:
            answers = await self._try(lambda conn: batch[0].batch_work(conn, items), patience)
        except StoreUnavailableError as error:
            for call in batch:
                call.fail(error)
        except asyncio.CancelledError:
            self._calls.extendleft(batch)
            raise
        except Exception:  # noqa: BLE001 - one of the items is bad: each call gets its own error or answer
            for call in batch:
                call.alone = True
            self._calls.extendleft(reversed(batch))
        else:
            for call in batch:
                own, answers = answers[: len(call.items)], answers[len(call.items) :]
                call.succeed(own)

    async def _make_one(self, call: PendingCall[Any]) -> None:
        try:
            if call.after:
                await asyncio.wait(call.after)
            answer = await self._try(call.work, call.patience)
        except StoreError as error:
            call.fail(error)
        except asyncio.CancelledError:
            self._calls.appendleft(call)
            raise
        except Exception as error:  # noqa: BLE001 - every error belongs to the caller
            call.fail(error)
        else:
            call.succeed(answer)

    async def _try(self, work: Work[T], patience: float) -> T:
        for attempt in range(DEADLOCK_ATTEMPTS):
            conn = await self._connected()
            try:
                async with answered(conn, self._address.place, within=patience):
                    return await work(conn)
            except UNDONE as error:
                if attempt == DEADLOCK_ATTEMPTS - 1:
                    raise translate(error, self._address.place) from error
            except pg.UndefinedFunction as error:
                # A newer version has dropped our functions too early. A new connection installs them again.
                self._disconnect()
                if attempt:
                    raise translate(error, self._address.place) from error
            except StoreUnavailableError as error:
                self._give_up(error)
                self._silent()
                raise
            except asyncio.CancelledError:
                self._disconnect()
                raise
            except (psycopg.Error, UnicodeEncodeError) as error:
                if lost(error) or conn.closed:
                    self._disconnect()
                raise translate(error, self._address.place) from error
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    # ── a lone call ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _prepare_lone(self, statement: Prepared, conn: AsyncConnection[Any]) -> None:
        await statement.prepare(conn)
        self._is_prepared = True

    def _begin_directly(self, call: BatchableCall, lone: LoneStatement) -> bool:
        """Send the statement of a lone call. Return False if the connection is gone."""
        conn = self._conn
        if conn is None or self._suspected or not is_usable(conn):
            return False
        timer = self.loop.call_later(call.patience, self._fall_silent, conn)
        try:
            DirectCall(conn, lone.statement, lone.arguments, partial(self._end_directly, call, lone, timer))
        except psycopg.Error:
            timer.cancel()
            return False
        self.task, self._under_way = call.end(), (call,)
        return True

    def _fall_silent(self, conn: AsyncConnection[Any]) -> None:
        """End a direct call that the server does not answer."""
        self._fell_silent = True
        hang_up(conn)

    def _end_directly(
        self, call: BatchableCall, lone: LoneStatement, timer: asyncio.TimerHandle, outcome: PGresult | psycopg.Error
    ) -> None:
        timer.cancel()
        self.task, self._under_way = None, ()
        if not isinstance(outcome, psycopg.Error):
            call.succeed(lone.read(outcome))
        elif self._fell_silent:
            self._fell_silent = False
            error = silence(self._address.place, call.patience)
            self._give_up(error)
            self._silent()
            call.fail(error)
        elif lost(outcome):
            self._disconnect()
            call.fail(translate(outcome, self._address.place))
        else:  # the server has undone it: `_run` makes the call again, and translates its error if it has one
            self._is_prepared = False
            self._calls.appendleft(call)
        if self._calls:
            self._start()

    # ── the connection ───────────────────────────────────────────────────────────────────────────────────────────

    async def _connected(self) -> AsyncConnection[Any]:
        if self._conn is not None and (self._suspected or not is_usable(self._conn)):
            self._disconnect()
        if self._conn is None:
            self._suspected = False
            try:
                self._conn = await connect(self._address, self._prepare)
            except StoreUnavailableError as error:
                self._give_up(error)
                raise
        return self._conn

    def _disconnect(self) -> None:
        conn, self._conn = self._conn, None
        self._lone, self._is_prepared = 0, False
        if conn is not None:
            disconnect(conn)

    def _give_up(self, error: StoreError) -> None:
        """Fail every call that waits."""
        self._disconnect()
        while self._calls:
            self._calls.popleft().fail(error)

    def suspect(self) -> None:
        """Replace the connection before the next call, because the server does not answer; from any thread."""
        self._suspected = True

    async def close(self) -> None:
        """Finish all calls and close the connection; on its own event loop. Does not wait for a silent server."""
        self._closed = True
        while (task := self.task) is not None:
            done, _ = await asyncio.wait([task], timeout=CANCEL_TIMEOUT)
            if not done:
                self.break_off()
        self._disconnect()

    def break_off(self) -> None:
        """Fail the call under way, because the server does not answer; on its own event loop."""
        if self._conn is not None:
            hang_up(self._conn)
        elif self.task is not None:  # it is about to connect
            self.task.cancel()

    def abandon(self) -> None:
        """Close the connection after its event loop has ended; from any thread."""
        self._disconnect()
