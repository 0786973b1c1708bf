"""A `Job`: the handle of a job that the store holds."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, fields
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from shiftwork.core.jobs.transitions import EXPIRED
from shiftwork.core.model.jobs import Attempt, JobPriority, JobRecord, JobStatus, LogLine, NewJob
from shiftwork.core.values.envelopes import revealed
from shiftwork.core.words import Duration, status_text, timeout_of
from shiftwork.errors import (
    JobCancelledError,
    JobFailedError,
    LifecycleError,
    PayloadNotReadError,
    ResultTimeoutError,
    UnknownJobError,
)
from shiftwork.handles.plain_values import plain
from shiftwork.handles.redaction import Secrets
from shiftwork.handles.unawaited import report_forgotten
from shiftwork.store.protocol import Store

R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")

logger: Final = logging.getLogger("shiftwork")

UNSERVED_WARNING_SECONDS: Final = 10.0
"""After waiting this long for a job that no process serves, a caller logs a warning."""


class Unfinished(Struct, frozen=True):
    """What a job that has not ended is doing."""

    text: str
    unserved: bool
    """Whether no running process would run it."""


Look = Callable[[JobRecord], Awaitable[Unfinished]]
"""Finds out what a job that has not ended is doing."""


class RunBlocking(Protocol):
    """Runs a coroutine for a caller that has no event loop."""

    def __call__(self, work: Callable[[], Coroutine[Any, Any, T]], instead: str) -> T:
        """Return the coroutine's result. Where an event loop runs, raise `LifecycleError`: `instead` is the remedy."""


@dataclass(frozen=True, slots=True)
class JobProgress:
    """How far a job is. A dataclass, which web frameworks encode as JSON."""

    done: float
    total: float | None
    message: str | None
    at: float
    """When it was reported, in epoch seconds."""


@dataclass(frozen=True, slots=True)
class JobSummary:
    """What a web application responds with for a job: neither its arguments nor its result. Instants are in seconds."""

    id: str
    worker: str
    pool: str
    status: JobStatus
    over: bool
    attempt: int
    error: str | None
    progress: JobProgress | None
    created_at: float
    run_at: float
    started_at: float | None
    ended_at: float | None
    """None until the job is over, also between two attempts."""


class JobAccess(Struct, frozen=True):
    """What the handles of a worker's jobs share."""

    open_store: Callable[[], Awaitable[Store]]
    decode: Callable[[bytes | None], Any] | None = None
    secrets: Secrets | None = None
    look: Look | None = None
    run_blocking: RunBlocking | None = None
    added_at: float = 0.0
    """When the jobs that have no record yet were added."""


