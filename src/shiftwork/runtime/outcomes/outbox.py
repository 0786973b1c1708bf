"""Outcomes on their way to the store: gathered, written in batches, retried until they are written.

An outcome that the store rejects because the fence has moved on is dropped: another run of the job counts.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.jobs.retry import is_refused
from shiftwork.core.model.job_changes import Finished, Outcome
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.words import counted
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.runtime.outage_log import OUTCOMES, OutageLog
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

LARGEST_BATCH: Final = 500

RETRY_SECONDS: Final = 0.5


class Settled(Struct, frozen=True, gc=False):
    """An outcome, and when its run began."""

    outcome: Outcome
    started_at: float
    written: bool = False
    """Whether the store has the outcome already: the function wrote it in a transaction."""
    max_retries: int | None = None
    """How many retries the job has of its own; None if it has as many as its worker."""
    final: bool = False
    """Whether no node of another version of the app can help."""


class Outbox:
    """Writes outcomes. One batch is under way at a time; outcomes that come meanwhile make the next."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        stopwatch: Stopwatch,
        outages: OutageLog,
        review: Callable[[Sequence[Settled]], Awaitable[dict[str, Outcome]]],
        before_finish: Sequence[Callable[[Sequence[Settled]], Awaitable[None]]],
        on_written: Callable[[Sequence[Settled], Finished], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._stopwatch = stopwatch
        self._outages = outages
        self._review = review
        """Returns what to write instead of outcomes of jobs that a function here has refused, by the jobs' ids."""
        self._before_finish = before_finish
        self._on_written = on_written
        self._waiting: list[Settled] = []
        self._under_way: list[Settled] = []
        self._task: asyncio.Task[None] | None = None
        self._no_patience = False

    def put(self, settled: Settled) -> None:
        """Take an outcome over."""
        self._waiting.append(settled)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="shiftwork outbox")

    def holds(self) -> set[str]:
        """Return the ids of the jobs whose outcome is not written yet."""
        return {settled.outcome.id for settled in (*self._waiting, *self._under_way)}

    async def drain(self, timeout_seconds: float) -> int:
        """Wait until everything is written, up to this time; returns how many outcomes were given up on."""
        timer = self._clock.call_at(self._clock.now() + timeout_seconds, self.give_up)
        await self.wait_until_written()
        timer.cancel()
        return len(self._waiting)

    async def wait_until_written(self) -> None:
        """Wait until everything is written, or given up on."""
        while self._task is not None:
            await asyncio.wait([self._task])

    def give_up(self) -> None:
        """Write nothing any more: the store is about to be closed, or has not answered for too long."""
        self._no_patience = True
        if self._task is not None and self._under_way:  # one that has not begun could not clean up
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting and not self._no_patience:
                self._under_way, self._waiting = self._waiting[:LARGEST_BATCH], self._waiting[LARGEST_BATCH:]
                await self._write(self._under_way)
                self._under_way = []
        finally:
            self._waiting = [*self._under_way, *self._waiting]
            self._under_way = []
            self._task = None

    async def _write(self, batch: list[Settled]) -> None:
        outcomes: list[Outcome] = []
        repeated = reviewed = prepared = False
        while True:
            try:
                if not reviewed:
                    await self._review_refused(batch)
                    outcomes = [settled.outcome for settled in batch if not settled.written]
                    reviewed = True
                if not prepared:
                    for prepare in self._before_finish:
                        await prepare(batch)
                    prepared = True
                finished = await self._finish(outcomes)
                if repeated:
                    finished = await self._recognise(outcomes, finished)
            except Exception as error:  # noqa: BLE001 - whatever it is, the outcomes must be written
                self._report(error, len(batch))
                repeated = True
                await pause(self._clock, RETRY_SECONDS)
            else:
                accepted = iter(finished.accepted)
                everything = [settled.written or next(accepted) for settled in batch]
                self._follow_up(batch, Finished(everything, finished.disabled))
                return

    async def _review_refused(self, batch: list[Settled]) -> None:
        refused = [settled for settled in batch if not settled.final and is_refused(settled.outcome)]
        if refused:
            instead = await self._review(refused)
            batch[:] = [replace(one, outcome=instead.get(one.outcome.id, one.outcome)) for one in batch]

    def _follow_up(self, batch: Sequence[Settled], finished: Finished) -> None:
        try:
            self._on_written(batch, finished)
        except Exception:  # the store has the outcomes: writing them again would only be refused
            with suppress(Exception):  # what failed may be a log handler of the user's
                logger.exception("cannot report %s", counted(len(batch), "outcome"))

    def _report(self, error: Exception, n: int) -> None:
        if isinstance(error, StoreError):
            self._outages.failed(OUTCOMES, error)
        else:
            what = counted(n, "outcome")
            logger.error("cannot write %s: %s; trying again in %.1f s", what, error, RETRY_SECONDS, exc_info=error)

    async def _finish(self, outcomes: Sequence[Outcome]) -> Finished:
        if not outcomes:
            return Finished([], [])
        return await self._stopwatch.time(OUTCOMES, self._store.finish(outcomes, self._clock.now()))

    async def _recognise(self, outcomes: Sequence[Outcome], finished: Finished) -> Finished:
        """Count as accepted what the store rejects only because an earlier try got through and its answer was lost."""
        rejected = [outcome for outcome, accepted in zip(outcomes, finished.accepted, strict=True) if not accepted]
        if not rejected:
            return finished
        records = await self._store.get([outcome.id for outcome in rejected])
        # Under one fence a job ends once, and this fence was only ever ours.
        ours = {
            record.id: outcome
            for outcome, record in zip(rejected, records, strict=True)
            if record and record.fence == outcome.fence and record.status is not JobStatus.PROCESSING
        }
        blamed = {outcome.worker: outcome for outcome in ours.values() if outcome.disable_after is not None}
        lanes = (await self._store.survey(blamed, self._clock.now())).lanes if blamed else {}
        disabled = [
            worker
            for worker, outcome in blamed.items()
            if worker in lanes and not lanes[worker].state.enabled and lanes[worker].state.last_error == outcome.error
        ]
        accepted = [ok or outcome.id in ours for outcome, ok in zip(outcomes, finished.accepted, strict=True)]
        return Finished(accepted, [*finished.disabled, *disabled])


async def pause(clock: Clock, seconds: float) -> None:
    """Sleep by the clock."""
    over = asyncio.Event()
    timer = clock.call_at(clock.now() + seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
