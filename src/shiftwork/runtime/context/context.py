"""What a running function may know and report: the `Context`."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast, overload

from msgspec.structs import replace

from shiftwork.core.model.job_parts import FlowFailure
from shiftwork.core.model.jobs import LogLine, Progress
from shiftwork.core.model.workers import WorkerConfig
from shiftwork.core.words import Duration, summed
from shiftwork.errors import JobCancelledError, LifecycleError, nearest
from shiftwork.runtime.context.context_calls import (
    ContextCall,
    StepInTransaction,
    begun,
    check_step,
    patience,
    plain,
    refuse_in_a_plain_function,
)
from shiftwork.runtime.context.current_run import ContextServices, CurrentRun, RunSteps, WhatFollows
from shiftwork.runtime.context.job_log import JobLog, JobLogger
from shiftwork.runtime.error_text import one_line
from shiftwork.telemetry.tracing import StepSpan

_SLEEP: Final = "the time of ctx.sleep"

P = ParamSpec("P")

T = TypeVar("T")


class FlowCall(Protocol):
    """A call of a worker, as `WORKER.call(…)` returns it."""

    def needed(self) -> Mapping[Any, bool]:
        """Return all calls that it waits for."""


class Context:
    """Passed to the function that runs. It also has every field of the worker's configuration: `ctx.name`."""

    __slots__ = ("_added", "_adding", "_run", "_said", "_services", "_steps")

    def __init__(self, run: CurrentRun, services: ContextServices) -> None:
        self._run = run
        self._services = services
        self._said: Progress | None = None
        self._steps: RunSteps | None = None
        self._added: list[str] = []
        self._adding: asyncio.Lock | None = None
        """Held while calls are added to the flow: the ids of equal calls follow from those that were added before."""

    @property
    def worker(self) -> WorkerConfig:
        """The worker's configuration."""
        return self._run.config

    @property
    def deadline(self) -> float | None:
        """When the run times out, in epoch seconds; None if never."""
        timeout = self._run.config.timeout_seconds
        return None if timeout is None else self._run.started_at + timeout

    @property
    def cancelled(self) -> bool:
        """Whether this run was told to stop: cancelled, timed out, or its process ends. A thread must check it."""
        return self._run.cancelled

    @property
    def stopping(self) -> bool:
        """Whether the process is about to stop; a long function may end early and well."""
        return self._run.stopping

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self._run.job.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._run.job.attempt

    @property
    def fence(self) -> int:
        """A number that grows with every claim: write `where fence < :fence`, and no stale run overwrites a newer."""
        return self._run.job.fence

    @property
    def last_run(self) -> float | None:
        """When the worker last started before this run, in epoch seconds; None if this is its first run."""
        return self._run.state.last_started

    @property
    def last_success(self) -> float | None:
        """When a run of the worker last succeeded, in epoch seconds; None if none ever did."""
        return self._run.state.last_success

    @property
    def last_error(self) -> str | None:
        """The worker's last error, in one line; a success does not clear it. None if no attempt ever failed."""
        return self._run.state.last_error

    @property
    def consecutive_failures(self) -> int:
        """How many runs of the worker have failed in a row."""
        return self._run.state.failures

    @property
    def is_enabled(self) -> bool:
        """Whether the worker was enabled when this run began."""
        return self._run.state.enabled

    @property
    def is_running(self) -> bool:
        """True: this run is running."""
        return True

    @property
    def flow_failures(self) -> tuple[FlowFailure, ...]:
        """The dead and cancelled jobs before a job that was added `after(…, whatever=True)`, by their ends.

        Each has `worker`, `job_id` and `error`. They are as they were when the job was claimed, and at most 100. Jobs
        that a needed job has added while it ran are not among them. Any other job has none: what it needs has
        completed.
        """
        return self._run.job.failures

    @property
    def state(self) -> Any:
        """What the app's lifespan yielded in this process; None without a lifespan."""
        return self._services.middleware.state

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """A logger whose lines carry the job and the worker. The newest lines from INFO on are kept with the job."""
        job = self._run.job
        extra: dict[str, object] = {"job_id": job.id, "worker": job.worker, "attempt": job.attempt, "pool": job.pool}
        return JobLogger(
            logging.getLogger(f"shiftwork.worker.{self.worker.name}"), extra, self._keep, self._run.discreet
        )

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far the work is. Cheap: only the newest report is kept. A long message is cut."""
        # A value that is not a number, or not text, raises here, in the function; not later, in the store.
        words = None if message is None else one_line(str(message), self._run.discreet)
        of = None if total is None else float(total)
        self._said = Progress(float(done), of, words, self._services.clock.now(), self.logged)
        self._services.report(self._run.job, self._said)

    @property
    def logged(self) -> tuple[LogLine, ...]:
        """The lines that were logged so far and are kept."""
        return () if self._run.job_log is None else self._run.job_log.lines()

    def _keep(self, level: str, text: str) -> None:
        now = self._services.clock.now()
        if self._run.job_log is None:
            self._run.job_log = JobLog()
        self._run.job_log.add(LogLine(now, level, text, self.attempt))
        self._services.report(self._run.job, replace(self._said or Progress(None, at=now), log=self.logged))

    def heartbeat(self) -> None:
        """Raise `JobCancelledError` if this run was told to stop. For loops in threads."""
        if self.cancelled:
            message = f"job {self.job_id} of {self.worker.name} was told to stop"
            raise JobCancelledError(message)

    def what_follows(self, error: BaseException) -> WhatFollows:
        """Return what becomes of the job if this run raises this: "retry", "pause" (it asked for that), or "dead".

        For `@app.around_job`: an error tracker need not report what is tried again.
        """
        return self._services.what_follows(self._run, error)

    def redact(self, text: str) -> str:
        """Return a text without the secrets of this job: arguments, results of steps and signals."""
        return self._run.discreet(text)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Your writes and the end of this job, together or not at all: `async with ctx.transaction() as connection:`.

        The connection is the store's (PostgreSQL only), inside a transaction. Leaving the block completes the job and
        commits; if this run is stale, leaving it raises `JobStateError`, and nothing was written. What the function
        does afterwards is not part of the job, and what it returns is not kept.
        """
        return self._services.transact(self._run)

    def enqueue_flow(self, *calls: FlowCall) -> Coroutine[Any, Any, list[str]]:
        """Add calls, and all that they need, to the flow of this job, in one step; return the ids of these calls' jobs.

        What waits for this job waits for them too. From a job that is in no flow, they are a flow of their own, whose
        id is the job's. If the function runs again and makes the same calls, these jobs are not added twice.
        """
        refuse_in_a_plain_function("enqueue_flow")
        return self._awaited("ctx.enqueue_flow(…)", partial(self._enqueue_flow, calls))

    async def _enqueue_flow(self, calls: tuple[FlowCall, ...]) -> list[str]:
        run = self._run
        self._adding = self._adding or asyncio.Lock()
        async with self._adding:
            # The ids of the jobs follow from the calls, so that a call whose reply was lost adds nothing twice.
            added = await self._services.calls.make(
                run, lambda: run.worker_values.add_calls(run.job, calls, tuple(self._added))
            )
            self._added += added
            return added

    # ── durable functions ────────────────────────────────────────────────────────────────────────────────────────

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...

    @overload
    def step(
        self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, T]: ...

    def step(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        """Run a part of this function once, and keep its result: a later run of the job gets it back instead.

        The result comes back as the function is annotated to return it. Steps run one after another, and keep their
        names and their order.
        """
        refuse_in_a_plain_function("step")
        return self._awaited(f"ctx.step({name!r}, …)", partial(self._step, name, function, args, kwargs))

    async def _step(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        check_step(name, function)
        steps = self._durable
        kept = await steps.begin(name)
        if kept is None:
            started_at = self._services.clock.now()
            if isinstance(function, StepInTransaction):
                run, of_user = function.run, function.function
                with StepSpan(name):
                    kept = await steps.transact(name, lambda conn: run(conn, args, kwargs), started_at, of_user)
                return steps.value(of_user, kept)
            try:
                with StepSpan(name):
                    steps.called(name)
                    value = function(*args, **kwargs)
                    if inspect.isawaitable(value):
                        value = await value
            except BaseException as error:
                steps.failed(name, error, started_at)
                raise
            kept = await steps.keep(name, value, started_at, function)
        return steps.value(plain(function), kept)

    def in_transaction(self, function: Callable[Concatenate[Any, P], T]) -> Callable[P, T]:
        """Let a step write to your tables in the transaction that keeps its result: both are there, or neither is.

        `await ctx.step("charge", ctx.in_transaction(charge), order)` calls `charge(connection, order)`. The connection
        is the store's (PostgreSQL only), inside a transaction that is committed when the function has returned.
        """
        return StepInTransaction(function)

    def sleep(
        self, seconds: Duration = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0
    ) -> Coroutine[Any, Any, None]:
        """Go on after this time. Meanwhile the job is handed back: it holds no slot, no attempt and no process."""
        refuse_in_a_plain_function("sleep")
        passing = summed(_SLEEP, seconds, minutes=minutes, hours=hours, days=days)
        return self._awaited("ctx.sleep(…)", partial(self._durable.sleep, passing))

    def wait_for(
        self, name: str, timeout_seconds: Duration | None = None, *, secret: bool = False
    ) -> Coroutine[Any, Any, Any]:
        """Return the value that `app.send(job_id, name, value)` sends. Meanwhile the job is handed back.

        Raises `TimeoutError` if the value does not come in time. A `secret` one is not shown to people.
        """
        refuse_in_a_plain_function("wait_for")
        return self._awaited(
            f"ctx.wait_for({name!r})", partial(self._durable.wait_for, name, patience(timeout_seconds), secret=secret)
        )

    def _awaited(self, what: str, work: Callable[[], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        """Return this as a coroutine, noted until it has ended: a function that returns before has missed something."""
        begun_by: list[asyncio.Task[Any] | None] = []
        coroutine = begun(begun_by, work)
        open_calls = [call for call in self._run.idle or () if not call.has_ended]
        self._run.idle = [*open_calls, ContextCall(what, coroutine, begun_by)]
        return coroutine

    @property
    def blocking(self) -> "BlockingContext":
        """The coroutines of this context as plain calls, for a plain function."""
        return BlockingContext(self._enqueue_flow, self._durable, self._services.clock.now)

    @property
    def _durable(self) -> RunSteps:
        """The steps of this run; for `step` and its like."""
        if self._steps is None:
            self._steps = self._services.steps_of(self._run)
        return self._steps

    def __getattr__(self, name: str) -> Any:
        # The pattern passes a function its configuration; we pass a context, which stands for both.
        if name in WorkerConfig.__struct_fields__:
            return getattr(self.worker, name)
        known = [one for one in dir(type(self)) if not one.startswith("_")]
        hint = nearest(name, [*known, *WorkerConfig.__struct_fields__])
        message = f"Context has no attribute {name!r}, and neither does its worker's configuration: {hint}"
        raise AttributeError(message)

    def __repr__(self) -> str:
        return f"<Context of job {self.job_id}, attempt {self.attempt} of worker {self.worker.name}>"


class BlockingContext:
    """The coroutines of a context as plain calls, for a function that runs in a thread."""

    __slots__ = ("_add_calls", "_now", "_steps")

    def __init__(
        self,
        add_calls: Callable[[tuple[FlowCall, ...]], Coroutine[Any, Any, list[str]]],
        steps: RunSteps,
        now: Callable[[], float],
    ) -> None:
        self._add_calls = add_calls
        self._steps = steps
        self._now = now

    def step(self, name: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a part of this function once, in this thread, and keep its result. See `Context.step`."""
        if isinstance(function, StepInTransaction):
            message = (
                "ctx.in_transaction(…) needs an event loop: write the function with async def, and await ctx.step(…)"
            )
            raise LifecycleError(message)
        check_step(name, function)
        steps = self._steps
        kept = self._wait(steps.begin(name), "await ctx.step(…)")
        if kept is None:
            started_at = self._now()
            try:
                with StepSpan(name):
                    steps.called(name)
                    value = function(*args, **kwargs)
            except BaseException as error:
                steps.failed(name, error, started_at)
                raise
            kept = self._wait(steps.keep(name, value, started_at, function), "await ctx.step(…)")
        return cast("T", steps.value(function, kept))

    def sleep(self, seconds: Duration = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> None:
        """Go on after this time. See `Context.sleep`."""
        passing = summed(_SLEEP, seconds, minutes=minutes, hours=hours, days=days)
        self._wait(self._steps.sleep(passing), "await ctx.sleep(…)")

    def wait_for(self, name: str, timeout_seconds: Duration | None = None, *, secret: bool = False) -> Any:
        """Return the value that is sent. See `Context.wait_for`."""
        waiting = self._steps.wait_for(name, patience(timeout_seconds), secret=secret)
        return self._wait(waiting, "await ctx.wait_for(…)")

    def enqueue_flow(self, *calls: FlowCall) -> list[str]:
        """Add calls to the flow of this job. See `Context.enqueue_flow`."""
        return self._wait(self._add_calls(calls), "await ctx.enqueue_flow(…)")

    def _wait(self, work: Coroutine[Any, Any, T], instead: str) -> T:
        return self._steps.wait(work, instead)
