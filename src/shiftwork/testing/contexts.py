"""A `Context` for a test that calls a function itself, without a job."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from msgspec.structs import replace

from shiftwork.core.jobs.retry import End
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.job_parts import FlowFailure, Step
from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.core.model.workers import RunState, WorkerConfig
from shiftwork.core.options.retry_rules import RetryRule
from shiftwork.errors import JobStateError
from shiftwork.handles.job import JobProgress
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.context.context import Context
from shiftwork.runtime.context.context_calls import ContextCall
from shiftwork.runtime.context.current_run import ContextServices, CurrentRun
from shiftwork.runtime.context.job_log import JobLog
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.context.retry_choice import what_follows
from shiftwork.runtime.context.store_calls import StoreCalls
from shiftwork.runtime.outage_log import OutageLog

T = TypeVar("T")

NO_PAYLOAD = b"\x80"


def make_context(
    worker: Worker[Any, Any] | WorkerConfig | str = "test",
    *,
    job_id: str = "test-job",
    attempt: int = 1,
    fence: int = 1,
    state: Any = None,
    now: float | None = None,
    cancelled: bool = False,
    stopping: bool = False,
    last_run: float | None = None,
    last_success: float | None = None,
    last_error: str | None = None,
    consecutive_failures: int = 0,
    flow_failures: Sequence[FlowFailure] = (),
    signals: Mapping[str, Any] | None = None,
    connection: Any = None,
) -> "MadeContext":
    """Return a context with these values, to call a function with that takes one.

    `worker` is a registered worker, a configuration, or only a name. `state` is what the lifespan would have yielded.
    `flow_failures` are the jobs before it that are dead or cancelled.
    Steps run, and nothing is kept; `ctx.sleep` sets the context's clock, and returns. `signals` are the values that
    `ctx.wait_for` returns, by name; without one it raises `TimeoutError`, as if none came in time. `connection` is what
    steps in a transaction get.
    """
    config = WorkerConfig(name=worker) if isinstance(worker, str) else worker
    before = RunState(
        failures=consecutive_failures, last_started=last_run, last_success=last_success, last_error=last_error
    )
    run = MadeRun(
        replace(_claimed(config.name, job_id, fence=fence, attempt=attempt), failures=tuple(flow_failures)),
        config if isinstance(config, WorkerConfig) else config.config,
        before,
        cancelled=cancelled,
        stopping=stopping,
        retry_rule=worker.retry_rule if isinstance(worker, Worker) else None,
    )
    clock = ManualClock() if now is None else ManualClock(now)
    return MadeContext(run, state, clock, signals=signals or {}, connection=connection)


def _claimed(worker: str, job_id: str, *, fence: int, attempt: int) -> Claimed:
    return Claimed(
        id=job_id,
        worker=worker,
        pool="default",
        payload=NO_PAYLOAD,
        fence=fence,
        attempt=attempt,
        crashes=0,
        run_at=0.0,
    )


class MadeRun:
    """A run of a function that a test calls itself."""

    ended = False
    outcome: Outcome | None = None
    overruled: End | None = None
    hidden: list[bytes] | None = None
    idle: list[ContextCall] | None = None
    job_log: JobLog | None = None
    task: Any = None

    def __init__(
        self,
        job: Claimed,
        config: WorkerConfig,
        state: RunState,
        *,
        cancelled: bool,
        stopping: bool,
        retry_rule: RetryRule | None,
    ) -> None:
        self.job = job
        self.config = config
        self.state = state
        self.cancelled = cancelled
        self.stopping = stopping
        self.retry_rule = retry_rule
        self.started_at: float = 0.0
        self.worker_values: MadeValues = MadeValues()

    def discreet(self, text: str) -> str:
        """Return the text: a test has no secrets."""
        return text


class MadeValues:
    """What stands for the worker of a made context: it keeps the calls that the function adds."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def encode_step(self, name: str, value: Any, function: Callable[..., Any] | None = None) -> bytes:
        """Nothing is kept."""
        raise NotImplementedError

    def decode_step(self, name: str, function: Callable[..., Any], result: bytes) -> Any:
        """Nothing is kept."""
        raise NotImplementedError

    async def add_calls(self, job: Claimed, calls: Sequence[Any], before: Sequence[str]) -> list[str]:
        """Note the calls."""
        self.calls += calls
        return [f"{job.id}-{len(before) + n}" for n in range(1, len(calls) + 1)]


