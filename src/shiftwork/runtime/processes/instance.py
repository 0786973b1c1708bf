"""Inside a process that a node has started: run what it is told to, say how it ended."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from shiftwork.core.model import Claimed, Progress
from shiftwork.core.retry import End, EndKind
from shiftwork.events import Hooks
from shiftwork.runtime.clock import SystemClock
from shiftwork.runtime.engine.execute import Run
from shiftwork.runtime.engine.registry import Callee
from shiftwork.runtime.engine.runner import LocalRunner
from shiftwork.runtime.engine.transactions import Transactions
from shiftwork.runtime.processes.link import Link
from shiftwork.runtime.processes.messages import (
    Bye,
    Drain,
    Ended,
    Frame,
    FromNode,
    Happened,
    Hello,
    Orders,
    Ping,
    Pong,
    Revoke,
    Said,
    Show,
    Shown,
    Start,
    Stop,
)
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

SAY_SECONDS: Final = 0.1
"""How long progress is gathered before it is passed on."""
FULL_SECONDS: Final = 0.005
"""How soon to try again when the node does not read."""


class Instance:
    """Lives until the node says so, or is gone."""

    def __init__(self, sock: socket.socket) -> None:
        self.hello: asyncio.Future[Hello] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()
        self.clock = SystemClock()
        self._loop = asyncio.get_running_loop()
        self._link: Link[Orders] = Link(sock, Orders, heard=self._heard, gone=self.over.set, wrap=self._framed)
        self._runner: LocalRunner | None = None
        self._hooks: Hooks | None = None
        self._runs: dict[str, Run] = {}
        self._inbox: list[FromNode] = []
        self._catching_up = False
        self._seen = 0
        self._progress: dict[str, tuple[Claimed, Progress]] = {}

    def say(self, message: Any) -> None:
        """Tell the node."""
        self._link.send(message)

    def flush(self) -> None:
        """Send what was said before this process ends."""
        self._link.flush()

    async def finish(self) -> None:
        """Wait for the hooks that are under way, and until the node has taken the last word."""
        if self._hooks is not None:
            await self._hooks.drain()
        self.flush()
        while self._link.unsent and not self._link.closed:  # noqa: ASYNC110 - only the socket knows
            await asyncio.sleep(FULL_SECONDS)

    def serve(self, callees: Mapping[str, Callee], store: Callable[[], Awaitable[Store]], *, alone: bool) -> None:
        """From now on, run jobs."""
        self._callees = callees
        self._runner = LocalRunner(
            callees,
            self.clock,
            report=self._report,
            transactions=Transactions(store, self.clock),
            gives_up=not alone,  # the node ends a process that runs a single job
        )

    def listen(self, hooks: Hooks) -> None:
        """From now on, call the hooks."""
        self._hooks = hooks

    # ── what the node says ───────────────────────────────────────────────────────────────────────────────────────

    def _heard(self, frames: list[Orders]) -> None:
        messages = [message for frame in frames for message in frame.messages]
        self._inbox += messages
        starts = [message for message in messages if isinstance(message, Start)]
        if starts:
            self._seen = starts[-1].number
            self.say(Pong())
        if not self._catching_up:
            self._go_on()

    def _go_on(self) -> None:
        """Say what we have read before we act on it, and then look once more.

        What the node has not heard that we have read, it may take back, while it holds us still. Whoever is held
        between reading and saying so finds the `Revoke` at the second look; whoever is held later has said it.
        """
        said = -1
        self._catching_up = True
        try:
            while said != self._seen:
                said = self._seen
                self.flush()
                if self._link.unsent and not self._link.closed:
                    self._loop.call_later(FULL_SECONDS, self._go_on)
                    return
                self._link.catch_up()
        finally:
            self._catching_up = False
        inbox, self._inbox = self._inbox, []
        revoked = {job_id for message in inbox if isinstance(message, Revoke) for job_id in message.ids}
        for message in inbox:
            if not isinstance(message, Start):
                self._obey(message)
            elif message.job.id not in revoked:
                self._start(message.job)

    def _obey(self, message: FromNode) -> None:
        match message:
            case Stop():
                self._stop(message)
            case Ping():
                self.clock.follow(message.now)
                self.say(Pong())
            case Show():
                self._show(message)
            case Happened():
                if self._hooks is not None:
                    self._hooks.fire(message.event)
            case Hello():
                self.clock.follow(message.now)
                self.hello.set_result(message)
            case Drain():
                if self._runner is not None:
                    self._runner.drain()
            case Bye():
                self.over.set()
            case _:
                pass

    def _stop(self, wanted: Stop) -> None:
        run = self._runs.get(wanted.id)
        if run is not None and run.job.fence == wanted.fence and self._runner is not None:
            run.stopped_as = wanted.kind
            self._runner.stop(run)

    def _show(self, wanted: Show) -> None:
        run = self._runs.get(wanted.id)
        if run is not None and run.job.fence == wanted.fence and self._runner is not None:
            self.say(Shown(wanted.id, wanted.fence, self._runner.around(run)))

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, job: Claimed) -> None:
        assert self._runner is not None  # noqa: S101 - no job comes before we are ready
        callee = self._callees.get(job.worker)
        if callee is None:
            error = f"worker {job.worker} is not registered in the app as process {os.getpid()} has imported it"
            self.say(Ended(job.id, job.fence, End(EndKind.RAISED, error=f"{error}: restart the node")))
            return
        run = Run(job, callee.config, self.clock.now(), self._ended)
        self._runs[job.id] = run
        try:
            self._runner.start(run)
        except RuntimeError as error:  # no more threads to be had: somebody else may run it
            about = {"job_id": job.id, "worker": job.worker}
            logger.warning(
                "job %s of %s cannot be started: %s; handing it back", job.id, job.worker, error, extra=about
            )
            self._ended(run, End(EndKind.DRAINED))

    def _ended(self, run: Run, end: End) -> None:
        del self._runs[run.job.id]
        if run.job.id in self._progress:
            self._pass_on()
        stray = self._runner is not None and run in self._runner.strays
        self.say(Ended(run.job.id, run.job.fence, end, run.outcome, stray))

    def _report(self, job: Claimed, progress: Progress) -> None:
        """Called from any thread."""
        first = not self._progress
        self._progress[job.id] = job, progress
        if first:
            self._loop.call_soon_threadsafe(self._loop.call_later, SAY_SECONDS, self._pass_on)

    def _pass_on(self) -> None:
        said, self._progress = self._progress, {}
        for job, progress in said.values():
            self.say(Said(job.id, job.fence, progress))

    def _framed(self, messages: list[Any]) -> Frame:
        return Frame(self._seen, messages)
