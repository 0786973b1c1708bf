"""The calls of the store that a running function waits for: `ctx.step` and its like, `ctx.enqueue_flow`, transactions.

While the store is away, the call waits and is made again: an outage costs a run time, and nothing else. What ends the
wait is what ends a run anyway: its timeout, a cancellation, a stop, or a lease in danger. In the last two cases the job
is handed back, uncounted, even if the function catches what it gets (`LocalRun.overruled`).

A call is made again although its reply may have been lost, so it must be one that is safe to repeat. A transaction that
completes the job (`Transactions`) is not: if its end is in doubt, the run is suspended, and the store decides.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

from shiftwork.core.jobs.retry import End, EndKind, settle
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import Wait
from shiftwork.errors import JobCancelledError, JobStateError, StoreBusyError, StoreFullError, StoreUnavailableError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.context.current_run import CurrentRun
from shiftwork.runtime.outage_log import STEP_WRITES, OutageLog
from shiftwork.store.abilities import Transaction, transactional
from shiftwork.store.protocol import Store

T = TypeVar("T")

PASSING: Final = (StoreUnavailableError, StoreBusyError, StoreFullError)
"""The errors that may pass without a change of the call. Any other is for the function."""

FIRST_CALL_PAUSE_SECONDS: Final = 0.05

LONGEST_CALL_PAUSE_SECONDS: Final = 1.0

UNCERTAIN_SECONDS: Final = 1.0
"""After this many seconds, a function that continues without knowing whether its step was kept starts over."""


class StoreCalls:
    """Makes calls until the store has carried them out."""

    def __init__(self, outages: OutageLog) -> None:
        self._outages = outages

    async def make(self, run: CurrentRun, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call for a run, again and again while the store cannot be used. Raises any other error at once."""
        pause = FIRST_CALL_PAUSE_SECONDS
        try:
            while True:
                try:
                    result = await call()
                except PASSING as error:
                    self._outages.failed(STEP_WRITES, error)
                else:
                    self._outages.worked(STEP_WRITES)
                    return result
                await asyncio.sleep(pause)  # by the real clock, also in a test: that of a test stands still meanwhile
                pause = min(LONGEST_CALL_PAUSE_SECONDS, 2 * pause)
                if run.cancelled or run.ended:  # what waits here was not cancelled with the run
                    raise told_to_stop(run)
        except asyncio.CancelledError:
            if run.cancelled:
                hand_back(run)
            raise


class Transactions:
    """Begins transactions that complete a job when they commit."""

    def __init__(self, store: Callable[[], Awaitable[Store]], clock: Clock, calls: StoreCalls) -> None:
        self.store = store
        """Opens the store."""
        self._clock = clock
        self._calls = calls

    @asynccontextmanager
    async def begin(self, run: CurrentRun) -> AsyncIterator[Any]:
        store = transactional(await self._calls.make(run, self.store), "ctx.transaction()")
        if run.ended or run.outcome is not None:
            message = f"job {run.job.id} has ended already: nothing can be written together with its end"
            raise JobStateError(message)
        theirs: BaseException | None = None
        try:
            async with AsyncExitStack() as entered:
                transaction = await self._calls.make(run, lambda: entered.enter_async_context(store.transaction()))
                try:
                    yield transaction.connection
                except BaseException as error:
                    theirs = error
                    raise
                outcome = await self._finish(run, transaction)
        except PASSING as error:
            if error is theirs:
                raise
            raise self._interrupted(run) from error
        run.outcome = outcome

    def _interrupted(self, run: CurrentRun) -> "Suspended":
        """Hand the job back, and return what ends the run. If the transaction was committed after all, the job is over,
        and the store rejects that.
        """
        now = self._clock.now()
        suspended = Suspended(now, now + UNCERTAIN_SECONDS)
        run.overruled = suspended.end()
        return suspended

    async def _finish(self, run: CurrentRun, transaction: Transaction) -> Outcome:
        now = self._clock.now()
        outcome = settle(run.job, End(EndKind.RETURNED), run.config, started_at=run.started_at, now=now, rand=0.0)
        if not await transaction.finish(outcome, now):
            message = f"this run of job {run.job.id} is stale: another run has taken over. Nothing was written"
            raise JobStateError(message)
        return outcome


class Suspended(BaseException):
    """Ends a run that waits. It passes through the user's function."""

    def __init__(self, at: float, until: float, wait: Wait | None = None) -> None:
        super().__init__(until)
        self.at = at
        """When it was raised."""
        self.until = until
        self.wait = wait

    def __str__(self) -> str:
        return "the job waits, and goes on later"

    def end(self) -> End:
        """Return how the run ends."""
        return End(EndKind.SNOOZED, again_in=max(0.0, self.until - self.at), wait=self.wait)


def told_to_stop(run: CurrentRun) -> JobCancelledError:
    """Hand the job of a run back, and return the error for what the run must not begin, or not wait for any longer."""
    hand_back(run)
    return JobCancelledError(f"job {run.job.id} was told to stop: it begins no other step")


def hand_back(run: CurrentRun) -> None:
    """Hand the job back even if the function returns. A timeout or a cancellation takes precedence."""
    run.overruled = End(EndKind.DRAINED)
