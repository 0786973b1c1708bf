"""What `app.testing()` yields: an app whose jobs run, and whose time passes, when the test says so.

A bench drives a node step by step. It runs what is due until nothing is left; then it sets the clock to the next time
at which something is due. So a day without work takes no time. While a function runs, the clock stands still.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

from msgspec import Struct

from shiftwork.control.control import Control
from shiftwork.control.definitions import LocalRegistry
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.model.workers import WorkerExecutionMode
from shiftwork.core.words import Duration, counted, summed
from shiftwork.errors import JobFailedError, LifecycleError
from shiftwork.events import OF_EVERY_JOB, Hooks, JobListeners
from shiftwork.handles.job import Job
from shiftwork.handles.unawaited import report_forgotten
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.context.context import Context
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.node.node import Node

LONGEST_STEP_SECONDS: Final = 60.0
"""How long the functions of one step may take, by the real clock."""
MOST_RUNS: Final = 10_000
"""How many runs may follow each other without time passing."""
MOST_IDLE_LOOKS: Final = 100
"""How often to look again at once for something that is said to be due, and does not run."""
A_MOMENT: Final = 1.0
"""How many seconds later to look again, by the number of looks so far."""
_NONE: Final[Iterator[None]] = iter(())


class Ran(Struct, frozen=True, kw_only=True):
    """One run of a job on a bench."""

    job: Job[Any]
    """The job, as it was when the bench had nothing left to do."""
    attempt: int
    status: JobStatus
    """What became of the job by this run: completed, failed (it will be retried), dead, cancelled, or handed back:
    scheduled (it sleeps, waits or was snoozed) or queued."""
    result: Any = None
    """What the function returned, as the job's result is decoded."""
    error: str | None = None
    """The error, in one line."""
    exception: BaseException | None = None
    """The exception itself, if the function or something around it raised one."""

    @property
    def worker(self) -> str:
        """The name of the worker."""
        return self.job.worker


@report_forgotten("test", "test.blocking.{name}(…)")
class Bench:
    """What `app.testing()` yields."""

    def __init__(
        self,
        clock: ManualClock,
        control: Control,
        registry: LocalRegistry,
        *,
        hooks: Hooks,
        middleware: Middleware,
        new_node: Callable[[JobListeners], Node],
    ) -> None:
        self.clock: Final = clock
        """The clock of the test: `test.clock.now()`, in epoch seconds."""
        self.blocking: Final = BlockingBench(self, control)
        """The same for a test that is a plain function."""
        self._control = control
        self._registry = registry
        self._hooks = hooks
        self._middleware = middleware
        self._new_node = new_node
        self._busy = False

    async def run_pending(self, *, raise_errors: bool = False) -> list[Ran]:
        """Run what is due until nothing is, and return the runs in the order in which they started.

        No time passes: a failed job waits for its retry until `advance`. `raise_errors` raises the exception of the
        run that failed, or an `ExceptionGroup` if several did.
        """
        return await self.advance(raise_errors=raise_errors)

    async def advance(
        self,
        seconds: Duration = 0.0,
        *,
        minutes: float = 0.0,
        hours: float = 0.0,
        days: float = 0.0,
        raise_errors: bool = False,
    ) -> list[Ran]:
        """Let this much time pass, and run everything that becomes due, each at its time: schedules, delays, retries.

        Returns the runs in the order in which they started.
        """
        end = self.clock.now() + summed("the time of advance", seconds, minutes=minutes, hours=hours, days=days)
        async with self._driving() as drive:
            while (due := await drive.run_due()) is not None and due <= end:
                _set_to(self.clock, due)
            if self.clock.now() < end:
                _set_to(self.clock, end)
                await drive.run_due()
        runs = await drive.ledger.runs(self._control)
        if raise_errors:
            _raise_errors(runs)
        return runs

    @asynccontextmanager
    async def _driving(self) -> "AsyncIterator[_Drive]":
        """Serve the app with a node of its own, as a process that starts, works and stops."""
        if self._busy:
            raise LifecycleError("this bench runs jobs already: one run_pending() or advance() at a time")
        self._busy = True
        try:
            await self._control.store.open_to_change()
            ledger = _Ledger(self._hooks)
            node = self._new_node(ledger)
            await self._middleware.enter()
            try:
                with self._noting(ledger):
                    await node.begin()
                    try:
                        yield _Drive(node, ledger, self.clock, self._endless())
                    finally:
                        await self._stop(node)
            finally:
                await self._middleware.leave()
        finally:
            self._busy = False

    def _endless(self) -> frozenset[str]:
        """The workers that are due again as soon as a run of theirs has ended."""
        configs = self._registry.worker_configs().values()
        loops = [config for config in configs if config.execution_mode is WorkerExecutionMode.CONTINUOUS]
        return frozenset(config.name for config in loops if config.interval_seconds <= 0)

    @contextmanager
    def _noting(self, ledger: "_Ledger") -> Iterator[None]:
        """Note the exceptions of runs, around everything else that is around them."""
        arounds = self._middleware.arounds
        self._middleware.arounds = (ledger.around, *arounds)
        try:
            yield
        finally:
            self._middleware.arounds = arounds

    async def _stop(self, node: Node) -> None:
        stopping = asyncio.ensure_future(node.stop(0.0))
        await until_idle()
        # A run that does not stop is given up on, by the clock.
        while any(instance.runs.active for instance in node.instances):
            await self.clock.advance(1.0)
        await stopping


