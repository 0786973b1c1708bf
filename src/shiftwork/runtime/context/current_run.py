"""The run that a context stands for, and all that a context asks of its process: protocols, which others implement."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from msgspec import Struct

from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import Step
from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.core.model.workers import RunState, WorkerConfig
from shiftwork.runtime.context.context_calls import ContextCall
from shiftwork.runtime.context.job_log import JobLog

if TYPE_CHECKING:
    import asyncio

    from shiftwork.core.jobs.retry import End
    from shiftwork.core.options.retry_rules import RetryRule
    from shiftwork.history.recorder import HistoryRecorder
    from shiftwork.runtime.clock import Clock

T = TypeVar("T")

WhatFollows = Literal["retry", "pause", "dead"]
"""What becomes of a job after an exception: another attempt, the same attempt later, or none."""


class CurrentRun(Protocol):
    """The run that a context stands for. It does not refer to its context, so that the two make no reference cycle."""

    job: Claimed
    config: WorkerConfig
    state: RunState
    started_at: float
    cancelled: bool
    stopping: bool
    ended: bool
    outcome: Outcome | None
    overruled: "End | None"
    hidden: list[bytes] | None
    idle: list[ContextCall] | None
    job_log: JobLog | None
    task: "asyncio.Task[Any] | None"

    @property
    def worker_values(self) -> "WorkerValues":
        """What its worker does with values that are not arguments."""

    @property
    def retry_rule(self) -> "RetryRule | None":
        """The function that decides about the next attempt, if the worker has one."""

    def discreet(self, text: str) -> str:
        """Return a text that the function has produced, without the secrets that it was given."""


class WorkerValues(Protocol):
    """What a worker does for a run of it, besides calling its function. `handles.Worker` implements it."""

    def encode_step(self, name: str, value: Any, function: Callable[..., Any] | None = None) -> bytes:
        """Return the result of a step as it is stored, hidden if the function says so. Raises `StepError`."""

    def decode_step(self, name: str, function: Callable[..., Any], result: bytes) -> Any:
        """Return the result of a step as its function is annotated to return it. Raises `StepError`."""

    async def add_calls(self, job: Claimed, calls: Sequence[Any], before: Sequence[str]) -> list[str]:
        """Add calls to the flow of a running job, and return the ids of their jobs.

        `before`: the ids of all jobs that this run has added, so that equal calls make different jobs.
        """


class RunSteps(Protocol):
    """The steps of one run. `runtime.context.steps` implements it."""

    def wait(self, work: Coroutine[Any, Any, T], instead: str) -> T:
        """Run a coroutine for a plain function and return its result. Raises `LifecycleError` on an event loop."""

    async def begin(self, name: str) -> Step | None:
        """Go on to a step. Returns it if it was kept before; otherwise it runs now. Raises what it raised before."""

    def called(self, name: str) -> None:
        """Note that the function of the step that runs is about to be called."""

    def failed(self, name: str, error: BaseException, started_at: float) -> None:
        """Note that the step that runs has failed. The failure is kept if the function goes on to another step."""

    async def keep(self, name: str, value: Any, started_at: float, function: Callable[..., Any]) -> Step:
        """Keep what a step that ran has returned, hidden if its function is annotated to return a secret."""

    async def transact(
        self, name: str, work: Callable[[Any], Awaitable[Any]], started_at: float, function: Callable[..., Any]
    ) -> Step:
        """Run a step with a connection, and keep what it returns in the same transaction."""

    def value(self, function: Callable[..., Any], step: Step) -> Any:
        """Return a step's result, whether it ran now or before."""

    async def sleep(self, seconds: float) -> None:
        """Return once this time has passed since the function first came here."""

    async def wait_for(self, name: str, seconds: float | None, *, secret: bool) -> Any:
        """Return the value of the next signal with this name. A secret one is not shown to people."""


class RunCalls(Protocol):
    """Calls of the store that a run waits for. `runtime.context.store_calls` implements it."""

    async def make(self, run: CurrentRun, call: Callable[[], Awaitable[T]]) -> T:
        """Make a call that is safe to repeat, again and again while the store cannot be used."""


class ProcessMiddleware(Protocol):
    """What the app puts around the jobs of a process. `runtime.context.middleware` implements it."""

    state: Any
    arounds: tuple[Callable[[Any], Any], ...]

    @property
    def loop(self) -> "asyncio.AbstractEventLoop":
        """The event loop on which the jobs of the process run."""


class ContextServices(Struct, frozen=True):
    """What all contexts of a process use."""

    clock: "Clock"
    report: Callable[[Claimed, Progress], None]
    transact: Callable[[CurrentRun], AbstractAsyncContextManager[Any]]
    middleware: ProcessMiddleware
    steps_of: Callable[[CurrentRun], "RunSteps"]
    what_follows: Callable[[CurrentRun, BaseException], WhatFollows]
    calls: RunCalls
    recorder: "HistoryRecorder | None" = None
    """Writes down when functions are called and how they end, if the history of this process is recorded."""
