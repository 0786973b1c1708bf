"""A job's end inside a transaction of its store's database: what `Context.transaction` begins."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from shiftwork.core.jobs.retry import End, EndKind, settle
from shiftwork.core.model.job_changes import Outcome
from shiftwork.errors import JobStateError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.context.context import CurrentRun
from shiftwork.runtime.context.steps import UNCERTAIN_SECONDS, Suspended
from shiftwork.runtime.context.store_calls import PASSING, StoreCalls
from shiftwork.store.abilities import Transaction, transactional
from shiftwork.store.protocol import Store


class Transactions:
    """Begins transactions that complete a job when they commit."""

    def __init__(self, store: Callable[[], Awaitable[Store]], clock: Clock, calls: StoreCalls) -> None:
        self.store = store
        """Opens the store."""
        self._clock = clock
        self._calls = calls

    @asynccontextmanager
    async def begin(self, run: CurrentRun) -> AsyncIterator[Any]:
        """Begin a transaction for this run."""
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

    def _interrupted(self, run: CurrentRun) -> Suspended:
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
