"""What a running function may know and report: the `Context`."""

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from shiftwork.core.model import Claimed, LogLine, Progress, RunState, WorkerConfig
from shiftwork.errors import JobCancelledError, nearest
from shiftwork.runtime.engine.error_text import one_line
from shiftwork.runtime.engine.joblog import JobLog, JobLogger

if TYPE_CHECKING:
    from shiftwork.runtime.clock import Clock


class Context:
    """Passed to the function that runs. It also has every field of the worker's configuration: `ctx.name`."""

    __slots__ = (
        *("_claimed", "_clock", "_discreet", "_log", "_report", "_said", "_state", "_transact"),
        *("cancelled", "deadline", "stopping", "worker"),
    )

    def __init__(
        self,
        claimed: Claimed,
        worker: WorkerConfig,
        state: RunState,
        *,
        deadline: float | None,
        clock: "Clock",
        report: Callable[[Claimed, Progress], None],
        transact: Callable[[], AbstractAsyncContextManager[Any]],
        discreet: Callable[[str], str],
    ) -> None:
        self._claimed = claimed
        self._state = state
        self._clock = clock
        self._report = report
        self._transact = transact
        self._discreet = discreet
        self._said: Progress | None = None
        self._log: JobLog | None = None
        self.worker = worker
        """The worker's configuration."""
        self.deadline = deadline
        """When the run times out, in epoch seconds; None if never."""
        self.cancelled = False
        """Whether this run was told to stop: cancelled, timed out, or its process ends. A thread must check it."""
        self.stopping = False
        """Whether the process is about to stop; a long function may end early and well."""

    @property
    def job_id(self) -> str:
        """The job's id."""
        return self._claimed.id

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1."""
        return self._claimed.attempt

    @property
    def fence(self) -> int:
        """A number that grows with every claim: write `where fence < :fence`, and no stale run overwrites a newer."""
        return self._claimed.fence

    @property
    def last_run(self) -> float | None:
        """When the worker last started before this run, in epoch seconds; None if this is its first run."""
        return self._state.last_started

    @property
    def last_success(self) -> float | None:
        """When a run of the worker last succeeded, in epoch seconds; None if none ever did."""
        return self._state.last_success

    @property
    def last_error(self) -> str | None:
        """The worker's last error, in one line; a success does not clear it. None if no attempt ever failed."""
        return self._state.last_error

    @property
    def consecutive_failures(self) -> int:
        """How many runs of the worker have failed in a row."""
        return self._state.failures

    @property
    def is_enabled(self) -> bool:
        """Whether the worker was enabled when this run began."""
        return self._state.enabled

    @property
    def is_running(self) -> bool:
        """True: this run is running."""
        return True

    @property
    def logger(self) -> "logging.LoggerAdapter[logging.Logger]":
        """A logger whose lines carry the job and the worker. The newest lines from INFO on are kept with the job."""
        extra: dict[str, object] = {"job_id": self.job_id, "worker": self.worker.name, "attempt": self.attempt}
        return JobLogger(logging.getLogger(f"shiftwork.worker.{self.worker.name}"), extra, self._keep, self._discreet)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report how far the work is. Cheap: only the newest report is kept. A long message is cut."""
        # A value that is not a number, or not text, raises here, in the function; not later, in the store.
        words = None if message is None else one_line(str(message), self._discreet)
        of = None if total is None else float(total)
        self._said = Progress(float(done), of, words, self._clock.now(), self.logged)
        self._report(self._claimed, self._said)

    @property
    def logged(self) -> tuple[LogLine, ...]:
        """The lines that were logged so far and are kept."""
        return () if self._log is None else self._log.lines()

    def _keep(self, level: str, text: str) -> None:
        now = self._clock.now()
        if self._log is None:
            self._log = JobLog()
        self._log.add(LogLine(now, level, text, self.attempt))
        self._report(self._claimed, replace(self._said or Progress(None, at=now), log=self.logged))

    def heartbeat(self) -> None:
        """Raise `JobCancelledError` if this run was told to stop. For loops in threads."""
        if self.cancelled:
            message = f"job {self.job_id} of {self.worker.name} was told to stop"
            raise JobCancelledError(message)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        """Your writes and the end of this job, together or not at all: `async with ctx.transaction() as connection:`.

        The connection is the store's (PostgreSQL only), inside a transaction. Leaving the block completes the job and
        commits; if this run is stale, leaving it raises `JobStateError`, and nothing was written. What the function
        does afterwards is not part of the job, and what it returns is not kept.
        """
        return self._transact()

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
