"""A `Worker`: what registering a function returns. And a `Call` of it: a job that is not added yet, and how it becomes
a job with an id.
"""

import inspect
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import update_wrapper
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Protocol, Self, TypeVar, Unpack, cast

from msgspec import Struct

from shiftwork.core.model.jobs import CheckedJobOptions, Claimed, NewJob
from shiftwork.core.model.workers import PoolConfig, WorkerConfig, WorkerExecutionMode
from shiftwork.core.options.retry_rules import RetryRule
from shiftwork.errors import PayloadTypeError, nearest
from shiftwork.handles.codec import Signature
from shiftwork.handles.concurrency_keys import early_key, make_key
from shiftwork.handles.job import Job
from shiftwork.handles.options import NO_OPTIONS, JobOptions, changed
from shiftwork.handles.plain_values import Output, OutputArgumentError, Path, take_outputs
from shiftwork.handles.unawaited import Unstarted, mark_as_coroutine_function, report_forgotten, unstarted, watch
from shiftwork.runtime.context.context import Context

P = ParamSpec("P")
R = TypeVar("R")


R_co = TypeVar("R_co", covariant=True)


class CalledWorker(Protocol):
    """What a call needs to know of its worker."""

    config: WorkerConfig
    signature: Signature

    @property
    def name(self) -> str:
        """Return the worker's name."""

    @property
    def schema(self) -> bytes | None:
        """Return the JSON Schema of its payload, or None if it takes none."""


class Call(Struct, Generic[R_co], eq=False):
    """A job to be added by `enqueue_many`, or with the calls that it needs by `enqueue_flow`."""

    worker: CalledWorker
    payload: bytes
    key: str | None
    options: CheckedJobOptions
    inputs: tuple[tuple["Call[Any]", Path], ...] = ()
    """The calls whose outputs are among its arguments, each with the place of its output."""
    needs: tuple[tuple["Call[Any]", bool], ...] = ()
    """The calls that must end before it starts, each with whether any end will do."""

    def __repr__(self) -> str:
        return f"<Call of {self.worker.name}>"

    @property
    def output(self) -> R_co:
        """Return what stands for its result in the arguments of another call of the same flow."""
        return cast("R_co", Output(self))

    def after(self, *calls: "Call[Any]", whatever: bool = False) -> "Call[R_co]":
        """Start it only after these calls have completed, or with `whatever` after they have ended. Returns itself."""
        others = [call for call in cast("tuple[object, ...]", calls) if not isinstance(call, Call)]
        if others:
            message = f"{self.worker.name}: after() takes calls, as WORKER.call(…) returns them, not {others[0]!r}"
            raise PayloadTypeError(message)
        self.needs += tuple((call, whatever) for call in calls)
        return self

    def needed(self) -> dict["Call[Any]", bool]:
        """Return all calls that it waits for, each with whether any end will do."""
        return dict(self.needs) | {call: False for call, _ in self.inputs}

    def job(self, pool: PoolConfig, now: float) -> NewJob:
        """Return the job in the form in which the store takes it."""
        return NewJob.of(
            self.worker.config,
            pool,
            self.payload,
            self.options,
            id=self.options.job_id or new_id(now),
            now=now,
            key=self.key,
        )


