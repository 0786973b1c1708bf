"""Entry point of every process that a node starts: `python -m windlass.spawned SOCKET LIFELINE STACKS`.

It imports the app, which the node never does. It ends when the node says so, when the node is gone, and when the node
can no longer vouch for its lease: somebody else may have its jobs by then.
"""

import asyncio
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

from windlass.errors import WindlassError
from windlass.leaving import end_in_time
from windlass.loading import load_app
from windlass.logs import set_up_logging
from windlass.runtime.instance import Instance
from windlass.runtime.messages import Failed, Hello, Ready
from windlass.runtime.process import STACK_SIGNAL
from windlass.runtime.pulse import SAFETY

PARENT_DIED: Final = 1
"""Linux's PR_SET_PDEATHSIG."""
LEFT_ALONE: Final = 3
"""The exit status of a process whose node is gone."""
NICE: Final = 5
"""How far a process that runs one job at a time stands back: it is there for work that keeps a core busy."""


def main() -> None:
    """Be what the node says."""
    sock, lifeline, stacks = (int(word) for word in sys.argv[1:])
    faulthandler.enable(stacks)
    faulthandler.register(STACK_SIGNAL, stacks)
    watch = Lifeline(lifeline)
    watch.start()
    _die_with_parent()
    asyncio.run(_live(socket.socket(fileno=sock), watch))


class Lifeline(threading.Thread):
    """Hears from the node that it lives and that the lease holds, in a thread that nothing else runs on."""

    def __init__(self, lifeline: int) -> None:
        super().__init__(name="windlass lifeline", daemon=True)
        self._lifeline = lifeline
        self.patience: float | None = None
        """How long the silence may last; None while there is no lease."""

    def run(self) -> None:
        heard_at = time.monotonic()
        while True:
            patience = self.patience
            readable, _, _ = select.select([self._lifeline], [], [], 0.5 if patience is None else patience / 10)
            if readable:
                if not os.read(self._lifeline, 4096):
                    os._exit(LEFT_ALONE)
                heard_at = time.monotonic()
            elif patience is None:
                heard_at = time.monotonic()
            elif time.monotonic() - heard_at > patience:
                os._exit(LEFT_ALONE)


def _die_with_parent() -> None:
    """Where the system can: end even if a function holds everything up."""
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(LEFT_ALONE)


async def _live(sock: socket.socket, watch: Lifeline) -> None:
    instance = Instance(sock)
    hello = await instance.hello
    if hello.log_level is not None:
        set_up_logging(hello.log_level, hello.log_format)
    sys.path[:] = list(dict.fromkeys([*hello.path, *sys.path]))
    try:
        _begin(instance, hello, watch)
    except WindlassError as error:
        instance.say(Failed(str(error)))
        instance.flush()
        os._exit(1)
    await instance.over.wait()
    instance.flush()
    end_in_time(0)


def _begin(instance: Instance, hello: Hello, watch: Lifeline) -> None:
    app = load_app(hello.app)
    if hello.role == "herald":
        definition = app.definition()
        instance.listen(app.hooks)
        instance.say(definition)
        return
    if hello.role == "alone" and hasattr(os, "nice"):
        os.nice(NICE)
    watch.patience = hello.lease_seconds * SAFETY
    instance.serve(app.callees(), app.store, alone=hello.role == "alone")
    instance.say(Ready())


if __name__ == "__main__":
    main()
