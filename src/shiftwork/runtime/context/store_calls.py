"""The calls of the store that a running function waits for: `ctx.step` and its like, and `ctx.enqueue_flow`.

While the store is away, the call waits and is made again: an outage costs a run time, and nothing else. What ends the
wait is what ends a run anyway: its timeout, a cancellation, a stop, or a lease in danger. In the last two cases the job
is handed back, uncounted, even if the function catches what it gets (`Run.overruled`).

A call is made again although its reply may have been lost, so it must be one that is safe to repeat.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.errors import JobCancelledError, StoreBusyError, StoreFullError, StoreUnavailableError
from shiftwork.runtime.context.context import CurrentRun
from shiftwork.runtime.store_voice import STEPS, StoreVoice

T = TypeVar("T")

PASSING: Final = (StoreUnavailableError, StoreBusyError, StoreFullError)
"""The errors that may pass without a change of the call. Any other is for the function."""
FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 1.0


class StoreCalls:
    """Makes calls until the store has carried them out."""

    def __init__(self, voice: StoreVoice) -> None:
        self._voice = voice

    async def make(self, run: CurrentRun, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call for a run, again and again while the store cannot be used. Raises any other error at once."""
        pause = FIRST_PAUSE_SECONDS
        try:
            while True:
                try:
                    result = await call()
                except PASSING as error:
                    self._voice.failed(STEPS, error)
                else:
                    self._voice.worked(STEPS)
                    return result
                await asyncio.sleep(pause)  # by the real clock, also in a test: that of a test stands still meanwhile
                pause = min(LONGEST_PAUSE_SECONDS, 2 * pause)
                if run.cancelled or run.ended:  # what waits here was not cancelled with the run
                    raise told_to_stop(run)
        except asyncio.CancelledError:
            if run.cancelled:
                hand_back(run)
            raise


def told_to_stop(run: CurrentRun) -> JobCancelledError:
    """Hand the job of a run back, and return the error for what the run must not begin, or not wait for any longer."""
    hand_back(run)
    return JobCancelledError(f"job {run.job.id} was told to stop: it begins no other step")


def hand_back(run: CurrentRun) -> None:
    """Hand the job back even if the function returns. A timeout or a cancellation takes precedence."""
    run.overruled = End(EndKind.DRAINED)
