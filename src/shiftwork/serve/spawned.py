"""Entry point of every process that a node starts: `python -m shiftwork.serve.spawned` and five descriptors.

It imports the app, which the node never does. It ends when the node tells it to, when the node has ended, and when the
node can no longer guarantee its lease: another process may have its jobs by then.
"""

import asyncio
import contextlib
import errno
import faulthandler
import os
import select
import signal
import socket
import sys
import threading
import time
from typing import Final

from shiftwork.control.calling import run
from shiftwork.errors import LifecycleError, ShiftworkError
from shiftwork.history.opening import recorder_of
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.error_text import describe
from shiftwork.runtime.processes.child_process import ChildProcess
from shiftwork.runtime.processes.handover import CUT_OFF, LEASE, STACK_SIGNAL, ProcessEnd
from shiftwork.runtime.processes.messages import Ready, Setup, SetupFailed
from shiftwork.serve.loading import in_words, load_app
from shiftwork.serve.logging import set_up_logging
from shiftwork.serve.process import LEFT_ALONE, die_with_parent, end_in_time
from shiftwork.store.urls import import_drivers_lazily

NICE: Final = 5
"""The niceness of a process that runs one job at a time: such jobs keep a core busy."""


def main() -> None:
    """Play the role that the node assigns."""
    sock, lifeline, stacks, tokens, page = (int(word) for word in sys.argv[1:])
    runs = ProcessEnd(tokens, page)
    os.close(page)
    for fd in (sock, lifeline, stacks, tokens):
        os.set_inheritable(fd, False)  # noqa: FBT003 - they are ours, not for processes that a job starts
    faulthandler.enable(stacks)
    faulthandler.register(STACK_SIGNAL, stacks)
    watch = Lifeline(lifeline)
    watch.start()
    die_with_parent()
    try:
        run(_live(socket.socket(fileno=sock), runs))
    except OSError as error:
        if error.errno != errno.EBADF:
            raise
        os._exit(CUT_OFF)  # a job has closed what the event loop needs


class Lifeline(threading.Thread):
    """Receives the node's signs of life and the end of the lease, in a thread of its own."""

    def __init__(self, lifeline: int) -> None:
        super().__init__(name="shiftwork lifeline", daemon=True)
        self._lifeline = lifeline
        self._identity = _identity(lifeline)

    def run(self) -> None:
        try:
            self._listen()
        except OSError:  # a job has closed the file descriptor: the node could not stop us, but sees how we end
            os._exit(CUT_OFF)
        finally:
            if _identity(self._lifeline) != self._identity:  # likewise, and has opened something else since
                os._exit(CUT_OFF)
            with contextlib.suppress(OSError):
                os.killpg(0, signal.SIGKILL)  # including processes that jobs have started
            os._exit(LEFT_ALONE)

    def _listen(self) -> None:
        """Return once the node has ended, or the lease may have. Raises `OSError` if the file descriptor is closed."""
        watch = select.poll()
        watch.register(self._lifeline, select.POLLIN)
        until: float | None = None  # without a lease there are no jobs
        while True:
            wait = None if until is None else max(0.0, until - time.monotonic()) * 1000
            events = watch.poll(wait)
            # First the pipe, then the clock: renewals wait there while a job holds the interpreter.
            if not events and until is not None and time.monotonic() >= until:
                return
            for _, event in events:
                if event & select.POLLNVAL:
                    raise OSError
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


async def _live(sock: socket.socket, runs: ProcessEnd) -> None:
    task = asyncio.current_task()
    if task is not None:
        task.set_name("shiftwork instance")  # marks it as ours in a list of tasks
    instance = ChildProcess(sock, runs)
    setup = await instance.setup
    if setup.log_level is not None:
        set_up_logging(setup.log_level, setup.log_format)
    sys.path[:] = list(dict.fromkeys([*setup.path, *sys.path]))
    try:
        middleware = await _begin(instance, setup)
    except BaseException as error:  # noqa: BLE001 - the user's module may raise anything
        instance.send(SetupFailed(str(error) if isinstance(error, ShiftworkError) else describe(error)))
        instance.link.flush()
        os._exit(1)
    await instance.over.wait()
    if middleware is not None:
        await middleware.leave()
    await instance.finish()
    end_in_time(0)


async def _begin(instance: ChildProcess, setup: Setup) -> Middleware | None:
    """Import the app and do what this process is for; return what is around the jobs if it runs any."""
    if setup.role != "hooks":
        import_drivers_lazily()
    app = load_app(setup.app)
    served = app.served
    if setup.role == "hooks":
        definition = served.definition()
        instance.listen(served.hooks)
        instance.send(definition)
        return None
    if setup.role == "alone" and hasattr(os, "nice"):
        os.nice(NICE)
    callees = served.registry().callees
    await _enter(served.middleware)
    store = app.control.store
    recorder = recorder_of(store.store)
    instance.serve(callees, store.open, served.middleware, alone=setup.role == "alone", recorder=recorder)
    instance.send(Ready())
    return served.middleware


async def _enter(middleware: Middleware) -> None:
    """Enter the app's lifespan. Where that fails, the node learns why, and tries with another process later."""
    try:
        await middleware.enter()
    except BaseException as error:
        raise LifecycleError(in_words("the app's lifespan failed", error, without_us=True)) from error


if __name__ == "__main__":
    main()
