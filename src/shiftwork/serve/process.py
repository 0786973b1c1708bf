"""Ending the process in time, although threads cannot be killed and the interpreter waits for some of them."""

import logging
import os
import signal
import sys
import threading
from typing import Final

PARENT_DIED: Final = 1
"""Linux's PR_SET_PDEATHSIG."""
LEFT_ALONE: Final = 3
"""The exit status of a process whose node has ended."""


def die_with_parent() -> None:
    """End with the node even if something blocks everything in this process."""
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 - a quarter of a megabyte, which a node does without

        parent = os.getppid()
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(LEFT_ALONE)


def open_standard_streams() -> None:
    """Open the standard streams that are closed on the null device.

    Otherwise the next file or connection gets their number: what a library prints would go there, and uvloop aborts
    the process when it closes one of them.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # noqa: FBT003 - a positional-only parameter
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115 - a descriptor


EXIT_SECONDS: Final = 2.0
"""How long threads of the app may delay the end of the process."""
THREADS: Final = "threads of the app are still running; the process ends without waiting for them"


def end_in_time(code: int, seconds: float = EXIT_SECONDS, why: str = THREADS) -> threading.Timer:
    """End the process with this code after a while, unless it ends by itself or the timer is cancelled."""

    def end() -> None:
        logging.getLogger("shiftwork").warning(why)
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    return timer
