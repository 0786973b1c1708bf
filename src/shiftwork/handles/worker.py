"""A `Worker`: what registering a function returns."""

import inspect
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from shiftwork.core.model import JobPriority, WorkerConfig, WorkerExecutionMode
from shiftwork.core.retry_options import RetryRule
from shiftwork.errors import nearest
from shiftwork.handles.call import Call
from shiftwork.handles.codec import OutputArgumentError, Signature
from shiftwork.handles.job import Job
from shiftwork.handles.options import Options, changed
from shiftwork.handles.output import take_outputs
from shiftwork.handles.submitter import Submitter

P = ParamSpec("P")
R = TypeVar("R")


class Worker(Generic[P, R]):
    """A registered worker. Calling it runs the function here and now; `enqueue` adds a job that runs it."""

    def __init__(
        self,
        config: WorkerConfig,
        function: Callable[..., Any],
        *,
        signature: Signature,
        submitter: Submitter,
        retry_rule: RetryRule | None = None,
    ) -> None:
        self.config = config
        self.function = function
        self.signature = signature
        self.is_async = _is_async(function)
        self.retry_rule = retry_rule
        self.bind = signature.bind
        self.encode_result = signature.encode_result
        self._submitter = submitter
        self._options = Options()

    @property
    def name(self) -> str:
        """Return the worker's name."""
        return self.config.name

    @property
    def schema(self) -> bytes | None:
        """Return the JSON Schema of its payload, or None if it takes none."""
        return self.signature.schema() if self.config.execution_mode is WorkerExecutionMode.TRIGGERED else None

    def discreet(self, payload: bytes, text: str) -> str:
        """Return a text that a run with this payload produced, without the payload's secrets."""
        return text if self.schema is None else self.signature.hide_secrets(text, payload)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Call the function itself, without a job and without a store."""
        return self.function(*args, **kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> Call[R]:
        """Return a job to be added by `enqueue_many`."""
        arguments = self.signature.named(args, kwargs)
        try:
            payload = self.signature.encode(arguments)
        except OutputArgumentError:
            return self._call_with_outputs(arguments)
        template = self.config.concurrency_key
        key = self.signature.key(template, arguments) if template else None
        return Call(self, payload, key, self._options)

    def _call_with_outputs(self, arguments: Mapping[str, Any]) -> Call[R]:
        known, inputs = take_outputs(arguments)
        template = self.config.concurrency_key
        key = self.signature.key(template, arguments) if template else None
        payload = self.signature.encode_known(known, {str(path[0]) for _, path in inputs})
        return Call(self, payload, key, self._options, inputs)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job. Once this returns, the job survives the death of any process."""
        return (await self._submitter.submit([self.call(*args, **kwargs)]))[0]

    def enqueue_blocking(self, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job from synchronous code."""
        call = self.call(*args, **kwargs)
        instead = f"await {self.name}.enqueue(…)"
        return self._submitter.run_blocking(lambda: self._submitter.submit([call]), instead)[0]

    async def enqueue_with(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job within your own transaction: it exists once that commits, and never if it is rolled back.

        `connection` is psycopg's AsyncConnection, asyncpg's Connection, SQLAlchemy's AsyncConnection or AsyncSession,
        on the database that the store is in (`postgresql://`).
        """
        return (await self._submitter.submit_with(connection, [self.call(*args, **kwargs)]))[0]

    def enqueue_with_blocking(self, connection: Any, /, *args: P.args, **kwargs: P.kwargs) -> Job[R]:
        """Add a job within your own transaction, from synchronous code.

        `connection` is psycopg's, SQLAlchemy's or Django's connection, or SQLAlchemy's Session.
        """
        return self._submitter.submit_with_blocking(connection, [self.call(*args, **kwargs)])[0]

    def with_options(
        self,
        *,
        priority: JobPriority | None = None,
        delay_seconds: float | None = None,
        run_at: float | datetime | None = None,
        unique_key: str | None = None,
        job_id: str | None = None,
    ) -> "Worker[P, R]":
        """Return the same worker, whose jobs have these options.

        `unique_key`: while a live job of this worker has the same key, enqueueing returns that job. `job_id`: your own
        id, which makes an enqueue safe to repeat.
        """
        given: dict[str, Any] = {
            "priority": priority,
            "delay_seconds": delay_seconds,
            "run_at": run_at,
            "unique_key": unique_key,
            "job_id": job_id,
        }
        return self._copy(changed(self._options, self.name, given))

    def _copy(self, options: Options) -> "Worker[P, R]":
        copy: Worker[P, R] = Worker(
            self.config,
            self.function,
            signature=self.signature,
            submitter=self._submitter,
            retry_rule=self.retry_rule,
        )
        copy._options = options
        return copy

    if not TYPE_CHECKING:  # a type checker knows the attributes

        def __getattr__(self, name: str) -> Any:
            known = [one for one in dir(type(self)) if not one.startswith("_")]
            message = f"a Worker has no attribute {name!r}: {nearest(name, known)}"
            raise AttributeError(message, name=name, obj=self)

    def __repr__(self) -> str:
        return f"<Worker {self.name}: {self.config.execution_mode} in pool {self.config.pool}>"


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 - an object whose __call__ is async
