"""Entry point of every process that a node starts: `python -m shiftwork.serve.spawned SOCKET LIFELINE STACKS`.

It imports the app, which the node never does. It ends when the node tells it to, when the node has ended, and when the
node can no longer guarantee its lease: another process may have its jobs by then.
"""

import asyncio
import contextlib
import ctypes
import faulthandler
import os
import select
import signal
import socket
import sys
import threading
import time
from typing import Final

from shiftwork.errors import ShiftworkError
from shiftwork.runtime.engine.error_text import describe
from shiftwork.runtime.processes.instance import Instance
from shiftwork.runtime.processes.messages import Ready, Setup, SetupFailed
from shiftwork.runtime.processes.process import CUT_OFF, LEASE, STACK_SIGNAL
from shiftwork.serve.exit import end_in_time
from shiftwork.serve.loading import load_app
from shiftwork.serve.logging import set_up_logging

PARENT_DIED: Final = 1
"""Linux's PR_SET_PDEATHSIG."""
LEFT_ALONE: Final = 3
"""The exit status of a process whose node has ended."""
NICE: Final = 5
"""The niceness of a process that runs one job at a time: such jobs keep a core busy."""


def main() -> None:
    """Play the role that the node assigns."""
    sock, lifeline, stacks = (int(word) for word in sys.argv[1:])
    for fd in (sock, lifeline, stacks):
        os.set_inheritable(fd, False)  # noqa: FBT003 - they are ours, not for processes that a job starts
    faulthandler.enable(stacks)
    faulthandler.register(STACK_SIGNAL, stacks)
    watch = Lifeline(lifeline)
    watch.start()
    _die_with_parent()
    asyncio.run(_live(socket.socket(fileno=sock)))


class Lifeline(threading.Thread):
    """Receives the node's signs of life and the end of the lease, in a thread of its own."""

    def __init__(self, lifeline: int) -> None:
        super().__init__(name="shiftwork lifeline", daemon=True)
        self._lifeline = lifeline
        self._identity = _identity(lifeline)

    def run(self) -> None:
        try:
            self._listen()
        finally:  # also if a job has closed the file descriptor: then the node cannot stop us
            if _identity(self._lifeline) != self._identity:
                os._exit(CUT_OFF)  # not by a signal: the job is to blame. The node ends what we have started
            with contextlib.suppress(OSError):
                os.killpg(0, signal.SIGKILL)  # including processes that jobs have started
            os._exit(LEFT_ALONE)

    def _listen(self) -> None:
        """Return once the node has ended, or the lease may have."""
        watch = select.poll()
        watch.register(self._lifeline, select.POLLIN)
        until: float | None = None  # without a lease there are no jobs
        while until is None or time.monotonic() < until:
            wait = None if until is None else max(0.0, until - time.monotonic()) * 1000
            for _, event in watch.poll(wait):
                words = os.read(self._lifeline, 512 * LEASE.size) if event & select.POLLIN else b""
                if not words:
                    return
                (until,) = LEASE.unpack(words[-LEASE.size :])


def _identity(fd: int) -> tuple[int, int] | None:
    """Return what a file descriptor stands for: a job may close it, and open something else under its number."""
    try:
        seen = os.fstat(fd)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _die_with_parent() -> None:
    """Where the system supports it, end with the node even if a function blocks everything."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(LEFT_ALONE)


async def _live(sock: socket.socket) -> None:
    task = asyncio.current_task()
    if task is not None:
        task.set_name("shiftwork instance")  # marks it as ours in a list of tasks
    instance = Instance(sock)
    setup = await instance.setup
    if setup.log_level is not None:
        set_up_logging(setup.log_level, setup.log_format)
    sys.path[:] = list(dict.fromkeys([*setup.path, *sys.path]))
    try:
        _begin(instance, setup)
    except BaseException as error:  # noqa: BLE001 - the user's module may raise anything
        instance.send(SetupFailed(str(error) if isinstance(error, ShiftworkError) else describe(error)))
        instance.link.flush()
        os._exit(1)
    await instance.over.wait()
    await instance.finish()
    end_in_time(0)


def _begin(instance: Instance, setup: Setup) -> None:
    app = load_app(setup.app)
    if setup.role == "hooks":
        definition = app.definition()
        instance.listen(app.hooks)
        instance.send(definition)
        return
    if setup.role == "alone" and hasattr(os, "nice"):
        os.nice(NICE)
    instance.serve(app.callees(), app.control.store.open, alone=setup.role == "alone")
    instance.send(Ready())


if __name__ == "__main__":
    main()
