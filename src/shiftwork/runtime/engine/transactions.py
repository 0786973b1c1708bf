"""A job's end inside a transaction of its store's database: what `Context.transaction` begins."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from shiftwork.core.retry import End, EndKind, settle
from shiftwork.errors import JobStateError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.context import CurrentRun
from shiftwork.store.protocol import Store, transactional


class Transactions:
    """Begins transactions that complete a job when they commit."""

    def __init__(self, store: Callable[[], Awaitable[Store]], clock: Clock) -> None:
        self.store = store
        """Opens the store."""
        self._clock = clock

    @asynccontextmanager
    async def begin(self, run: CurrentRun) -> AsyncIterator[Any]:
        """Begin a transaction for this run."""
        store = transactional(await self.store(), "ctx.transaction()")
        if run.ended or run.outcome is not None:
            message = f"job {run.job.id} has ended already: nothing can be written together with its end"
            raise JobStateError(message)
        async with store.transaction() as transaction:
            yield transaction.connection
            now = self._clock.now()
            outcome = settle(run.job, End(EndKind.RETURNED), run.config, started_at=run.started_at, now=now, rand=0.0)
            if not await transaction.finish(outcome, now):
                message = f"this run of job {run.job.id} is stale: another run has taken over. Nothing was written"
                raise JobStateError(message)
        run.outcome = outcome
