"""Runs that take place in this process, on its event loop and in threads of its own."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.context.current_run import ContextServices
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.context.retry_choice import what_follows
from shiftwork.runtime.context.steps import step_maker
from shiftwork.runtime.context.store_calls import StoreCalls, Transactions
from shiftwork.runtime.gauge import Load
from shiftwork.runtime.outage_log import OutageLog
from shiftwork.runtime.registry import Callee
from shiftwork.runtime.running.execute import cancelled, escaped, run_async, run_rest, run_sync
from shiftwork.runtime.running.job_run import LocalRun, Run
from shiftwork.runtime.running.job_threads import JobThreads
from shiftwork.runtime.running.run_stacks import RunStacks
from shiftwork.runtime.running.runner import RunnerListener
from shiftwork.store.protocol import Store
from shiftwork.telemetry.tracing import processing

if TYPE_CHECKING:
    from shiftwork.history.recorder import HistoryRecorder

logger: Final = logging.getLogger("shiftwork")

STUBBORN_SECONDS: Final = 5.0
"""How long a function that was told to stop may take before it is given up on."""


class LocalRunner:
    """Runs jobs in this process."""

    apart = False
    ready = True
    error = None
    killed_from_outside = False
    lapsed = False
    silence: float = 0.0

    def __init__(
        self,
        callees: Mapping[str, Callee],
        services: ContextServices,
        *,
        load: Callable[[], Load] = Load,
        gives_up: bool = True,
        threads: JobThreads | None = None,
    ) -> None:
        self.strays: dict[LocalRun, float] = {}
        self.open: bool = True
        self.dead: bool = False
        self.served: int = 0
        self.pid: int = os.getpid()
        self._callees = callees
        self._services = services
        self._recorder = services.recorder
        self._load = load
        self._gives_up = gives_up
        """Whether it ever gives up on a run. False where the node kills the whole process instead."""
        self._stopping = False
        self._running: set[LocalRun] = set()
        self._threads = threads or JobThreads()
        self._loop = asyncio.get_running_loop()
        self._stacks = RunStacks()
        self._listener: RunnerListener | None = None
        self._watch = self._loop.create_task(self._watch_loop(), name="shiftwork loop watch")

    @property
    def used(self) -> bool:
        return self.served > 0 or bool(self._running)

    @property
    def load(self) -> Load:
        return self._load()

    def attach(self, listener: RunnerListener) -> None:
        self._listener = listener

    def start(self, run: LocalRun) -> bool:
        """Begin, as a task or in a thread."""
        callee, span = self._callees[run.job.worker], self._prepared(run).span
        if callee.is_async:
            self._start_task(run, run_async(run, self._services))
        elif span is None:
            self._threads.start(partial(self._in_thread, run))
        else:
            span.variables.run(self._threads.start, partial(self._in_thread, run))
        self._running.add(run)
        return True

    def _prepared(self, run: LocalRun) -> LocalRun:
        run.callee = self._callees[run.job.worker]
        run.pid = self.pid
        run.stopping = self._stopping
        run.span = processing(run.job)
        return run

    def stop(self, run: LocalRun) -> None:
        """Cancel the task of a coroutine. A thread cannot be stopped: its function sees `ctx.cancelled`."""
        run.cancelled = True
        if run.task is not None:
            run.task.cancel()
        if not self._gives_up:
            return
        if run.task is None and run.stopped_as is not EndKind.CANCELLED:
            self._give_up(run)
        else:
            run.patience = self._services.clock.call_in(STUBBORN_SECONDS, partial(self._give_up, run))

    @property
    def places(self) -> int:
        """No run waits here: every run begins at once."""
        return 0

    @property
    def waiting(self) -> int:
        return 0

    def began(self, run: LocalRun) -> float | None:
        return run.began_at

    def take_back(self) -> list[Run]:
        """Return nothing: every run begins at once."""
        return []

    def drain(self) -> None:
        self._stopping = True
        for run in self._running:
            run.stopping = True

    def renew(self, until: float) -> None:
        """Do nothing: no process ends itself here."""

    def renewed(self, until: float) -> None:
        """Do nothing: the node stops the runs of this process when the lease is in danger."""

    def look(self, memory_limit: int | None) -> None:
        """Do nothing: the node measures its own process."""

    def around(self, run: LocalRun) -> str:
        """Return what a run is doing now, and what else goes on here. Safe from any thread: the loop may be blocked."""
        return self._stacks.around(run, (*self._running, *self.strays))

    async def stack(self, run: LocalRun) -> str:
        return self.around(run)

    def kill(self, why: str, *, at_once: bool = False) -> None:  # noqa: ARG002 - no process dies, so none is explained
        self.close()

    def close(self) -> None:
        """Let go of the threads."""
        if not self.dead:
            self.dead, self.open = True, False
            self._watch.cancel()
            self._threads.close()
            if self._listener is not None:
                self._listener.runner_gone(self, ())

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _start_task(self, run: LocalRun, coroutine: Coroutine[Any, Any, End]) -> None:
        run.task = self._loop.create_task(coroutine, context=run.span.variables if run.span else None)
        run.task.add_done_callback(partial(self._task_done, run))

    async def _watch_loop(self) -> None:
        """Wait until the event loop ends without a stop: then it cancels every task, and ours are to be handed back.

        A run that is cancelled by anything else has failed: its own function, or something it called, did that.
        """
        try:
            await self._loop.create_future()
        finally:
            if not self.dead:
                self.open = False
                for run in self._running:
                    if run.task is not None and run.stopped_as is None:
                        run.stopped_as = EndKind.DRAINED

    def _task_done(self, run: LocalRun, task: asyncio.Task[End]) -> None:
        try:
            end = task.result()
        except asyncio.CancelledError:
            end = cancelled(run)
        except BaseException as error:  # noqa: BLE001 - the slot must be free again, whatever that was
            end = escaped(run, error)
        if self._recorder is not None and run.began_at is not None and self._recorder.ended(run.job, end.kind):
            self._loop.call_soon(self._recorder.flush)
        self._ended(run, end)

    def _end_in_thread(self, run: LocalRun) -> End | Coroutine[Any, Any, Any]:
        try:
            end = run_sync(run, self._services)
        except BaseException as error:  # noqa: BLE001 - the slot must be free again, whatever that was
            end = escaped(run, error)
        if self._recorder is not None and isinstance(end, End):
            self._record_end(self._recorder, run, end)
        return end

    @staticmethod
    def _record_end(recorder: "HistoryRecorder", run: LocalRun, end: End) -> None:
        """Write at once that the function has ended: for a stray, long after its run has."""
        if run.began_at is not None:
            recorder.ended(run.job, end.kind)
            recorder.flush()

    def _in_thread(self, run: LocalRun) -> None:
        end = self._end_in_thread(run)
        try:
            self._loop.call_soon_threadsafe(self._thread_done, run, end)
        except RuntimeError:  # the event loop is closed
            logger.warning("job %s of %s ended after its event loop had closed", run.job.id, run.job.worker)

    def _thread_done(self, run: LocalRun, end: End | Coroutine[Any, Any, Any]) -> None:
        if isinstance(end, End):
            self._ended(run, end)
        elif run.ended or run.stopped_as is not None:
            end.close()
            if self._recorder is not None:
                self._record_end(self._recorder, run, cancelled(run))
            self._ended(run, cancelled(run))
        else:
            self._start_task(run, run_rest(run, end))

    def _ended(self, run: LocalRun, end: End) -> None:
        self._running.discard(run)
        run.idle = None  # a call that was never awaited refers to the run
        if run.ended:
            self.strays.pop(run, None)
            return
        if end.kind is EndKind.DRAINED and run.stopped_as is None:
            end = replace(end, unasked=True)
        run.ended = True
        self.served += 1
        if run.patience is not None:
            run.patience.cancel()
        if run.span is not None:
            run.span.end(end)
        if run.job_log is not None:
            run.log = run.job_log.lines()
        run.owner.run_ended(run, end)

    def _give_up(self, run: LocalRun) -> None:
        if run.ended:
            return
        assert run.stopped_as is not None  # noqa: S101 - set by all who stop a run
        self.strays[run] = self._services.clock.now()
        what = "its coroutine swallowed the cancellation" if run.task else "its thread cannot be stopped"
        timed_out = run.stopped_as is EndKind.TIMED_OUT
        why = f"timed out after {run.config.timeout_seconds:g} s" if timed_out else "told to stop"
        self._ended(run, End(run.stopped_as, error=f"{why}, but {what}", traceback=self._stacks.of(run)))
        logger.error(
            "job %s of %s was told to stop (%s), but goes on: %s",
            run.job.id,
            run.job.worker,
            run.stopped_as,
            what,
            extra={"job_id": run.job.id, "worker": run.job.worker},
        )


def context_services(
    open_store: Callable[[], Awaitable[Store]],
    clock: Clock,
    *,
    report: Callable[[Claimed, Progress], None],
    middleware: Middleware,
    outages: OutageLog | None = None,
    recorder: "HistoryRecorder | None" = None,
) -> ContextServices:
    """Return what runs here use. `report` gets what they say of their progress.

    `outages`: the log that the process shares. A process that a node has started uses the store for its runs only.
    `recorder`: writes down what is called here, if the history is recorded.
    """
    calls = StoreCalls(outages or OutageLog(clock.monotonic))
    return ContextServices(
        clock,
        report,
        Transactions(open_store, clock, calls).begin,
        middleware,
        steps_of=step_maker(open_store, clock, calls, recorder),
        what_follows=what_follows,
        calls=calls,
        recorder=recorder,
    )
