"""The program of a node's guard, `python -I -S guard.py NODE`: it outlives the node by a moment, and ends what is left.

A process of a node ends itself when the node has ended or frozen, but only if its job lets the interpreter do so, and
without what the job has started. The guard shares no interpreter with any job. It reads orders from its standard input,
a line each: `+GROUP` and `-GROUP` for the process groups of the node, `=UNTIL` for the time until which the node's
leases hold, by the monotonic clock. It kills the groups at that time, and when the node has ended; then it ends itself.

It imports nothing of shiftwork, and not `signal` either, which takes a fifth of its memory: it must start in no time,
and need next to none. The node starts it with those signals blocked that are meant for the node.
"""

import os
import select
import sys
import time

SIGKILL = 9  # on every system that has it


class Guard:
    """Watches the node, and kills the process groups that it leaves behind."""

    def __init__(self, node: int) -> None:
        self._node = node
        self._groups: set[int] = set()
        self._until: float | None = None
        self._unread = b""
        self._over = False

    def stand(self) -> None:
        """Watch until the node has ended."""
        watch = select.poll()
        watch.register(0, select.POLLIN)
        if hasattr(os, "pidfd_open") and os.getppid() == self._node:
            watch.register(os.pidfd_open(self._node), select.POLLIN)  # another process may hold our input open
        while not self._over and os.getppid() == self._node:
            wait = None if self._until is None else max(0.0, self._until - time.monotonic()) * 1000
            if any(fd == 0 for fd, _ in watch.poll(wait)):
                self._read()
            elif self._until is not None and time.monotonic() >= self._until:  # and no renewal waits to be read
                self._until = None
                self._kill()
        os.set_blocking(0, False)
        self._read_the_last()
        self._kill()

    def _read_the_last(self) -> None:
        while not self._over:
            try:
                self._read()
            except BlockingIOError:
                return

    def _read(self) -> None:
        words = os.read(0, 65_536)
        self._over = not words
        *lines, self._unread = (self._unread + words).split(b"\n")
        for line in lines:
            order, value = line[:1], line[1:]
            if order == b"+":
                self._groups.add(int(value))
            elif order == b"-":
                self._groups.discard(int(value))
            else:
                self._until = float(value)

    def _kill(self) -> None:
        for group in self._groups:
            try:
                os.killpg(group, SIGKILL)
            except OSError:
                continue  # it has ended already


if __name__ == "__main__":
    Guard(int(sys.argv[1])).stand()
