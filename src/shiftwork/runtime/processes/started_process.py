"""A process that this one has started: exchange messages with it, renew its lease, look into it, end it.

`StartedProcess` is the process itself. `Termination` makes it end: it is asked to, terminated or killed, and killed if
that takes too long. `StackQuestions` asks it what its runs are doing.
"""

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final

from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.processes.handover import CUT_OFF, STACK_SIGNAL
from shiftwork.runtime.processes.host import THIS_HOST, Host
from shiftwork.runtime.processes.link import Link, log_refusal
from shiftwork.runtime.processes.messages import (
    LookAgain,
    NodeFrame,
    ProcessFrame,
    ShowStack,
    StackShown,
)
from shiftwork.runtime.processes.process_guard import NodeGuard
from shiftwork.runtime.running.job_run import Run

logger: Final = logging.getLogger("shiftwork")

SPEECHLESS_SECONDS: Final = 5.0
"""How long a process may live on after its connection has ended."""

STACK_SECONDS: Final = 0.3

ANSWER_SECONDS: Final = 1.0
"""How long a process may take to answer, before it is made to by a signal."""

SIGNAL_SECONDS: Final = 2.0
"""How long it may take to react to the signal."""

STUBBORN_SECONDS: Final = 5.0
"""How long a process may take to do what it was asked to."""

APP_IMPORT_SECONDS: Final = 120.0
"""How long importing the app may take."""

CUT_OFF_WORDS: Final = "closed its connection with the node: a job must close only what it has opened"