class MadeSteps:
    """Steps that run and are not kept."""

    def __init__(self, clock: ManualClock, signals: Mapping[str, Any], connection: Any) -> None:
        self.names: list[str] = []
        self._connection = connection
        self._clock = clock
        self._signals = signals
        self._value: Any = None

    def wait(self, work: Coroutine[Any, Any, T], instead: str) -> T:  # noqa: ARG002 - it waits for nothing
        """Run a coroutine, which never waits."""
        try:
            work.send(None)
        except StopIteration as end:
            value: T = end.value
            return value
        raise NotImplementedError

    async def begin(self, name: str) -> Step | None:
        """Let the step run."""
        self.names.append(name)
        return None

    def called(self, name: str) -> None:
        """Do nothing: nothing is recorded."""

    def failed(self, name: str, error: BaseException, started_at: float) -> None:
        """Do nothing: the step has raised."""

    async def keep(self, name: str, value: Any, started_at: float, function: Callable[..., Any]) -> Step:  # noqa: ARG002 - nothing is shown
        """Remember the value until it is asked for."""
        self._value = value
        return Step(len(self.names), name, b"", started_at, self._clock.now())

    async def transact(
        self, name: str, work: Callable[[Any], Awaitable[Any]], started_at: float, function: Callable[..., Any]
    ) -> Step:
        """Run the step with the connection that the test has given."""
        if self._connection is None:
            message = f"step {name!r} needs a connection: make_context(connection=…)"
            raise JobStateError(message)
        return await self.keep(name, await work(self._connection), started_at, function)

    def value(self, function: Callable[..., Any], step: Step) -> Any:  # noqa: ARG002 - it has not been encoded
        """Return what the step has just returned."""
        return self._value

    async def sleep(self, seconds: float) -> None:
        """Let the time pass, and return."""
        self.names.append("sleep")
        self._clock.jump(seconds)

    async def wait_for(self, name: str, seconds: float | None, *, secret: bool) -> Any:  # noqa: ARG002 - nothing is shown
        """Return the given value."""
        self.names.append(f"wait for {name}")
        if name in self._signals:
            return self._signals[name]
        if seconds is None:
            message = f"the function waits for signal {name!r}, for ever: make_context(signals={{{name!r}: …}})"
            raise JobStateError(message)
        self._clock.jump(seconds)
        message = f"signal {name!r} did not arrive in time"
        raise TimeoutError(message)


class MadeContext(Context):
    """A context that no job stands behind. It keeps what the function reports."""

    __slots__ = ("calls", "reported", "steps")

    def __init__(
        self, run: MadeRun, state: Any, clock: ManualClock, *, signals: Mapping[str, Any], connection: Any
    ) -> None:
        self.reported: list[JobProgress] = []
        """What the function has passed to `progress`, in order."""
        self.calls: list[Any] = run.worker_values.calls
        """What the function has passed to `enqueue_flow`, in order."""
        made = MadeSteps(clock, signals, connection)
        self.steps: list[str] = made.names
        """The names of the steps that the function has come to, its waits included, in order."""
        middleware = Middleware()
        middleware.state = state
        run.started_at = clock.now()
        calls = StoreCalls(OutageLog(clock.monotonic))
        services = ContextServices(clock, _leave, _refuse, middleware, lambda _run: made, what_follows, calls)
        super().__init__(run, services)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        super().progress(done, total, message)
        self.reported.append(JobProgress(done, total, message, self._services.clock.now()))


def _leave(_job: Claimed, _progress: Progress) -> None:
    """Do nothing: there is no job to keep it with."""


def _refuse(_run: CurrentRun) -> AbstractAsyncContextManager[Any]:
    raise JobStateError("ctx.transaction() needs a job in a PostgreSQL store; this context was made by make_context()")
