"""The handles people hold: a `Worker` (what a decorator returns), a `Call` (a job not yet added) and a `Job`."""

import asyncio
import inspect
import os
from collections.abc import Callable, Coroutine, Sequence
from datetime import datetime
from itertools import count
from math import isfinite
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model import (
    Attempt,
    JobPriority,
    JobRecord,
    JobStatus,
    LogLine,
    NewJob,
    PoolConfig,
    Progress,
    WorkerConfig,
    WorkerExecutionMode,
    shown_without_payload,
)
from shiftwork.errors import (
    JobCancelledError,
    JobFailedError,
    LifecycleError,
    PayloadTypeError,
    ResultTimeoutError,
    UnknownJobError,
)
from shiftwork.handles.codec import Packed, Signature, plain
from shiftwork.handles.redaction import Secrets, secrets_of
from shiftwork.store.protocol import Store

_order: Final = count()
_WANTED: Final = {
    "priority": "a JobPriority",
    "delay_seconds": "a number of seconds",
    "run_at": "a datetime with a time zone, or epoch seconds",
    "unique_key": "a string that is not empty",
    "job_id": "a string that is not empty",
}

P = ParamSpec("P")
R = TypeVar("R")


class Desk(Protocol):
    """Where handles take their business: the orchestrator, as they see it."""

    async def store(self) -> Store:
        """The store, open."""

    def now(self) -> float:
        """The time by the store's clock."""

    def pool(self, name: str) -> PoolConfig:
        """A pool's configuration."""

    async def submit(self, calls: "Sequence[Call[Any]]") -> "list[Job[Any]]":
        """Add jobs."""

    async def submit_with(self, connection: Any, calls: "Sequence[Call[Any]]") -> "list[Job[Any]]":
        """Add jobs within the transaction that the user's connection is in."""

    def submit_with_blocking(self, connection: Any, calls: "Sequence[Call[Any]]") -> "list[Job[Any]]":
        """The same, from synchronous code."""

    def from_outside(self, work: Callable[[], Coroutine[Any, Any, R]]) -> R:
        """Run a coroutine from synchronous code and wait for it."""


class Options(Struct, frozen=True, kw_only=True):
    """How one job differs from its worker's other jobs."""

    priority: JobPriority | None = None
    run_at: float | None = None
    delay_seconds: float | None = None
    unique_key: str | None = None
    job_id: str | None = None
    cause: str = "enqueued"


class Call(Struct, Generic[R], frozen=True):
    """A job to be: a worker, its payload, its options. For `enqueue_many`."""

    worker: "Worker[Any, R]"
    payload: bytes
    key: str | None
    options: Options

    __repr__ = shown_without_payload

    def job(self, pool: PoolConfig, now: float) -> NewJob:
        """The job as it goes to the store."""
        return new_job(self.worker.config, pool, self, self.options, now=now)


