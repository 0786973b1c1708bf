"""Inside a process that a node has started: run the jobs that it sends, report how they ended."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from shiftwork.core.model import Claimed, RunState
from shiftwork.core.retry import End, EndKind
from shiftwork.events import Hooks
from shiftwork.runtime.clock import SystemClock
from shiftwork.runtime.engine.local_runner import LocalRunner
from shiftwork.runtime.engine.loop_watch import LoopWatch
from shiftwork.runtime.engine.registry import Callee
from shiftwork.runtime.engine.run import Run
from shiftwork.runtime.engine.surroundings import Surroundings
from shiftwork.runtime.engine.transactions import Transactions
from shiftwork.runtime.processes.link import LONGEST_DEFINITION, Link, log_refusal, longest_frame
from shiftwork.runtime.processes.messages import (
    CallHooks,
    Drain,
    Exit,
    FromNode,
    NodeFrame,
    Ping,
    Pong,
    ProcessFrame,
    Revoke,
    RunEnded,
    Setup,
    ShowStack,
    StackShown,
    Start,
    Stop,
)
from shiftwork.runtime.processes.progress_relay import ProgressRelay
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

FULL_SECONDS: Final = 0.005
"""How soon to try again when the node does not read."""


class Instance:
    """Lives until the node ends it, or is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self.setup: asyncio.Future[Setup] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()
        self.clock = SystemClock()
        self.link: Link[NodeFrame] = Link(
            sock,
            NodeFrame,
            receive=self._received,
            closed=self.over.set,
            wrap=self._framed,
            refused=self._refused,
        )
        self._loop = asyncio.get_running_loop()
        self._callees: Mapping[str, Callee] = {}
        self._runner: LocalRunner | None = None
        self._hooks: Hooks | None = None
        self._runs: dict[str, Run] = {}
        self._inbox: list[FromNode] = []
        self._catching_up = False
        self._seen = 0
        self._progress = ProgressRelay(self.send)

    def send(self, message: Any) -> None:
        """Send a message to the node."""
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
        surroundings: Surroundings,
        *,
        alone: bool,
    ) -> None:
        """Run jobs from now on."""
        self._callees = callees
        self._runner = LocalRunner(
            callees,
            self.clock,
            report=self._progress.report,
            transactions=Transactions(store, self.clock),
            surroundings=surroundings,
            gives_up=not alone,  # the node kills a process that runs a single job
        )
        if not alone:  # one that runs a single job holds up only itself
            LoopWatch(self._runs.values).start()

    def listen(self, hooks: Hooks) -> None:
        """Call these hooks from now on."""
        self._hooks = hooks

    # ── messages from the node ───────────────────────────────────────────────────────────────────────────────────

    def _received(self, frames: list[NodeFrame]) -> None:
        messages = [message for frame in frames for message in frame.messages]
        self._inbox += messages
        starts = [message for message in messages if isinstance(message, Start)]
        if starts:
            self._seen = starts[-1].number
            self.send(Pong())
        if not self._catching_up:
            self._go_on()

    def _go_on(self) -> None:
        """Report what we have read before we act on it, and then look once more.

        The node may take back a `Start` that it does not know us to have read, while it holds us still. If it holds us
        between reading and reporting, we find its `Revoke` at the second look; if later, it knows that we have read it.
        """
        reported = -1
        self._catching_up = True
        try:
            while reported != self._seen:
                reported = self._seen
                self.link.flush()
                if self.link.unsent and not self.link.closed:
                    self._loop.call_later(FULL_SECONDS, self._go_on)
                    return
                self.link.catch_up()
        finally:
            self._catching_up = False
        inbox, self._inbox = self._inbox, []
        revoked = {job_id for message in inbox if isinstance(message, Revoke) for job_id in message.ids}
        for message in inbox:
            if not isinstance(message, Start):
                self._handle(message)
            elif message.job.id not in revoked:
                self._start(message.job, message.state)

    def _handle(self, message: FromNode) -> None:
        match message:
            case Stop():
                self._stop(message)
            case Ping():
                self.clock.follow(message.now)
                self.send(Pong())
            case ShowStack():
                self._show_stack(message)
            case CallHooks():
                if self._hooks is not None:
                    self._hooks.fire(message.event)
            case Setup():
                self.clock.follow(message.now)
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
        run = self._runs.get(wanted.id)
        if run is not None and run.job.fence == wanted.fence and self._runner is not None:
            run.stopped_as = wanted.kind
            self._runner.stop(run)

    def _show_stack(self, wanted: ShowStack) -> None:
        run = self._runs.get(wanted.id)
        if run is not None and run.job.fence == wanted.fence and self._runner is not None:
            self.send(StackShown(wanted.id, wanted.fence, self._runner.around(run)))

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, job: Claimed, state: RunState) -> None:
        assert self._runner is not None  # noqa: S101 - the node sends no job before we are ready
        callee = self._callees.get(job.worker)
        if callee is None:
            error = f"worker {job.worker} is not registered in the app as process {os.getpid()} has imported it"
            self.send(RunEnded(job.id, job.fence, End(EndKind.RAISED, error=f"{error}: restart the node")))
            return
        run = Run(job, callee.config, self.clock.now(), self, state)
        self._runs[job.id] = run
        try:
            self._runner.start(run)
        except RuntimeError as error:  # out of threads: another instance may run it
            self.run_ended(run, End(EndKind.DRAINED))
            about = {"job_id": job.id, "worker": job.worker}
            logger.warning("cannot start job %s of %s: %s; handed it back", job.id, job.worker, error, extra=about)

    def run_begun(self, run: Run) -> None:
        """A run begins at once here. The node watches its deadline."""

    def run_ended(self, run: Run, end: End) -> None:
        """Report the end of a run to the node."""
        del self._runs[run.job.id]
        self._progress.before_end(run.job.id)
        stray = self._runner is not None and run in self._runner.strays
        self.send(RunEnded(run.job.id, run.job.fence, end, run.outcome, stray))

    def _refused(self, message: Any, why: str) -> None:
        """A message is too long for the node, which would hang up on us: the others must not suffer for it."""
        if isinstance(message, RunEnded):
            end = End(EndKind.UNENCODABLE, error=f"its end cannot be reported to the node: {why}")
            self.send(RunEnded(message.id, message.fence, end, stray=message.stray))
        else:
            log_refusal(message, why)

    def _framed(self, messages: list[Any]) -> ProcessFrame:
        return ProcessFrame(self._seen, messages)
