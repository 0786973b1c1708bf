"""Starts a process, and keeps the node's ends of what connects the two.

It is started by exec, in a session of its own: a Ctrl-C in the terminal is for the node, and whatever the process
starts itself ends with it. When the node is gone, however that happened, the process ends itself: it holds the reading
end of a pipe, the lifeline, that only the node can write to. It also inherits a file (`StackFile`), to which its fault
handler writes what its threads are doing when it gets a signal.
"""

import asyncio
import os
import site
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from shiftwork.runtime.local_processes import OWNER, own_mark, owner_word
from shiftwork.runtime.processes.handover import NodeEnd, unnamed_file

ENTRY: Final = "shiftwork.serve.spawned"

LONGEST_STACK: Final = 20_000

STACK_LOOK_SECONDS: Final = 0.02


class SpawnedProcess:
    """A process and our ends of what connects us. What fails while it starts is closed."""

    lifeline: int

    def __init__(self, on_failure: ExitStack) -> None:
        with ExitStack() as theirs:
            our_socket, their_socket = socket.socketpair()
            self.socket: Final = our_socket
            on_failure.enter_context(self.socket)
            theirs.enter_context(their_socket)
            alive, self.lifeline = os.pipe()
            on_failure.callback(os.close, self.lifeline)
            theirs.callback(os.close, alive)
            os.set_blocking(self.lifeline, False)
            self.stacks: StackFile = StackFile()
            on_failure.callback(self.stacks.close)
            self.runs: NodeEnd = NodeEnd()
            on_failure.callback(self.runs.close)
            theirs.callback(self.runs.close_page)
            inherited = [their_socket.fileno(), alive, self.stacks.fileno(), self.runs.tokens, self.runs.page]
            self.popen: subprocess.Popen[bytes] = subprocess.Popen(
                [sys.executable, *_flags(), "-m", ENTRY, *map(str, inherited)],
                pass_fds=inherited,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            on_failure.callback(self._kill)

    def _kill(self) -> None:
        """End a process that runs but cannot be watched: out of file descriptors, for instance."""
        self.popen.kill()
        self.popen.wait()


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