class Worker(Generic[P, R]):
    """A registered worker. Call it to run the function here and now; `enqueue` it to have it run as a job."""

    def __init__(self, config: WorkerConfig, function: Callable[..., Any], *, signature: Signature, desk: Desk) -> None:
        self.config = config
        self.function = function
        self.signature = signature
        self.is_async = _is_async(function)
        self.bind = signature.bind
        self.encode_result = signature.encode_result
        self._desk = desk
        self._options = Options()

    @property
    def name(self) -> str:
        """The worker's name."""
        return self.config.name

    @property
    def schema(self) -> bytes | None:
        """What it takes, as JSON Schema; None for one that takes nothing."""
        return self.signature.schema() if self.config.execution_mode is WorkerExecutionMode.TRIGGERED else None

    def discreet(self, payload: bytes, text: str) -> str:
        """A text that a run with this payload has made, without its secrets."""
        secrets = secrets_of(self.schema)
        return text if secrets is None else secrets.hide(text, plain(payload))

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the plain function: no job, no store."""
        return self.function(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """A job to be, for `enqueue_many`."""
        arguments = self.signature.named(args, kwargs)
        payload = self.signature.encode(arguments)
        template = self.config.concurrency_key
        key = self.signature.key(template, arguments) if template else None
        return Call(self, payload, key, self._options)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> "Job[R]":
        """Add a job. When this returns, it survives the death of any process."""
        return (await self._desk.submit([self.call(*args, **kwargs)]))[0]

    def enqueue_blocking(self, *args: P.args, **kwargs: P.kwargs) -> "Job[R]":
        """Add a job from synchronous code."""
        call = self.call(*args, **kwargs)
        return self._desk.from_outside(lambda: self._desk.submit([call]))[0]

    async def enqueue_with(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> "Job[R]":
        """Add a job within your own transaction: it exists once that commits, and never existed if it is rolled back.

        `connection` is psycopg's AsyncConnection, asyncpg's Connection, SQLAlchemy's AsyncConnection or AsyncSession,
        on the database that the store is in (`postgresql://`).
        """
        return (await self._desk.submit_with(connection, [self.call(*args, **kwargs)]))[0]

    def enqueue_with_blocking(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> "Job[R]":
        """The same from synchronous code: psycopg's, SQLAlchemy's or Django's connection, or SQLAlchemy's Session."""
        return self._desk.submit_with_blocking(connection, [self.call(*args, **kwargs)])[0]

    def with_options(
        self,
        *,
        priority: JobPriority | None = None,
        delay_seconds: float | None = None,
        run_at: float | datetime | None = None,
        unique_key: str | None = None,
        job_id: str | None = None,
    ) -> "Worker[P, R]":
        """The same worker, whose jobs will have these options.

        `unique_key`: while a live job of this worker has the same one, enqueueing answers with that job. `job_id`: your
        own id, for an enqueue that may be repeated safely.
        """
        if delay_seconds is not None and run_at is not None:
            message = f"{self.name}: give delay_seconds or run_at, not both"
            raise PayloadTypeError(message)
        if isinstance(run_at, datetime):
            run_at = _instant(self.name, run_at)
        given: dict[str, Any] = {
            "priority": priority,
            "delay_seconds": delay_seconds,
            "run_at": run_at,
            "unique_key": unique_key,
            "job_id": job_id,
        }
        said = {name: value for name, value in given.items() if value is not None}
        return self._copy(replace(self._options, **_checked(self.name, said)))

    def triggered(self) -> "Worker[P, R]":
        """The same worker, for a run that a person wants now."""
        return self._copy(Options(priority=JobPriority.CRITICAL, cause="triggered"))

    def _copy(self, options: Options) -> "Worker[P, R]":
        copy: Worker[P, R] = Worker(self.config, self.function, signature=self.signature, desk=self._desk)
        copy._options = options
        return copy

    def __repr__(self) -> str:
        return f"<Worker {self.name}: {self.config.execution_mode} in pool {self.config.pool}>"


class Job(Generic[R]):
    """A job, as it was when it was last looked at. `refresh` looks again."""

    __slots__ = ("_decode", "_desk", "_record", "secrets")

    def __init__(
        self,
        record: JobRecord | Callable[[], JobRecord],
        desk: Desk,
        decode: Callable[[bytes | None], Any] | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._record = record
        self.secrets = secrets
        """Which of its arguments are not to be shown."""
        self._desk = desk
        self._decode = decode

    @property
    def record(self) -> JobRecord:
        """Everything the store knows of it."""
        if not isinstance(self._record, JobRecord):  # of many that are enqueued at once, few are ever looked at
            self._record = self._record()
        return self._record

    @property
    def id(self) -> str:
        """Its id."""
        return self.record.id

    @property
    def worker(self) -> str:
        """The name of its worker."""
        return self.record.worker

    @property
    def pool(self) -> str:
        """The name of its pool."""
        return self.record.pool

    @property
    def status(self) -> JobStatus:
        """Where it is in its life."""
        return self.record.status

    @property
    def priority(self) -> JobPriority:
        """Its priority."""
        return self.record.priority

    @property
    def payload(self) -> Any:
        """Its arguments, by name, secret ones too: for the program, not for people."""
        return plain(self.record.payload)

    @property
    def attempt(self) -> int:
        """How many attempts have begun."""
        return self.record.attempt

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt that did not succeed, with error and traceback."""
        return self.record.attempts

    @property
    def crashes(self) -> int:
        """How often its process died under it."""
        return self.record.crashes

    @property
    def error(self) -> str | None:
        """The last error, in one line."""
        return self.record.error

    @property
    def progress(self) -> Progress | None:
        """How far it says it is."""
        progress = self.record.progress
        return None if progress is None or progress.done is None else progress

    @property
    def logs(self) -> tuple[LogLine, ...]:
        """What it logged through `ctx.logger`, at INFO and above, in every attempt: the newest lines of each."""
        record = self.record
        told = tuple(line for attempt in record.attempts for line in attempt.log)
        if record.progress is None or (
            record.attempts and record.attempts[-1].started_at >= (record.started_at or 0.0)
        ):  # the last run is among the attempts
            return told
        return told + record.progress.log

    async def refresh(self) -> "Job[R]":
        """Look again; answers with itself. Raises `UnknownJobError` if it is gone."""
        store = await self._desk.store()
        record = (await store.get([self.id]))[0]
        if record is None:
            message = (
                f"job {self.id} of {self.worker} is no longer there: it was discarded, or pruned after it had ended"
            )
            raise UnknownJobError(message)
        self._record = record
        return self

    async def result(self, timeout_seconds: float | None = None) -> R:
        """What the function returned. Raises `JobFailedError`, `JobCancelledError`, `ResultTimeoutError`."""
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
        """Wait until it has ended for good, however it did."""
        store = await self._desk.store()
        bell = store.listen({"ended"})
        looks = 0
        try:
            async with asyncio.timeout(timeout_seconds):
                while (await self.refresh()).status.live:
                    looks += 1
                    await bell.wait()
                    if bell.closed:
                        message = f"the store was closed while job {self.id} of {self.worker} was waited for"
                        raise LifecycleError(message)
                    # Other jobs end too: the longer it takes, the less often their ends are worth a look.
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