class Trial:
    """What `app.testing()` returns: a context manager, for `with` and for `async with`."""

    def __init__(self, inner: AbstractContextManager[Bench]) -> None:
        self._inner = inner

    def __enter__(self) -> Bench:
        return self._inner.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._inner.__exit__(kind, error, trace)

    async def __aenter__(self) -> Bench:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class BlockingBench:
    """A bench for plain functions: its methods wait for the end."""

    def __init__(self, bench: Bench, control: Control) -> None:
        self._bench = bench
        self._control = control

    def run_pending(self, *, raise_errors: bool = False) -> list[Ran]:
        """Run what is due until nothing is: see `Bench.run_pending`."""
        return self._control.portal.call(
            lambda: self._bench.run_pending(raise_errors=raise_errors), "await test.run_pending()"
        )

    def advance(
        self,
        seconds: Duration = 0.0,
        *,
        minutes: float = 0.0,
        hours: float = 0.0,
        days: float = 0.0,
        raise_errors: bool = False,
    ) -> list[Ran]:
        """Let this much time pass: see `Bench.advance`."""
        return self._control.portal.call(
            lambda: self._bench.advance(seconds, minutes=minutes, hours=hours, days=days, raise_errors=raise_errors),
            "await test.advance(…)",
        )


class _Drive:
    """Drives a node while the clock stands still."""

    def __init__(self, node: Node, ledger: "_Ledger", clock: ManualClock, endless: frozenset[str]) -> None:
        self.ledger = ledger
        self._node = node
        self._endless = endless
        self._spent: set[str] = set()
        """Those of the endless workers that have run: one round is enough, because the next is due at once."""
        self._clock = clock

    async def run_due(self) -> float | None:
        """Run what is due until nothing is; return when something will be."""
        looks, before = 0, len(self.ledger.started)
        while True:
            known = len(self.ledger.started)
            due = await self._step(self._spent)
            self._spent |= self._endless.intersection(event.data["worker"] for event in self.ledger.started[known:])
            ran = len(self.ledger.started) > known
            if not ran and (due is None or due > self._clock.now()):
                return due
            looks = 0 if ran else looks + 1
            if looks > MOST_IDLE_LOOKS:
                return self._clock.now() + A_MOMENT
            if len(self.ledger.started) - before > MOST_RUNS:
                worker = self.ledger.started[-1].data["worker"]
                message = f"more than {MOST_RUNS:,} runs at one time, the last of {worker}: does a job enqueue itself?"
                raise LifecycleError(message)

    async def _step(self, without: Collection[str]) -> float | None:
        try:
            async with asyncio.timeout(LONGEST_STEP_SECONDS):
                return await self._node.step(without=without)
        except TimeoutError:
            runs = [run for instance in self._node.instances for run in instance.runs.active.values()]
            if not runs:
                raise
            which = ", ".join(f"{run.job.id} of {run.job.worker}" for run in runs[:3])
            message = (
                f"{counted(len(runs), 'job')} did not end within {LONGEST_STEP_SECONDS:g} s, by the real clock: "
                f"{which}. The clock of the test stands still while a function runs, so it must not wait for "
                "something later"
            )
            raise LifecycleError(message) from None


