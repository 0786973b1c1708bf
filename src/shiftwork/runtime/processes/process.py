"""A process that this one has started: speak with it, let it live, look into it, end it, know of its death."""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any, Final

from shiftwork.runtime.processes.lifeline import CUT_OFF, LEASE, STACK_SIGNAL
from shiftwork.runtime.processes.link import Link, log_refusal
from shiftwork.runtime.processes.messages import NodeFrame, ProcessFrame
from shiftwork.runtime.processes.process_guard import ProcessGuard
from shiftwork.runtime.processes.spawn import SpawnedProcess

logger: Final = logging.getLogger("shiftwork")

SPEECHLESS_SECONDS: Final = 5.0
"""How long a process may live on after its connection has ended."""
STACK_SECONDS: Final = 0.3


class Process:
    """Starts a process. `receive` gets its messages; `ended` is called once, with its exit status, when it is dead."""

    def __init__(
        self,
        *,
        receive: Callable[[Sequence[ProcessFrame]], None],
        ended: Callable[[int], None],
        longest: int,
        refused: Callable[[Any, str], None] = log_refusal,
        guard: ProcessGuard | None = None,
    ) -> None:
        self._cut_off = False
        self._receive = receive
        self._guard = guard
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._over = False
        self.killed: bool = False
        """Whether we have killed it."""
        with ExitStack() as on_failure:
            spawned = SpawnedProcess(on_failure)
            self._popen, self._lifeline, self._stacks = spawned.popen, spawned.lifeline, spawned.stacks
            self.pid: int = self._popen.pid
            self.runs: Final = spawned.runs
            self._watch()
            self._link: Link[ProcessFrame] = Link(
                spawned.socket,
                ProcessFrame,
                receive=self._received,
                closed=self._disconnected,
                wrap=NodeFrame,
                refused=refused,
                longest=longest,
                most_at_once=longest,  # jobs can write to the socket, as much and as fast as they like
                before=self.runs.write,
            )
            on_failure.pop_all()
        if guard is not None:
            guard.watch(self.pid)

    # ── messages ─────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, message: Any) -> None:
        """Send a message, with everything else of this turn of the event loop."""
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

    def _received(self, frames: Sequence[ProcessFrame]) -> None:
        if not self._over:
            self._receive(frames)

    def _disconnected(self) -> None:
        """Mostly because it ends; but a job may also have closed what was not its own, or written to it."""
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
        """Let it live until then, by the monotonic clock. Then it ends itself: others may have its jobs."""
        if not self._over:
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self._lifeline, LEASE.pack(until))

    async def stack(self, patience: float = STACK_SECONDS) -> str:
        """What each of its threads is doing, as far as it still reacts."""
        return await self._stacks.ask(lambda: self._signal(STACK_SIGNAL), patience)

    def last_words(self) -> str:
        """The stacks that it wrote since it was last asked: before it died of a fatal signal, for instance."""
        return self._stacks.unread()

    # ── death ────────────────────────────────────────────────────────────────────────────────────────────────────

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and everything that it has started."""
        self.killed = True
        with suppress(ProcessLookupError, PermissionError):
            if not self._over:
                os.killpg(self.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)  # it may not have a group of its own yet

    def _signal(self, number: signal.Signals) -> None:
        # Not by Popen, which would reap a dead process before we have ended what it left behind.
        if not self._over and self._popen.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def _watch(self) -> None:
        if hasattr(os, "pidfd_open"):
            watch = os.pidfd_open(self.pid)
            self._loop.add_reader(watch, self._died, watch)
        else:
            threading.Thread(target=self._wait, name="shiftwork watch", daemon=True).start()

    def _wait(self) -> None:
        self._popen.wait()
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._died, None)

    def _died(self, watch: int | None) -> None:
        if watch is not None:
            self._loop.remove_reader(watch)
            os.close(watch)
        try:
            self._link.catch_up()  # its last messages
        except Exception:  # the process is dead whatever they were, and that must be reported
            logger.exception("cannot handle the last messages of process %d", self.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it has started, before another process can get its id
        if self._guard is not None:
            self._guard.forget(self.pid)
        status = self._popen.wait()
        self._over = True
        self._link.close()
        os.close(self._lifeline)
        try:
            self._ended(status)
        finally:
            self._stacks.close()
            self.runs.close()


CUT_OFF_WORDS: Final = "closed its connection with the node: a job must close only what it has opened"


def exit_in_words(status: int) -> str:
    """How a process ended: "exited with status 1", "was killed by SIGKILL"."""
    if status == CUT_OFF:
        return CUT_OFF_WORDS
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"