class Submitter(Protocol):
    """Adds jobs to a store: `control.jobs.submission`."""

    async def submit(self, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs in one step: all of them, or none."""

    def submit_blocking(self, calls: Sequence[Call[Any]], instead: str) -> list[Job[Any]]:
        """Add jobs in one step, from synchronous code. Where an event loop runs, `instead` is the remedy."""

    async def submit_with(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection."""

    def submit_with_blocking(self, connection: Any, calls: Sequence[Call[Any]]) -> list[Job[Any]]:
        """Add jobs within the transaction of the user's connection, from synchronous code."""


class FlowExtender(Protocol):
    """Adds jobs to flows: `control.jobs.flows`."""

    async def extend(self, job: Claimed, calls: Sequence[Call[Any]], before: Sequence[str]) -> list[str]:
        """Add calls to the flow of a running job that has added `before`, and return the ids of their jobs."""


class Commands(Protocol):
    """What a worker needs of `control.Control`."""

    @property
    def submission(self) -> Submitter:
        """Return what adds jobs."""

    @property
    def flows(self) -> FlowExtender:
        """Return what adds jobs to flows."""


class App(Protocol):
    """The app of a worker. A test swaps its control, so a worker asks for it each time."""

    @property
    def control(self) -> Commands:
        """Return the commands of the store that the app stands on now."""


@report_forgotten("task", "task.{name}_blocking(…)")
class Worker(Generic[P, R]):
    """A registered worker. Calling it runs the function here and now; `enqueue` adds a job that runs it.

    It is like its function: it has the name, the documentation and the signature, and the mark of a coroutine function.
    """

    __name__: str
    __wrapped__: Callable[..., Any]

    def __init__(
        self,
        config: WorkerConfig,
        function: Callable[..., Any],
        *,
        signature: Signature,
        app: App,
        retry_rule: RetryRule | None = None,
    ) -> None:
        self.config = config
        self.function = function
        self.signature = signature
        self.is_async: bool = _is_async(function)
        update_wrapper(self, function, updated=())
        if self.is_async:
            mark_as_coroutine_function(self)
        self.retry_rule = retry_rule
        self._app = app
        self._options = NO_OPTIONS

    @property
    def name(self) -> str:
        """Return the worker's name."""
        return self.config.name

    @property
    def schema(self) -> bytes | None:
        """Return the JSON Schema of its payload, or None if it takes none."""
        return self.signature.schema() if self.config.execution_mode is WorkerExecutionMode.TRIGGERED else None

    def discreet(self, payload: bytes, text: str, values: Sequence[bytes] = ()) -> str:
        """Return a text that a run with this payload produced, without the payload's secrets and these values."""
        return text if self.schema is None and not values else self.signature.hide_secrets(text, payload, values)

    def bind(self, payload: bytes, context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments to call the function with."""
        return self.signature.bind(payload, context)

    def encode_result(self, value: Any) -> bytes | None:
        """Encode a result; None is not stored."""
        return self.signature.encode_result(value)

    def encode_step(self, name: str, value: Any, function: Callable[..., Any] | None = None) -> bytes:
        """Encode the result of a step."""
        return self.signature.encode_step(name, value, function)

    def decode_step(self, name: str, function: Callable[..., Any], result: bytes) -> Any:
        """Return the result of a step as its function is annotated to return it."""
        return self.signature.decode_step(name, function, result)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without a job and without a store. The decorators know its whole signature."""
        return self.function(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return a job to be added by `enqueue_many`."""
        arguments = self.signature.named(args, kwargs)
        try:
            payload = self.signature.encode(arguments)
        except OutputArgumentError:
            return self._call_with_outputs(arguments)
        template = self.config.concurrency_key
        key = make_key(self.signature.worker, template, arguments) if template else None
        return Call(self, payload, key, self._options)

    def _call_with_outputs(self, arguments: Mapping[str, Any]) -> Call[R]:
        known, inputs = take_outputs(arguments)
        template, later = self.config.concurrency_key, {str(path[0]) for _, path in inputs}
        key = early_key(self.signature.worker, template, known, later) if template else None
        try:
            payload = self.signature.encode_known(known, later)
        except OutputArgumentError as error:
            message = f"{self.name}: {error}: it may stand in lists, tuples and dicts, but not inside other objects"
            raise PayloadTypeError(message) from None
        return Call(self, payload, key, self._options, tuple(inputs))

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, Job[R]]:
        """Add a job. Once this returns, the job survives the death of any process."""
        # What `report_forgotten` does, with one coroutine instead of two.
        mark = unstarted("task.enqueue(…)", "task.enqueue_blocking(…)")
        coroutine = self._enqueue(mark, args, kwargs)
        watch(mark, coroutine, "Worker.enqueue")
        return coroutine

    async def _enqueue(self, mark: Unstarted, args: Any, kwargs: Any) -> Job[R]:
        mark.coroutine = None
        return (await self._app.control.submission.submit([self.call(*args, **kwargs)]))[0]

    def enqueue_blocking(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job from synchronous code."""
        return self._app.control.submission.submit_blocking(
            [self.call(*args, **kwargs)], f"await {self.name}.enqueue(…)"
        )[0]

    async def enqueue_with(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job within your own transaction: it exists once that commits, and never if it is rolled back.

        `connection` is psycopg's AsyncConnection, asyncpg's Connection, SQLAlchemy's AsyncConnection or AsyncSession,
        on the database that the store is in (`postgresql://`).
        """
        return (await self._app.control.submission.submit_with(connection, [self.call(*args, **kwargs)]))[0]

    def enqueue_with_blocking(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job within your own transaction, from synchronous code.

        `connection` is psycopg's, SQLAlchemy's or Django's connection, or SQLAlchemy's Session.
        """
        return self._app.control.submission.submit_with_blocking(connection, [self.call(*args, **kwargs)])[0]

    async def add_calls(self, job: Claimed, calls: Sequence[Call[Any]], before: Sequence[str]) -> list[str]:
        """Add calls to the flow of a running job of this worker. For `Context.enqueue_flow`."""
        return await self._app.control.flows.extend(job, calls, before)

    def with_options(self, **options: Unpack[JobOptions]) -> Self:
        """Return the same worker, whose jobs have these options.

        `priority`, `delay_seconds` or `run_at` (when it may start), `unique_key` (while a live job of this worker has
        the same key, enqueueing returns that job), `job_id` (your own id, which makes an enqueue safe to repeat),
        `max_retries` and `timeout_seconds` instead of the worker's, `expires_seconds` (a job that has not started this
        long after it was due is cancelled), `tags` (to find it by).
        """
        return self._copy(changed(self._options, self.name, options))

    def _copy(self, options: CheckedJobOptions) -> Self:
        copy = type(self)(
            self.config,
            self.function,
            signature=self.signature,
            app=self._app,
            retry_rule=self.retry_rule,
        )
        copy._options = options  # noqa: SLF001 - one of us
        return copy

    if not TYPE_CHECKING:  # a type checker knows the attributes

        def __getattr__(self, name: str) -> Any:
            known = [one for one in dir(type(self)) if not one.startswith("_")]
            message = f"a Worker has no attribute {name!r}: {nearest(name, known)}"
            raise AttributeError(message, name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Worker {self.name}: {self.config.execution_mode} in pool {self.config.pool}>"


mark_as_coroutine_function(Worker.enqueue)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object whose __call__ is async


def listed(calls: Iterable[Call[R]]) -> list[Call[R]]:
    """Return the calls that `enqueue_many` was given. Raises a `PayloadTypeError` if that is something else."""
    if not isinstance(cast("object", calls), Iterable):
        message = f"enqueue_many takes a list of calls: [WORKER.call(…), …], not {calls!r}"
        raise PayloadTypeError(message)
    given = list(calls)
    if {*map(type, given)} - {Call}:
        check_call("enqueue_many", *given)
    return given


def check_call(method: str, *calls: object) -> None:
    """Raise a `PayloadTypeError` if one of these is not a call."""
    for call in calls:
        if not isinstance(call, Call):
            message = f"{method} takes a call, as WORKER.call(…) returns it, not {call!r}"
            raise PayloadTypeError(message)


_order: Final = count()


def new_id(now: float) -> str:
    """Return a job id: milliseconds, a count and 56 random bits, in 32 hexadecimal digits that sort by time.

    The count keeps jobs with the same timestamp in the order in which they were enqueued. The random part belongs to
    this process and keeps its ids apart from those of other processes.
    """
    return f"{int(now * 1000):012x}{next(_order) & 0xFFFFFF:06x}{_random_part}"


def _draw() -> None:
    global _random_part  # noqa: PLW0603 - a forked process must draw its own
    _random_part = os.urandom(7).hex()


_random_part = ""
_draw()
if hasattr(os, "register_at_fork"):  # Windows never forks
    os.register_at_fork(after_in_child=_draw)
