"""Starts a process, and keeps the node's ends of what connects the two.

It is started by exec, in a session of its own: a Ctrl-C in the terminal is for the node, and whatever the process
starts itself ends with it. When the node is gone, however that happened, the process ends itself: it holds the reading
end of a pipe, the lifeline, that only the node can write to. It also inherits a file (`StackFile`), to which its fault
handler writes what its threads are doing when it gets a signal.
"""

import asyncio
import os
import signal
import site
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final, Protocol

from shiftwork.runtime.local_processes import OWNER, own_mark, owner_word
from shiftwork.runtime.processes.handover import LEASE, NodeEnd, unnamed_file

CHILD_MODULE: Final = "shiftwork.serve.spawned"

LONGEST_STACK: Final = 20_000

STACK_LOOK_SECONDS: Final = 0.02


class StackDump(Protocol):
    """What a process writes when it is asked for its stacks by a signal."""

    async def ask(self, signal: Callable[[], None], patience: float) -> str:
        """Have the process write down its threads; returns what it wrote, as far as it came within the patience."""

    def unread(self) -> str:
        """Return what the process wrote since the last look: before it died of a fatal signal, for instance."""

    def close(self) -> None:
        """Let go of it."""


class Spawned(Protocol):
    """A process that was started, as the operating system knows it, and our ends of what connects us."""

    @property
    def pid(self) -> int:
        """Which process it is, and which process group."""

    @property
    def socket(self) -> socket.socket:
        """Our end of the connection."""

    @property
    def runs(self) -> NodeEnd:
        """Our end of what else we share."""

    @property
    def stacks(self) -> StackDump:
        """Where it writes its stacks."""

    def watch(self, on_death: Callable[[], None]) -> None:
        """Call this once, on the event loop, when the process has died."""

    def renew(self, until: float) -> None:
        """Let it live until then, by the monotonic clock. Then it ends itself."""

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it lives."""

    def end_group(self) -> None:
        """Kill it, and everything that it has started."""

    def reap(self) -> int:
        """Return the exit status of the process, which is dead."""

    def close(self) -> None:
        """Renew it no more."""


class SpawnedProcess:
    """A process and our ends of what connects us. What fails while it starts is closed."""

    def __init__(self, on_failure: ExitStack) -> None:
        with ExitStack() as theirs:
            our_socket, their_socket = socket.socketpair()
            self.socket: Final = our_socket
            on_failure.enter_context(self.socket)
            theirs.enter_context(their_socket)
            alive, self._lifeline = os.pipe()
            on_failure.callback(os.close, self._lifeline)
            theirs.callback(os.close, alive)
            os.set_blocking(self._lifeline, False)
            self.stacks: StackFile = StackFile()
            on_failure.callback(self.stacks.close)
            self.runs: NodeEnd = NodeEnd()
            on_failure.callback(self.runs.close)
            theirs.callback(self.runs.close_page)
            inherited = [their_socket.fileno(), alive, self.stacks.fileno(), self.runs.tokens, self.runs.page]
            self._popen: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, *_flags(), "-m", CHILD_MODULE, *map(str, inherited)],
                pass_fds=inherited,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            on_failure.callback(self._kill)
        self.pid: int = self._popen.pid

    def _kill(self) -> None:
        """End a process that runs but cannot be watched: out of file descriptors, for instance."""
        self._popen.kill()
        self._popen.wait()

    def watch(self, on_death: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        if hasattr(os, "pidfd_open"):
            watch = os.pidfd_open(self.pid)

            def died() -> None:
                loop.remove_reader(watch)
                os.close(watch)
                on_death()

            loop.add_reader(watch, died)
        else:
            threading.Thread(target=self._wait, args=(loop, on_death), name="shiftwork watch", daemon=True).start()

    def _wait(self, loop: asyncio.AbstractEventLoop, on_death: Callable[[], None]) -> None:
        self._popen.wait()
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(on_death)

    def renew(self, until: float) -> None:
        with suppress(BlockingIOError, BrokenPipeError):
            os.write(self._lifeline, LEASE.pack(until))

    def send_signal(self, number: signal.Signals) -> None:
        # Not by Popen, which would reap a dead process before we have ended what it left behind.
        if self._popen.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def end_group(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def reap(self) -> int:
        return self._popen.wait()

    def close(self) -> None:
        os.close(self._lifeline)


def child_environment() -> dict[str, str]:
    """Return our environment, plus who starts it, and where this shiftwork is, unless packages are installed there."""
    mark = own_mark()
    owner = {} if mark is None else {OWNER: owner_word(mark)}
    ours = str(Path(__file__).resolve().parents[3])
    if ours in site.getsitepackages():
        return os.environ | owner
    path = os.environ.get("PYTHONPATH")
    return os.environ | owner | {"PYTHONPATH": f"{ours}{os.pathsep}{path}" if path else ours}


def _flags() -> list[str]:
    """Return the interpreter's own options, such as -X dev."""
    return subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined,no-any-return]  # noqa: SLF001


class StackFile:
    """A file without a name to which a process appends its stacks whenever it gets a signal."""

    def __init__(self) -> None:
        self._file = os.fdopen(unnamed_file(), "rb")
        self._read = 0

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()

    async def ask(self, signal: Callable[[], None], patience: float) -> str:
        """Have the process write down its threads; returns what it wrote, as far as it came within the patience."""
        self._read = self._size()
        signal()
        size, waited = self._read, 0.0
        while waited < patience and (size == self._read or self._size() != size):
            size = self._size()
            await asyncio.sleep(STACK_LOOK_SECONDS)
            waited += STACK_LOOK_SECONDS
        return self.unread()

    def unread(self) -> str:
        """Return what the process wrote since the last look: before it died of a fatal signal, for instance."""
        size = self._size()
        text = b"" if self._file.closed else os.pread(self._file.fileno(), LONGEST_STACK, self._read)
        self._read = size
        return text.decode("utf-8", "backslashreplace").strip()

    def _size(self) -> int:
        return 0 if self._file.closed else os.fstat(self._file.fileno()).st_size