class _Ledger:
    """Records every run and the exceptions that it raised, and passes events on to the app's hooks."""

    def __init__(self, hooks: Hooks) -> None:
        self.started: list[Event] = []
        self._hooks = hooks
        self._last: dict[str, int] = {}
        """By job: the place of its last run among `started`. A run that was handed back has the number of the next."""
        self._ends: dict[int, Event] = {}
        """By the place of the run."""
        self._exceptions: dict[str, dict[int, BaseException | None]] = {}
        """By job: what its runs raised, by fence, in the order of the runs."""

    @property
    def names(self) -> Collection[str]:
        return OF_EVERY_JOB

    def fire(self, event: Event) -> None:
        if event.name == "job.started":
            self._last[event.subject] = len(self.started)
            self.started.append(event)
        elif event.name in OF_EVERY_JOB and event.subject in self._last:
            self._ends[self._last[event.subject]] = event
        self._hooks.fire(event)

    async def drain(self) -> None:
        await self._hooks.drain()

    @contextmanager
    def around(self, context: Context) -> Iterator[None]:
        raised = self._exceptions.setdefault(context.job_id, {})
        raised[context.fence] = None
        try:
            yield
        except BaseException as error:
            raised[context.fence] = error
            raise

    async def runs(self, control: Control) -> list[Ran]:
        jobs = {event.subject: await control.jobs.get(event.subject) for event in self.started}
        raised = {id: iter(exceptions.values()) for id, exceptions in self._exceptions.items()}
        return [
            await self._run(
                place, jobs[event.subject], event.data["attempt"], next(raised.get(event.subject, _NONE), None)
            )
            for place, event in enumerate(self.started)
        ]

    async def _run(self, place: int, job: Job[Any], attempt: int, exception: BaseException | None) -> Ran:
        end = self._ends.get(place)
        if end is None and place < self._last[job.id]:  # it was handed back, and has run again
            status = JobStatus.QUEUED if exception is None else JobStatus.SCHEDULED
            return Ran(job=job, attempt=attempt, status=status, exception=exception)
        if end is None:  # it was cancelled, or handed back
            return Ran(job=job, attempt=attempt, status=job.status, error=job.error, exception=exception)
        if end.name == "job.completed":
            return Ran(job=job, attempt=attempt, status=JobStatus.COMPLETED, result=await job.result())
        status = JobStatus.DEAD if end.data["retry_at"] is None else JobStatus.FAILED
        return Ran(job=job, attempt=attempt, status=status, error=end.data["error"], exception=exception)


def starting_at(now: float | datetime | None) -> ManualClock:
    """Return the clock of a test. A time without a time zone is UTC."""
    if isinstance(now, datetime):
        now = (now if now.tzinfo else now.replace(tzinfo=UTC)).timestamp()
    return ManualClock() if now is None else ManualClock(now)


def _set_to(clock: ManualClock, at: float) -> None:
    while clock.now() < at:  # a sum of floats may fall short by a hair
        clock.jump(max(at - clock.now(), 1e-6))


def _raise_errors(runs: list[Ran]) -> None:
    errors = [
        run.exception or JobFailedError(f"job {run.job.id} of {run.worker}: {run.error}")
        for run in runs
        if run.status in {JobStatus.FAILED, JobStatus.DEAD}
    ]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} runs failed", errors)