@report_forgotten("job", "job.blocking.{name}(…)")
class Job(Generic[R_co]):
    """A job as of the last time it was read. `refresh` reads it again."""

    __slots__ = ("_access", "_record")

    def __init__(self, record: JobRecord | NewJob, access: JobAccess) -> None:
        self._record = record
        self._access = access

    @property
    def record(self) -> JobRecord:
        """Return everything the store knows about the job."""
        if isinstance(self._record, NewJob):  # of many jobs that are enqueued at once, few are ever read
            self._record = JobRecord.of(self._record, self._access.added_at)
        return self._record

    @property
    def secrets(self) -> Secrets | None:
        """Return the redaction rules for its arguments, or None."""
        return self._access.secrets

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
    def over(self) -> bool:
        """Return whether it is completed, dead or cancelled. A failed job is not over: it will be retried."""
        return not self.record.status.live

    @property
    def priority(self) -> JobPriority:
        """Return its priority."""
        return self.record.priority

    @property
    def payload(self) -> Any:
        """Return its arguments by name, including secret ones: for the program, not for people.

        Raises `PayloadNotReadError` if the job is from a list and its payload is large: `refresh` reads it.
        """
        record = self.record
        if record.payload_size is not None:
            message = (
                f"job {record.id} of {record.worker} was found in a list, which has only the beginning of its payload "
                f"of {record.payload_size:,} bytes: call `await job.refresh()` first, or find_jobs(…, whole=True)"
            )
            raise PayloadNotReadError(message)
        return plain(record.payload)

    @property
    def tags(self) -> tuple[str, ...]:
        """Return its tags."""
        return self.record.tags

    @property
    def expires_at(self) -> float | None:
        """Return when it is cancelled if it has not started by then, in epoch seconds; None is never."""
        return self.record.expires_at

    @property
    def cause(self) -> str:
        """Return why it exists: "enqueued", "scheduled" or "triggered"."""
        return self.record.cause

    @property
    def created_at(self) -> float:
        """Return when it was added, in epoch seconds."""
        return self.record.created_at

    @property
    def run_at(self) -> float:
        """Return when it is or was due, in epoch seconds; after a failed attempt, when the next one is due."""
        return self.record.run_at

    @property
    def started_at(self) -> float | None:
        """Return when its last attempt started, in epoch seconds; None if none has."""
        return self.record.started_at

    @property
    def ended_at(self) -> float | None:
        """Return when it ended, in epoch seconds; None until it is over. `history` has the ends of failed attempts."""
        return self.record.ended_at

    @property
    def instance(self) -> str | None:
        """Return the instance that runs it or ran it last: NODE/POOL#NUMBER; None if none has."""
        return self.record.instance

    @property
    def attempt(self) -> int:
        """Return the number of its newest attempt that counts, from 1; 0 before the first."""
        return self.record.attempt

    @property
    def attempts(self) -> int:
        """Return how many attempts have begun and count, including the one that runs."""
        return self.record.attempt

    @property
    def history(self) -> tuple[Attempt, ...]:
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
    def progress(self) -> JobProgress | None:
        """Return the progress that it last reported; all of it, once it is completed."""
        told = self.record.progress
        if told is None or told.done is None:
            return None
        whole = told.total if self.status is JobStatus.COMPLETED and told.total is not None else told.done
        return JobProgress(whole, told.total, told.message, told.at)

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

    @property
    def summary(self) -> JobSummary:
        """Return what can be shown of it as JSON. FastAPI and pydantic encode a job as this."""
        return JobSummary(**{field.name: getattr(self, field.name) for field in fields(JobSummary)})

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Any) -> Any:
        """Let pydantic take a job as it is, and encode its summary."""
        from pydantic_core import core_schema  # noqa: PLC0415 - only pydantic calls this

        encoded = core_schema.plain_serializer_function_ser_schema(
            lambda job: job.summary, return_schema=handler.generate_schema(JobSummary)
        )
        return core_schema.is_instance_schema(cls, serialization=encoded)

    @property
    def blocking(self) -> "BlockingJob[R_co]":
        """Return the coroutines of this job as plain calls, for code that has no event loop."""
        if self._access.run_blocking is None:
            message = f"job {self.id} was not made by an orchestrator; await its coroutines instead"
            raise LifecycleError(message)
        return BlockingJob(self, self._access.run_blocking)

    async def refresh(self) -> "Job[R_co]":
        """Read the job again and return it. Raises `UnknownJobError` if it no longer exists."""
        store = await self._access.open_store()
        record = (await store.get([self.id]))[0]
        if record is None:
            message = f"job {self.id} of {self.worker} no longer exists: it was discarded, or pruned after it had ended"
            raise UnknownJobError(message)
        self._record = record
        return self

    async def result(self, timeout_seconds: Duration | None = None) -> R_co:
        """Wait for the end and return what the function returned.

        Raises `JobFailedError`, `JobCancelledError` or `ResultTimeoutError`.
        """
        await self.ended(timeout_seconds)
        if self.status is JobStatus.DEAD:
            message = f"job {self.id} of {self.worker} is dead: {self.error}"
            raise JobFailedError(message)
        if self.status is JobStatus.CANCELLED:
            why = f": {self.error}" if self.error == EXPIRED else ""
            message = f"job {self.id} of {self.worker} was cancelled{why}"
            raise JobCancelledError(message)
        result: R_co = (self._access.decode or _plain_result)(self.record.result)
        return result

    async def ended(self, timeout_seconds: Duration | None = None) -> JobStatus:
        """Wait until it is completed, dead or cancelled, and return which."""
        timeout = timeout_of(timeout_seconds)
        store = await self._access.open_store()
        bell = store.listen({"ended"})
        slow = asyncio.get_running_loop().call_later(UNSERVED_WARNING_SECONDS, self._report_unserved)
        looks = 0
        try:
            async with asyncio.timeout(timeout):
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
            message = f"job {self.id} of {self.worker} is not finished after {timeout:g} s: {await self._why()}"
            raise ResultTimeoutError(message) from None
        finally:
            slow.cancel()
            bell.close()
        return self.status

    async def _why(self) -> str:
        look = self._access.look
        return f"it is {status_text(self.status)}" if look is None else (await look(self.record)).text

    def _report_unserved(self) -> None:
        """Log that the job waits for a process that does not run, once: its caller may wait for ever."""
        look = self._access.look
        if look is not None and self.status is JobStatus.QUEUED:
            task = asyncio.ensure_future(look(self.record))
            task.add_done_callback(self._log_unserved)

    def _log_unserved(self, looked: "asyncio.Future[Unfinished]") -> None:
        if not looked.cancelled() and looked.exception() is None and looked.result().unserved:
            text = looked.result().text
            logger.warning(
                "job %s of %s is not finished after %g s: %s", self.id, self.worker, UNSERVED_WARNING_SECONDS, text
            )

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.worker}: {self.status}>"


class BlockingJob(Generic[R_co]):
    """The coroutines of a job as plain calls. Each works from any thread, and in a forked process."""

    __slots__ = ("_job", "_run")

    def __init__(self, job: Job[R_co], run: RunBlocking) -> None:
        self._job = job
        self._run = run

    def refresh(self) -> "Job[R_co]":
        """Read the job again and return it. Raises `UnknownJobError` if it no longer exists."""
        return self._run(self._job.refresh, "await job.refresh()")

    def result(self, timeout_seconds: Duration | None = None) -> R_co:
        """Wait for the end and return what the function returned.

        Raises `JobFailedError`, `JobCancelledError` or `ResultTimeoutError`.
        """
        return self._run(lambda: self._job.result(timeout_seconds), "await job.result()")

    def ended(self, timeout_seconds: Duration | None = None) -> JobStatus:
        """Wait until it is completed, dead or cancelled, and return which."""
        return self._run(lambda: self._job.ended(timeout_seconds), "await job.ended()")


def _plain_result(result: bytes | None) -> Any:
    return None if result is None else plain(revealed(result))
