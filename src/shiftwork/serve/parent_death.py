"""Ending with the process that started us, where the system supports it."""

import os
import signal
import sys
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
