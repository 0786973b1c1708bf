"""Inside a process that a node has started: run the jobs that the node sends, and report how they ended.

In a process pool, runs take place one at a time, in the order in which they arrive (`SerialRunner`).
"""

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.events import Hooks
from shiftwork.runtime.clock import SystemClock
from shiftwork.runtime.context.current_run import ContextServices
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.processes.handover import ProcessEnd
from shiftwork.runtime.processes.link import LONGEST_DEFINITION, Link, log_refusal, longest_frame
from shiftwork.runtime.processes.messages import (
    CallHooks,
    Drain,
    Exit,
    FromNode,
    LookAgain,
    NodeFrame,
    Ping,
    Pong,
    ProcessFrame,
    Progressed,
    RunEnded,
    Setup,
    ShowStack,
    StackShown,
    Start,
    Stop,
)
from shiftwork.runtime.registry import Callee
from shiftwork.runtime.running.job_run import LocalRun
from shiftwork.runtime.running.job_threads import JobThreads
from shiftwork.runtime.running.local_runner import LocalRunner, context_services
from shiftwork.runtime.running.loop_watch import LoopWatch
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from shiftwork.history.recorder import HistoryRecorder


class SerialRunner(LocalRunner):
    """Runs one job after the other. A plain function begins in the thread in which the one before it has ended.

    It never gives up on a run: the node kills the process instead.
    """

    def __init__(
        self,
        callees: Mapping[str, Callee],
        services: ContextServices,
        given: ProcessEnd,
        *,
        prepare: Callable[[Start], LocalRun | None],
        on_not_started: Callable[[LocalRun, RuntimeError], None],
        threads: JobThreads | None = None,
    ) -> None:
        super().__init__(callees, services, gives_up=False, threads=threads)
        self._given = given
        self._prepare = prepare
        """Makes a run of what was taken; None if it cannot run here."""
        self._on_not_started = on_not_started
        """Called with a run that could not be started."""
        self._context = copy_context()
        """As it was before any run, which may set variables in its own."""
        self._busy = False
        self.taking: Final = threading.Lock()
        """Held while a run is taken, on the event loop or in a thread: what was taken is prepared, or is not here."""

    def begin_next(self) -> None:
        """Begin the next run that has arrived, unless one is under way."""
        with self.taking:
            idle, self._busy = not self._busy, True
        if idle:
            self._go_on()

    def _go_on(self) -> None:
        run = self._next()
        if run is not None:
            self._context.copy().run(self._start, run)

    def _next(self) -> LocalRun | None:
        while True:
            with self.taking:
                start = self._given.take()
                if start is None:
                    self._busy = False
                    return None
                run = self._prepare(start)
            if run is not None:
                return run

    def _start(self, run: LocalRun) -> None:
        try:
            self.start(run)
        except RuntimeError as error:  # out of threads: another instance may run it
            self._on_not_started(run, error)
            self._go_on()

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _ended(self, run: LocalRun, end: End) -> None:
        super()._ended(run, end)
        self._go_on()

    def _in_thread(self, run: LocalRun) -> None:
        following = self._run_in_thread(run)
        while following is not None:
            context = self._context.copy() if following.span is None else following.span.variables
            following = context.run(self._run_in_thread, following)

    def _run_in_thread(self, run: LocalRun) -> LocalRun | None:
        """LocalRun a plain function; returns the next one that can run in this thread."""
        end: End | Coroutine[Any, Any, Any] = self._end_in_thread(run)
        if not isinstance(end, End):
            self._loop.call_soon_threadsafe(self._thread_done, run, end)
            return None
        super()._ended(run, end)
        following = self._next()
        if following is None:
            return None
        if self._callees[following.job.worker].is_async:
            self._loop.call_soon_threadsafe(self._start, following, context=self._context.copy())
            return None
        self._running.add(following)
        return self._prepared(following)


logger: Final = logging.getLogger("shiftwork")

