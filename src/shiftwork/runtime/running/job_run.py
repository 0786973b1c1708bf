"""One job in the hands of this process: what is known of its run, and who owns it.

A node knows a `Run` of each job that it has claimed. Where the function itself runs, in the node or in a process that
it has started, the run is a `LocalRun`.
"""

from typing import TYPE_CHECKING, Any, Final, Protocol

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.jobs.run_options import policy
from shiftwork.core.model.jobs import Claimed, LogLine
from shiftwork.core.model.workers import RunState, WorkerConfig

if TYPE_CHECKING:
    import asyncio

    from shiftwork.core.model.job_changes import Outcome
    from shiftwork.core.options.retry_rules import RetryRule
    from shiftwork.runtime.clock import Timer
    from shiftwork.runtime.context.context_calls import ContextCall
    from shiftwork.runtime.context.current_run import WorkerValues
    from shiftwork.runtime.context.job_log import JobLog
    from shiftwork.runtime.registry import Callee
    from shiftwork.telemetry.tracing import RunSpan


_NEVER_RUN: Final = RunState()


AnyRun = Any
"""A `LocalRun` where functions run in this process, otherwise a `Run`: only its owner knows which."""


class RunOwner(Protocol):
    """Has started a run, and hears how it goes, on the event loop."""

    def run_begun(self, run: AnyRun) -> None:
        """Called when a run begins that had to wait for its turn or for a place; not for one that begins at once."""

    def run_ended(self, run: AnyRun, end: End) -> None:
        """Called exactly once, when the run has ended and `run.ended` is set."""


class Run:
    """A claimed job in the hands of this process, from claim to end, wherever its function runs."""

    __slots__ = (
        *("begun", "config", "ended", "job", "log", "number", "outcome"),
        *("owner", "patience", "place", "started_at", "state", "stopped_as", "task"),
    )
    number: int
    """Which run of its process it is, and its place there. Only of a run in a process that a node has started."""
    place: int

    def __init__(
        self,
        job: Claimed,
        config: WorkerConfig,
        started_at: float,
        owner: RunOwner,
        state: RunState = _NEVER_RUN,
    ) -> None:
        self.job: Claimed = job
        self.config: WorkerConfig = config if job.options is None else policy(config, job.options)
        """The worker's policy, with what the job has of its own."""
        self.state: RunState = state
        """The worker's state when the run began, as far as this node knew it."""
        self.started_at: float = started_at
        self.owner: RunOwner = owner
        self.begun: bool = False
        """Whether it was started, or repeats a run that was, and was not taken back before it began. Owners set it."""
        self.ended: bool = False
        self.stopped_as: EndKind | None = None
        """Why we ended the run, if we did. What the function itself reports no longer counts then."""
        self.outcome: Outcome | None = None
        """What became of the job, if the function has ended it in a transaction of its own."""
        self.log: tuple[LogLine, ...] = ()
        """The lines that the function has logged, as far as they have reached us."""
        self.patience: Timer | None = None
        """Runs while a function that was told to stop may still do so by itself."""
        self.task: asyncio.Task[End] | None = None
        """The task of this process in which the function runs; None elsewhere, in a thread, and before it begins."""


class LocalRun(Run):
    """A run whose function runs in this very process: what the function has asked for, and what is known of it."""

    __slots__ = (
        *("began_at", "callee", "cancelled", "hidden", "idle", "job_log", "overruled"),
        *("pid", "span", "stopping", "thread", "times"),
    )

    def __init__(
        self,
        job: Claimed,
        config: WorkerConfig,
        started_at: float,
        owner: RunOwner,
        state: RunState = _NEVER_RUN,
    ) -> None:
        super().__init__(job, config, started_at, owner, state)
        self.began_at: float | None = None
        """When it began, by the monotonic clock; a run that was started may have to wait for the loop or a thread."""
        self.times: memoryview[float] | None = None
        """Where its beginning is noted for the node, at its place."""
        self.callee: Callee | None = None
        """The function. The runner sets it."""
        self.pid: int = 0
        """This process, from which a child that the function forks can be told apart."""
        self.cancelled: bool = False
        """Whether the function was told to stop."""
        self.stopping: bool = False
        """Whether the function was told that its process is about to stop."""
        self.overruled: End | None = None
        """How the run ends even if the function returns, because a step or a wait of it has ended it."""
        self.idle: list[ContextCall] | None = None
        """What the function has called of its context and should await. Those that have ended may be among them."""
        self.hidden: list[bytes] | None = [*job.secrets] if job.secrets else None
        """The results of jobs and steps and the signals that the function has got, and that must not be shown."""
        self.job_log: JobLog | None = None
        self.span: RunSpan | None = None
        self.thread: int | None = None
        """The thread in which the function runs."""

    def begin(self, at: float) -> bool:
        """Note that the run begins, before anything of it is done that can fail or take long.

        Returns False if it was told to stop before that: then it must not begin.
        """
        if self.stopped_as is not None:
            return False
        self.began_at = at
        if self.times is not None:
            self.times[self.place] = at
        return True

    @property
    def worker_values(self) -> "WorkerValues":
        """What its worker does with values that are not arguments."""
        assert self.callee is not None  # noqa: S101 - the runner sets it
        return self.callee

    @property
    def retry_rule(self) -> "RetryRule | None":
        """The function that decides about the next attempt, if the worker has one."""
        return None if self.callee is None else self.callee.retry_rule

    def discreet(self, text: str) -> str:
        """Return a text that the function has produced, without the secrets that it was given."""
        return text if self.callee is None else self.callee.discreet(self.job.payload, text, self.hidden or ())
