"""A process that this one has started: how to start it, speak with it, know of its death, look into it, end it.

It is started by exec, in a session of its own: a Ctrl-C in the terminal is for the node, and whatever the process
starts itself ends with it. When the node is gone, however that happened, the process ends by itself: it holds the
reading end of a pipe that only the node can write to.
"""

import asyncio
import logging
import os
import signal
import site
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psutil

from shiftwork.runtime.processes.link import Link
from shiftwork.runtime.processes.messages import Frame, Orders

logger: Final = logging.getLogger("shiftwork")

ENTRY: Final = "shiftwork.serve.spawned"
LEASE: Final = struct.Struct("=d")
"""What the node writes down the lifeline: until when the lease holds, by the machine's monotonic clock."""
SPEECHLESS_SECONDS: Final = 5.0
"""How long a process may live on after it has hung up, or has said something that nobody understands."""
STACK_SIGNAL: Final = signal.SIGUSR2
"""Makes a process write down what each of its threads is doing, whatever they do."""
STACK_SECONDS: Final = 0.3
LONGEST_STACK: Final = 20_000
FREEZE_SECONDS: Final = 0.0005
FREEZE_TRIES: Final = 40


class Process:
    """One of them. `heard` gets what it says; `ended` is called once, with its exit status, when it is dead."""

    def __init__(self, *, heard: Callable[[Sequence[Frame]], None], ended: Callable[[int], None]) -> None:
        self._ended = ended
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._stacks_read = 0
        self._over = False
        with ExitStack() as on_failure, ExitStack() as theirs:
            sock = self._start(on_failure, theirs)
            self.pid = self._popen.pid
            on_failure.callback(self._give_up)
            self._watch()
            self._link: Link[Frame] = Link(sock, Frame, heard=self._frames, gone=self._speechless, wrap=Orders)
            on_failure.pop_all()

    def _start(self, on_failure: ExitStack, theirs: ExitStack) -> socket.socket:
        sock, their_sock = socket.socketpair()
        on_failure.enter_context(sock)
        theirs.enter_context(their_sock)
        alive, self._lifeline = os.pipe()
        on_failure.callback(os.close, self._lifeline)
        theirs.callback(os.close, alive)
        os.set_blocking(self._lifeline, False)
        self._stacks = on_failure.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - it lives as long as the process
        fds = [their_sock.fileno(), alive, self._stacks.fileno()]
        self._popen = subprocess.Popen(
            [sys.executable, *_flags(), "-m", ENTRY, *map(str, fds)],
            pass_fds=fds,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return sock

    def _give_up(self) -> None:
        """It runs, but cannot be watched: no more file descriptors, say."""
        self._popen.kill()
        self._popen.wait()

    # ── words ────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(self, message: Any) -> None:
        """Say something to it."""
        self._link.send(message)

    @property
    def unsent(self) -> bool:
        """Whether some of what was said has not left this process yet."""
        return self._link.unsent

    @property
    def backlog(self) -> int:
        """How many bytes it has not taken yet."""
        return self._link.backlog

    def flush(self) -> bool:
        """Send now what was said; false if some of it could not leave this process yet."""
        self._link.flush()
        return not self._link.unsent

    def _frames(self, frames: Sequence[Frame]) -> None:
        if not self._over:
            self._heard(frames)

    def catch_up(self) -> None:
        """Hear now what it has said so far."""
        self._link.catch_up()

    def _speechless(self) -> None:
        """It has hung up. Mostly because it ends; a job may also have closed what was not its own."""
        if not self._over:
            self._loop.call_later(SPEECHLESS_SECONDS, self.kill)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def renew(self, until: float) -> None:
        """Let it live until then, by the monotonic clock. By then it ends itself: somebody else may have its jobs."""
        if not self._over:
            with suppress(BlockingIOError, BrokenPipeError):
                os.write(self._lifeline, LEASE.pack(until))

    @contextmanager
    def frozen(self) -> Iterator[bool]:
        """Within this it does nothing at all; False if that cannot be had."""
        self._signal(signal.SIGSTOP)
        try:
            yield self._stands_still()
        finally:
            self._signal(signal.SIGCONT)

    def _stands_still(self) -> bool:
        for _ in range(FREEZE_TRIES):
            with suppress(psutil.Error):
                if psutil.Process(self.pid).status() == psutil.STATUS_STOPPED:
                    return True
            time.sleep(FREEZE_SECONDS)
        return False

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it, and all that it has started."""
        with suppress(ProcessLookupError, PermissionError):
            if not self._over:
                os.killpg(self.pid, signal.SIGKILL)
        self._signal(signal.SIGKILL)  # it may not have come as far as to have a group of its own

    async def stack(self, patience: float = STACK_SECONDS) -> str:
        """What each of its threads is doing, as far as it can still be asked."""
        self._stacks_read = self._size()
        self._signal(STACK_SIGNAL)
        size, waited = self._stacks_read, 0.0
        while waited < patience and (size == self._stacks_read or self._size() != size):
            size = self._size()
            await asyncio.sleep(0.02)
            waited += 0.02
        return self.last_words()

    def last_words(self) -> str:
        """What it wrote about its threads since it was last asked: before it died of a fatal signal, say."""
        size = self._size()
        text = os.pread(self._stacks.fileno(), LONGEST_STACK, self._stacks_read) if not self._stacks.closed else b""
        self._stacks_read = size
        return text.decode("utf-8", "backslashreplace").strip()

    def _size(self) -> int:
        return 0 if self._stacks.closed else os.fstat(self._stacks.fileno()).st_size

    def _signal(self, number: signal.Signals) -> None:
        # Not by Popen, which would bury a dead one before we have ended what that one has left behind.
        if not self._over and self._popen.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    # ── death ────────────────────────────────────────────────────────────────────────────────────────────────────

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
            self._link.catch_up()  # its last words
        except Exception:  # whatever it was, the process is dead, and that must be told
            logger.exception("the last words of process %d could not be taken in", self.pid)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what it has started, before its number is anybody else's
        status = self._popen.wait()
        self._over = True
        self._link.close()
        os.close(self._lifeline)
        try:
            self._ended(status)
        finally:
            self._stacks.close()


def in_words(status: int) -> str:
    """How a process ended."""
    if status >= 0:
        return f"ended by itself with exit status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


def _environment() -> dict[str, str]:
    """Ours, and where to find this very shiftwork, should that not be where packages are installed."""
    ours = str(Path(__file__).resolve().parents[2])
    if ours in site.getsitepackages():
        return dict(os.environ)
    path = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": f"{ours}{os.pathsep}{path}" if path else ours}


def _flags() -> list[str]:
    """The interpreter's own options, such as -X dev."""
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return]  # noqa: SLF001
