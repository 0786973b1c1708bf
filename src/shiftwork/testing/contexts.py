"""A `Context` for a test that calls a function itself, without a job."""

from contextlib import AbstractAsyncContextManager
from typing import Any

from shiftwork.core.model import Claimed, Outcome, Progress, RunState, WorkerConfig
from shiftwork.errors import JobStateError
from shiftwork.handles.job import JobProgress
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import ManualClock
from shiftwork.runtime.engine.context import Context, ContextServices, CurrentRun, RunSteps
from shiftwork.runtime.engine.joblog import JobLog
from shiftwork.runtime.engine.surroundings import Surroundings

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
) -> "MadeContext":
    """Return a context with these values, to call a function with that takes one.

    `worker` is a registered worker, a configuration, or only a name. `state` is what the lifespan would have yielded.
    """
    config = WorkerConfig(name=worker) if isinstance(worker, str) else worker
    run = MadeRun(
        Claimed(
            id=job_id,
            worker=config.name,
            pool="default",
            payload=NO_PAYLOAD,
            fence=fence,
            attempt=attempt,
            crashes=0,
            run_at=0.0,
        ),
        config if isinstance(config, WorkerConfig) else config.config,
        RunState(
            failures=consecutive_failures, last_started=last_run, last_success=last_success, last_error=last_error
        ),
        cancelled=cancelled,
        stopping=stopping,
    )
    return MadeContext(run, state, ManualClock() if now is None else ManualClock(now))


class MadeRun:
    """A run of a function that a test calls itself."""

    ended = False
    outcome: Outcome | None = None
    job_log: JobLog | None = None
    task: Any = None

    def __init__(self, job: Claimed, config: WorkerConfig, state: RunState, *, cancelled: bool, stopping: bool) -> None:
        self.job = job
        self.config = config
        self.state = state
        self.cancelled = cancelled
        self.stopping = stopping
        self.started_at = 0.0

    def discreet(self, text: str) -> str:
        """Return the text: a test has no secrets."""
        return text


class MadeContext(Context):
    """A context that no job stands behind. It keeps what the function reports."""

    __slots__ = ("reported",)

    def __init__(self, run: MadeRun, state: Any, clock: ManualClock) -> None:
        self.reported: list[JobProgress] = []
        """What the function has passed to `progress`, in order."""
        surroundings = Surroundings()
        surroundings.state = state
        run.started_at = clock.now()
        super().__init__(run, ContextServices(clock, _leave, _refuse, surroundings, _no_steps))

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        super().progress(done, total, message)
        self.reported.append(JobProgress(done, total, message, self._services.clock.now()))


def _leave(_job: Claimed, _progress: Progress) -> None:
    """Do nothing: there is no job to keep it with."""


def _refuse(_run: CurrentRun) -> AbstractAsyncContextManager[Any]:
    raise JobStateError("ctx.transaction() needs a job in a PostgreSQL store; this context was made by make_context()")


def _no_steps(_run: CurrentRun) -> RunSteps:
    raise JobStateError("steps need a job; this context was made by make_context()")