FULL_SECONDS: Final = 0.005
"""How soon to try again when the node does not read."""

GATHER_SECONDS: Final = 0.1
"""How long progress is gathered before it is sent."""


class ChildProcess:
    """Runs the node's jobs, or the app's hooks, until the node ends the process or is gone."""

    def __init__(self, sock: socket.socket, runs: ProcessEnd) -> None:
        self._given = runs
        self.setup: asyncio.Future[Setup] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Event = asyncio.Event()
        self.clock: SystemClock = SystemClock()
        self.link: Link[NodeFrame] = Link(
            sock,
            NodeFrame,
            on_frames=self._received,
            on_closed=self.over.set,
            wrap=ProcessFrame,
            on_refused=self._refused,
        )
        self._callees: Mapping[str, Callee] = {}
        self._runner: LocalRunner | None = None
        self._serial: SerialRunner | None = None
        """The same, where runs follow each other."""
        self._hooks: Hooks | None = None
        self._runs: dict[str, LocalRun] = {}
        self._progress = ProgressRelay(self.send)

    def send(self, message: Any) -> None:
        self.link.send(message)

    async def finish(self) -> None:
        """Wait for the hooks that are under way, and until the node has read the last message."""
        if self._hooks is not None:
            await self._hooks.drain()
        self.link.flush()
        while self.link.unsent and not self.link.closed:  # noqa: ASYNC110 - only the socket knows
            await asyncio.sleep(FULL_SECONDS)

    def serve(
        self,
        callees: Mapping[str, Callee],
        store: Callable[[], Awaitable[Store]],
        middleware: Middleware,
        *,
        alone: bool,
        recorder: "HistoryRecorder | None" = None,
        threads: JobThreads | None = None,
        watched: bool = True,
    ) -> None:
        """Run jobs from now on, and write down what is called here if there is a recorder.

        `watched`: whether a thread names what blocks the event loop.
        """
        self._callees = callees
        if recorder is not None:
            self.link.before_send = recorder.flush
        services = context_services(
            store, self.clock, report=self._progress.report, middleware=middleware, recorder=recorder
        )
        if alone:
            self._runner = self._serial = SerialRunner(
                callees,
                services,
                self._given,
                prepare=self._prepare,
                on_not_started=self._not_started,
                threads=threads,
            )
        else:
            self._runner = LocalRunner(callees, services, threads=threads)
            if watched:
                LoopWatch(self._runs.values).start()  # a run that is alone holds up only itself

    def listen(self, hooks: Hooks) -> None:
        """Call these hooks from now on."""
        self._hooks = hooks
        LoopWatch(tuple, others="a hook", waiting="all other hooks and alerts wait").start()

    # ── messages from the node ───────────────────────────────────────────────────────────────────────────────────

    def _received(self, frames: list[NodeFrame]) -> None:
        for frame in frames:
            arrived = False
            for message in frame.messages:
                if isinstance(message, Start):
                    self._given.arrived(message)
                    arrived = True
                elif isinstance(message, LookAgain):
                    arrived = True
                else:
                    if arrived:  # the message may be about one of them
                        self._take()
                    arrived = False
                    self._handle(message)
            if arrived:
                self._take()

    def _handle(self, message: FromNode) -> None:
        match message:
            case Stop():
                self._stop(message)
            case Ping():
                self.clock.follow(message.now, message.at, message.at)
                self.send(Pong())
            case ShowStack():
                self._show_stack(message)
            case CallHooks():
                if self._hooks is not None:
                    self._hooks.fire(message.event)
            case Setup():
                self.clock.follow(message.now, message.at, message.at)
                describes = message.role == "hooks"
                self.link.longest = LONGEST_DEFINITION if describes else longest_frame(message.max_payload_bytes)
                self.setup.set_result(message)
            case Drain():
                if self._runner is not None:
                    self._runner.drain()
            case Exit():
                self.over.set()
            case _:
                pass

    def _stop(self, wanted: Stop) -> None:
        with nullcontext() if self._serial is None else self._serial.taking:  # a thread may be about to add it
            run = self._runs.get(wanted.id)
        if run is not None and run.job.fence == wanted.fence and self._runner is not None:
            run.stopped_as = wanted.kind
            self._runner.stop(run)

    def _show_stack(self, wanted: ShowStack) -> None:
        run = self._runs.get(wanted.id)
        if run is not None and run.job.fence == wanted.fence and self._runner is not None:
            self.send(StackShown(wanted.id, wanted.fence, self._runner.around(run)))

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _take(self) -> None:
        """Start what has arrived and was not taken back: all of it, or the first where runs follow each other."""
        if self._serial is not None:
            self._serial.begin_next()
            return
        assert self._runner is not None  # noqa: S101 - the node sends no job before we are ready
        for start in self._given.take_all():
            run = self._prepare(start)
            if run is None:
                continue
            try:
                self._runner.start(run)
            except RuntimeError as error:  # out of threads: another instance may run it
                self._not_started(run, error)

    def _prepare(self, start: Start) -> LocalRun | None:
        """Make a run of what was taken, in any thread; None if we cannot run it."""
        job = start.job
        callee = self._callees.get(job.worker)
        if callee is None:
            error = f"worker {job.worker} is not registered in the app as process {os.getpid()} has imported it"
            self._send_end(RunEnded(job.id, job.fence, End(EndKind.RAISED, error=f"{error}: restart the node")))
            return None
        run = self._runs[job.id] = LocalRun(job, callee.config, self.clock.now(), self, start.state)
        run.times, run.place = self._given.times, start.place
        return run

    def _not_started(self, run: LocalRun, error: RuntimeError) -> None:
        self.run_ended(run, End(EndKind.DRAINED))
        job = run.job
        about = {"job_id": job.id, "worker": job.worker}
        logger.warning("cannot start job %s of %s: %s; handed it back", job.id, job.worker, error, extra=about)

    def run_begun(self, run: LocalRun) -> None:
        """Do nothing: a run begins at once here, and the node watches its deadline."""

    def run_ended(self, run: LocalRun, end: End) -> None:
        """Report the end of a run to the node. Its job may run here again: see `Runs.run_ended`."""
        if self._runs.get(run.job.id) is run:
            del self._runs[run.job.id]
        self._progress.before_end(run.job.id)
        stray = self._runner is not None and run in self._runner.strays
        self._send_end(RunEnded(run.job.id, run.job.fence, end, run.outcome, stray))

    def _send_end(self, ended: RunEnded) -> None:
        """Send an end; where runs follow each other, before the next run can kill the process."""
        if self._serial is None:
            self.link.send(ended)
        else:
            self.link.deliver(ended)

    def _refused(self, message: Any, why: str) -> None:
        """Send a short end instead of a message that is too long: the node would close the connection over that."""
        if isinstance(message, RunEnded):
            end = End(EndKind.UNENCODABLE, error=f"its end cannot be reported to the node: {why}")
            self.send(RunEnded(message.id, message.fence, end, stray=message.stray))
        else:
            log_refusal(message, why)


class ProgressRelay:
    """Gathers progress, and sends it."""

    def __init__(self, send: Callable[[Progressed], None]) -> None:
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._newest: dict[str, tuple[Claimed, Progress]] = {}

    def report(self, job: Claimed, progress: Progress) -> None:
        """Take progress over. Safe from any thread."""
        first = not self._newest
        self._newest[job.id] = job, progress
        if first:
            self._loop.call_soon_threadsafe(self._loop.call_later, GATHER_SECONDS, self._send_all)

    def before_end(self, job_id: str) -> None:
        """Send what a run has reported last, if it was not sent yet: its end comes next."""
        if job_id in self._newest:
            self._send_all()

    def _send_all(self) -> None:
        newest, self._newest = self._newest, {}
        for job, progress in newest.values():
            self._send(Progressed(job.id, job.fence, progress))