def new_job(
    config: WorkerConfig, pool: PoolConfig, packed: Packed | Call[Any], options: Options, *, now: float
) -> NewJob:
    """A job of this worker as it goes to the store."""
    priority = config.priority if options.priority is None else options.priority
    run_at = options.run_at if options.run_at is not None else now + (options.delay_seconds or 0.0)
    return NewJob(
        id=options.job_id or new_id(now),
        worker=config.name,
        pool=config.pool,
        payload=packed.payload,
        run_at=run_at,
        priority=priority,
        head_start=priority * pool.priority_aging_seconds,
        unique_key=options.unique_key,
        key=packed.key,
        key_limit=config.max_running or 1,
        cause=options.cause,
    )


def new_id(now: float) -> str:
    """A job id: milliseconds, a count and 56 bits of chance, in 32 hexadecimal digits that sort by time.

    The count keeps jobs that are due at the same instant in the order in which they were enqueued, and apart from each
    other. The chance is this process's own: it keeps them apart from those of others.
    """
    return f"{int(now * 1000):012x}{next(_order) & 0xFFFFFF:06x}{_chance}"


def _draw() -> None:
    global _chance  # noqa: PLW0603 - a process that is forked must draw its own
    _chance = os.urandom(7).hex()


_chance = ""
_draw()
os.register_at_fork(after_in_child=_draw)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object whose __call__ is async


def _checked(worker: str, said: dict[str, Any]) -> dict[str, Any]:
    for option, value in said.items():
        if option == "priority":
            right = value in set(JobPriority)
        elif option in {"delay_seconds", "run_at"}:
            right = isinstance(value, int | float) and isfinite(value)
        else:
            right = isinstance(value, str) and value != ""
        if not right:
            message = f"{worker}: {option} must be {_WANTED[option]}, not {value!r}"
            raise PayloadTypeError(message)
    return said


def _instant(worker: str, at: datetime) -> float:
    if at.tzinfo is None:
        message = f"{worker}: run_at {at} has no time zone; use a datetime with one, or epoch seconds"
        raise PayloadTypeError(message)
    return at.timestamp()


def _plain_result(result: bytes | None) -> Any:
    return None if result is None else plain(result)
