"""A `Job`: the handle of a job that the store holds."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

from shiftwork.core.model import Attempt, JobPriority, JobRecord, JobStatus, LogLine, Progress
from shiftwork.errors import JobCancelledError, JobFailedError, LifecycleError, ResultTimeoutError, UnknownJobError
from shiftwork.handles.codec import plain
from shiftwork.handles.redaction import Secrets
from shiftwork.store.protocol import Store

R = TypeVar("R")


class Job(Generic[R]):
    """A job as of the last time it was read. `refresh` reads it again."""

    __slots__ = ("_decode", "_open_store", "_record", "secrets")

    def __init__(
        self,
        record: JobRecord | Callable[[], JobRecord],
        open_store: Callable[[], Awaitable[Store]],
        decode: Callable[[bytes | None], Any] | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._record = record
        self.secrets = secrets
        """Tells which of its arguments must not be shown; None if all may be."""
        self._open_store = open_store
        self._decode = decode

    @property
    def record(self) -> JobRecord:
        """Return everything the store knows about the job."""
        if not isinstance(self._record, JobRecord):  # of many jobs that are enqueued at once, few are ever read
            self._record = self._record()
        return self._record

    @property
    def id(self) -> str:
        """Return its id."""
        return self.record.id

    @property
    def worker(self) -> str:
        """Return the name of its worker."""
        return self.record.worker

    @property
    def pool(self) -> str:
        """Return the name of its pool."""
        return self.record.pool

    @property
    def status(self) -> JobStatus:
        """Return its status."""
        return self.record.status

    @property
    def priority(self) -> JobPriority:
        """Return its priority."""
        return self.record.priority

    @property
    def payload(self) -> Any:
        """Return its arguments by name, including secret ones: for the program, not for people."""
        return plain(self.record.payload)

    @property
    def attempt(self) -> int:
        """Return how many attempts have begun."""
        return self.record.attempt

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Return every attempt that did not succeed, with error and traceback."""
        return self.record.attempts

    @property
    def crashes(self) -> int:
        """Return how often the process that ran it died."""
        return self.record.crashes

    @property
    def error(self) -> str | None:
        """Return the last error, in one line."""
        return self.record.error

    @property
    def progress(self) -> Progress | None:
        """Return the progress that it last reported."""
        progress = self.record.progress
        return None if progress is None or progress.done is None else progress

    @property
    def logs(self) -> tuple[LogLine, ...]:
        """Return what it logged through `ctx.logger` at INFO and above: the newest lines of each attempt."""
        record = self.record
        lines = tuple(line for attempt in record.attempts for line in attempt.log)
        if record.progress is None or (
            record.attempts and record.attempts[-1].started_at >= (record.started_at or 0.0)
        ):  # the last run is among the attempts
            return lines
        return lines + record.progress.log

    async def refresh(self) -> "Job[R]":
        """Read the job again and return it. Raises `UnknownJobError` if it no longer exists."""
        store = await self._open_store()
        record = (await store.get([self.id]))[0]
        if record is None:
            message = f"job {self.id} of {self.worker} no longer exists: it was discarded, or pruned after it had ended"
            raise UnknownJobError(message)
        self._record = record
        return self

    async def result(self, timeout_seconds: float | None = None) -> R:
        """Wait for the end and return what the function returned.

        Raises `JobFailedError`, `JobCancelledError` or `ResultTimeoutError`.
        """
        await self.ended(timeout_seconds)
        if self.status is JobStatus.DEAD:
            message = f"job {self.id} of {self.worker} is dead: {self.error}"
            raise JobFailedError(message)
        if self.status is JobStatus.CANCELLED:
            message = f"job {self.id} of {self.worker} was cancelled"
            raise JobCancelledError(message)
        result: R = (self._decode or _plain_result)(self.record.result)
        return result

    async def ended(self, timeout_seconds: float | None = None) -> JobStatus:
        """Wait until it is completed, dead or cancelled, and return which."""
        store = await self._open_store()
        bell = store.listen({"ended"})
        looks = 0
        try:
            async with asyncio.timeout(timeout_seconds):
                while (await self.refresh()).status.live:
                    looks += 1
                    await bell.wait()
                    if bell.closed:
                        message = f"the store was closed while waiting for job {self.id} of {self.worker}"
                        raise LifecycleError(message)
                    # The bell rings for every job that ends: the longer this one takes, the less often it is read.
                    await asyncio.sleep(min(0.05, 0.001 * (looks - 1)))
        except TimeoutError:
            if not (await self.refresh()).status.live:
                return self.status
            message = f"job {self.id} of {self.worker} has not ended within {timeout_seconds:g} s; it is {self.status}"
            raise ResultTimeoutError(message) from None
        finally:
            bell.close()
        return self.status

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.worker}: {self.status}>"


def _plain_result(result: bytes | None) -> Any:
    return None if result is None else plain(result)
