"""What a node and its processes agree on besides messages: the lifeline, the signal for stacks, an exit status."""

import os
import signal
import struct
from typing import Final


def unnamed_file() -> int:
    """Return the descriptor of a new file, which is in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("shiftwork")
    import tempfile  # noqa: PLC0415 - on Linux, every process does without

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


LEASE: Final = struct.Struct("=d")
"""What the node writes to the lifeline: until when the lease holds, by the machine's monotonic clock."""
STACK_SIGNAL: Final = signal.SIGUSR2
"""Makes a process write down what each of its threads is doing, whatever that is."""
CUT_OFF: Final = 117
"""The exit status of a process that has lost its lifeline, because a job closed what was not its own."""