class StartedProcess:
    """Starts a process. `on_frames` gets its messages; `on_ended` gets its exit status, once, when it is dead."""

    def __init__(
        self,
        *,
        on_frames: Callable[[Sequence[ProcessFrame]], None],
        on_ended: Callable[[int], None],
        longest: int,
        on_refused: Callable[[Any, str], None] = log_refusal,
        guard: NodeGuard | None = None,
        host: Host = THIS_HOST,
    ) -> None:
        self._cut_off = False
        self._on_frames = on_frames
        self._guard = guard
        self._on_ended = on_ended
        self._loop = asyncio.get_running_loop()
        self._over = False
        self._lifeline_lock = threading.Lock()
        self.killed: bool = False
        """Whether we have killed it."""
        with ExitStack() as on_failure:
            self._spawned = spawned = host.start(on_failure)
            self._stacks = spawned.stacks
            self.pid: int = spawned.pid
            self.runs: Final = spawned.runs
            spawned.watch(self._died)
            self._link: Link[ProcessFrame] = Link(
                spawned.socket,
                ProcessFrame,
                on_frames=self._received,
                on_closed=self._disconnected,
                wrap=NodeFrame,
                on_refused=on_refused,
                longest=longest,
                most_at_once=longest,  # jobs can write to the socket, as much and as fast as they like
                before_send=self._write_tokens,
            )
            on_failure.pop_all()
        if guard is not None:
            guard.watch(self.pid)

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, message: Any) -> None:
        """Send a message, with everything else of this iteration of the event loop."""
        self._link.send(message)

    @property
    def unsent(self) -> bool:
        """Whether a message has not left this process yet."""
        return self._link.unsent

    @property
    def backlog(self) -> int:
        """How many bytes the process has not read yet, beyond what the socket holds."""
        return self._link.backlog

    def flush(self) -> bool:
        """Send every message now; returns whether all of them left this process."""
        self._link.flush()
        return not self._link.unsent

    def catch_up(self) -> None:
        """Receive now what has arrived so far."""
        self._link.catch_up()

    def _write_tokens(self) -> None:
        if self.runs.write():
            self._link.send(LookAgain())  # with the messages that are about to be sent

    def _received(self, frames: Sequence[ProcessFrame]) -> None:
        if not self._over:
            self._on_frames(frames)

    def _disconnected(self) -> None:
        """End a process that lives on without its connection: a job has closed that, or has written to it."""
        if not self._over:
            self._loop.call_later(SPEECHLESS_SECONDS, self._end_severed)

    def _end_severed(self) -> None:
        if not self._over:
            self._cut_off = True
            self.kill()

    @property
    def severed(self) -> str | None:
        """What it did to its connection, in words; None if it left that alone."""
        if self._link.garbage is not None:
            return f"wrote to its connection with the node, which only shiftwork may: {self._link.garbage}"
        return CUT_OFF_WORDS if self._cut_off else None

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def renew(self, until: float) -> None:
        """Let it live until then, by the monotonic clock. Then it ends itself: others may have its jobs.

        Safe from any thread.
        """
        with self._lifeline_lock:
            if not self._over:
                self._spawned.renew(until)

    async def stack(self, patience: float = STACK_SECONDS) -> str:
        """Return what each of its threads is doing, as far as it still reacts."""
        return await self._stacks.ask(lambda: self._signal(STACK_SIGNAL), patience)

    def last_words(self) -> str:
        """Return the stacks that it wrote since it was last asked: before it died of a fatal signal, for instance."""
        return self._stacks.unread()

    # ── death ────────────────────────────────────────────────────────────────────────────────────────────────────

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and everything that it has started."""
        self.killed = True
        if not self._over:
            self._spawned.end_group()
        self._signal(signal.SIGKILL)  # it may not have a group of its own yet

    def _signal(self, number: signal.Signals) -> None:
        if not self._over:
            self._spawned.send_signal(number)

    def _died(self) -> None:
        try:
            self._link.catch_up()  # its last messages
        except Exception:  # the process is dead whatever they were, and that must be reported
            logger.exception("cannot handle the last messages of process %d", self.pid)
        self._spawned.end_group()  # what it has started, before another process can get its id
        if self._guard is not None:
            self._guard.forget(self.pid)
        status = self._spawned.reap()
        with self._lifeline_lock:
            self._over = True
            self._spawned.close()
        self._link.close()
        try:
            self._on_ended(status)
        finally:
            self._stacks.close()
            self.runs.close()


class Termination:
    """Ends a process; also one that does not start in time."""

    def __init__(self, process: StartedProcess, clock: Clock, *, gently: bool) -> None:
        self.under_way: bool = False
        """Whether the process is to end."""
        self.asked: bool = False
        """Whether it was asked to."""
        self.why: str | None = None
        """Why it was killed, if it was."""
        self.stack: str = ""
        """What its threads were doing before it was killed."""
        self._process = process
        self._clock = clock
        self._gently = gently
        """Whether it is terminated before it is killed: its only run may clean up."""
        self._dead = False
        self._killing: asyncio.Task[None] | None = None
        self._patience: Timer | None = clock.call_in(APP_IMPORT_SECONDS, self._never_ready)

    def ready(self) -> None:
        """Note that the process has started."""
        if not self.under_way:
            self._cancel_patience()

    def _never_ready(self) -> None:
        self.kill(f"the process was not ready after {APP_IMPORT_SECONDS:g} s")

    def give_a_while(self) -> None:
        """Kill the process if it does not end in a while. It was asked to."""
        self.under_way = self.asked = True
        self._kill_after(STUBBORN_SECONDS)

    def kill(self, why: str, *, at_once: bool = False) -> None:
        """Kill the process now, after a look at what its threads are doing unless it must be at once."""
        if at_once:
            self.under_way, self.why = True, self.why or why
            self._process.kill()
        elif not self._dead and self.why is None:
            self.under_way, self.why = True, why
            self._killing = asyncio.get_running_loop().create_task(self._kill())

    async def _kill(self) -> None:
        try:
            self.stack = await self._process.stack()
        finally:
            if self._gently and not self._dead:
                self._process.terminate()
                self._kill_after(STUBBORN_SECONDS)
            else:
                self._process.kill()

    def done(self) -> None:
        """Note that the process has ended."""
        self._dead = True
        self._cancel_patience()

    def _kill_after(self, seconds: float) -> None:
        self._cancel_patience()
        self._patience = self._clock.call_in(seconds, self._process.kill)

    def _cancel_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


class StackQuestions:
    """Asks one process. Several people may ask about the same run at a time."""

    def __init__(self, process: StartedProcess) -> None:
        self._process = process
        self._answers: dict[tuple[str, int], asyncio.Future[str]] = {}

    async def ask(self, run: Run) -> str:
        """Return what a run is doing; what each thread of the process is doing if its event loop is blocked."""
        asked = run.job.id, run.job.fence
        if asked not in self._answers:
            self._answers[asked] = asyncio.get_running_loop().create_future()
            self._process.send(ShowStack(*asked))
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await asyncio.shield(self._answers[asked])  # others may wait for it too
        except TimeoutError:
            threads = await self._process.stack(SIGNAL_SECONDS) or "  (no reaction: the process may be stopped or gone)"
            return f"the event loop of its process does not answer; what its threads are doing:\n\n{threads}\n"
        finally:
            self._answers.pop(asked, None)

    def answered(self, answer: StackShown) -> None:
        """Pass an answer of the process on to those who wait for it."""
        waiting = self._answers.get((answer.id, answer.fence))
        if waiting is not None and not waiting.done():
            waiting.set_result(answer.stack)


def exit_in_words(status: int) -> str:
    """Return how a process ended: "exited with status 1", "was killed by SIGKILL"."""
    if status == CUT_OFF:
        return CUT_OFF_WORDS
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
