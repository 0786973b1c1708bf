"""The steps of a job as the store keeps them: read in their order, added under the fence of the run.

All of them may be more than fits into memory, so they are read by pages. A run whose fence is no longer the current one
is stale: it reads and adds nothing. If the reply got lost that says whether a step was kept, the function starts anew,
and what is kept decides.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from shiftwork.core.jobs.durable_functions import failed, in_words
from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.job_parts import Signal, Step, StepPage
from shiftwork.core.values.envelopes import is_hidden
from shiftwork.core.values.job_limits import STEPS, steps_full
from shiftwork.errors import JobStateError, StepError, StepsFullError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.context.current_run import CurrentRun
from shiftwork.runtime.context.store_calls import UNCERTAIN_SECONDS, StoreCalls, Suspended
from shiftwork.store.abilities import Transaction
from shiftwork.store.protocol import Store

NO_STEP: Final = Step(0, "", b"", 0.0, 0.0)
"""What is never kept: steps are numbered from 1. Keeping it only shows whether the run is the current one."""


class KeptSteps:
    """The kept steps of the job of one run, and the place in them that the run has reached."""

    def __init__(self, run: CurrentRun, store: Callable[[], Awaitable[Store]], clock: Clock, calls: StoreCalls) -> None:
        self.suspended: Suspended | None = None
        """What ends the run if the function goes on."""
        self.is_stale: bool = False
        """Whether another run has taken over."""
        self._run = run
        self._store = store
        self._clock = clock
        self._calls = calls
        self._kept: deque[Step] = deque()
        """The next steps that were kept before, as far as they are read."""
        self.wants_page: bool = True
        """Whether the next steps that were kept before are not read yet."""
        self._has_more = True
        """Whether a page with more of them may follow."""
        self._done = 0
        """How many steps this run has passed."""

    # ── steps that were kept before ──────────────────────────────────────────────────────────────────────────────

    async def read_page(self) -> None:
        """Read the next steps that were kept before."""
        try:
            page = await self._calls.make(self._run, self._read_steps)
        except BaseException:
            self.suspend()
            raise
        if page is None:
            raise self.stale()
        self._kept.extend(page.steps)
        self._has_more = page.more
        self.wants_page = page.more and not page.steps

    def next(self, name: str) -> Step | None:
        """Go to the next step, and read its page. Returns the step if it was kept before."""
        if self._done >= STEPS.number:
            raise self.full()
        if not self._kept:
            return None
        step = self._kept[0]
        if step.name != name and step.name != failed(name):
            was, is_now = in_words(step.name), in_words(name)
            message = (
                f"step {step.number} was {was!r} when it ran, and is {is_now!r} now: the steps of a function must "
                "keep their names and their order while its jobs are in progress. Deploy the old function again, or "
                "discard the job and enqueue it again"
            )
            raise self.refusal(message)
        self._kept.popleft()
        self.wants_page = self._has_more and not self._kept
        self._done += 1
        self._note_secret(step)
        return step

    async def _read_steps(self) -> StepPage | None:
        return await (await self._store()).steps(self._run.job.id, self._run.job.fence, self._done)

    # ── steps that this run adds ─────────────────────────────────────────────────────────────────────────────────

    @property
    def next_number(self) -> int:
        return self._done + 1

    def new_step(self, name: str, result: bytes, started_at: float) -> Step:
        return Step(self.next_number, name, result, started_at, self._clock.now())

    async def keep(self, name: str, result: bytes, started_at: float, taking: str | None = None) -> Step:
        """Keep the next step. `taking`: the name of the signal that it takes, in the same write."""
        step = self.new_step(name, result, started_at)
        try:
            is_kept = await self._calls.make(self._run, partial(self._write, step, taking))
        except StepsFullError:
            raise self.full() from None
        except BaseException:
            self.suspend()
            raise
        if not is_kept:
            raise self.stale()
        self.add(step)
        return step

    async def _write(self, step: Step, taking: str | None) -> bool:
        return await (await self._store()).keep_step(self._run.job.id, self._run.job.fence, step, taking=taking)

    def add(self, step: Step) -> None:
        """Go past a step that this run has kept."""
        self._done += 1
        self._note_secret(step)

    def _note_secret(self, step: Step) -> None:
        """Let no text of this run show what the function gets from a hidden step."""
        if is_hidden(step.result):
            self._run.hidden = [*(self._run.hidden or ()), step.result]

    # ── in a transaction ─────────────────────────────────────────────────────────────────────────────────────────

    async def keep_in(self, transaction: Transaction, step: Step) -> Step:
        if not await transaction.keep_step(self._run.job.id, self._run.job.fence, step):
            raise self.stale()
        return step

    async def committed(self, transaction: Transaction) -> Step | None:
        """Return the step if an earlier try has kept it although its end was not reported.

        That try may be about to commit. It has a lock on the job, for which this transaction waits first.
        """
        if not await transaction.keep_step(self._run.job.id, self._run.job.fence, NO_STEP):
            raise self.stale()
        page = await self._read_steps()
        if page is None:
            raise self.stale()
        return next(iter(page.steps), None)

    # ── signals ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def read_signal(self, name: str) -> Signal | None:
        """Return the oldest signal of this name that no step has taken."""
        try:
            return await self._calls.make(self._run, partial(self._read_signal, name))
        except BaseException:
            self.suspend()
            raise

    async def _read_signal(self, name: str) -> Signal | None:
        return await (await self._store()).signal(self._run.job.id, name)

    # ── what ends the run ────────────────────────────────────────────────────────────────────────────────────────

    def suspend(self) -> None:
        """Start the function over if it continues: only the store knows whether the step is kept."""
        now = self._clock.now()
        self.suspended = Suspended(now, now + UNCERTAIN_SECONDS)

    def refusal(self, message: str) -> StepError:
        """Return the error for a step that must not run. The job is dead, even if the function catches it."""
        return self._final(StepError(message))

    def full(self) -> StepError:
        return self._final(steps_full(self._run.job.id))

    def _final(self, error: StepError) -> StepError:
        self._run.overruled = End(EndKind.RAISED, error=f"{type(error).__name__}: {error}", final=True)
        return error

    def stale(self) -> JobStateError:
        """Return the error of a run that has lost its job: it begins no other step, and does not complete the job."""
        self.is_stale = True
        message = f"this run of job {self._run.job.id} is stale: another run has taken over"
        self._run.overruled = End(EndKind.LOST, error=message)
        return JobStateError(message)
