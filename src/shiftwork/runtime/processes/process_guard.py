"""The node's side of its guard: which process groups it has, and until when its leases hold."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

logger: Final = logging.getLogger("shiftwork")

GUARD_PROGRAM: Final = Path(__file__).with_name("guard.py")
NOT_FOR_IT: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a node; its guard outlives it by a moment."""


class NodeGuard(Protocol):
    """Ends the process groups of a node when the node dies, or when its leases have ended."""

    def watch(self, group: int) -> None:
        """End this process group with the node, or when its leases end."""

    def forget(self, group: int) -> None:
        """Forget a group that has ended: its number may soon be another's."""

    def renew(self, until: float) -> None:
        """Note that the leases hold until then, by the monotonic clock."""

    def close(self) -> None:
        """End. The node has ended its processes itself."""


class ProcessGuard:
    """Starts the guard with the first group, and again if it dies. Without one, processes still end themselves.

    Safe from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._until: float | None = None
        self._popen: subprocess.Popen[bytes] | None = None
        self._closed = False

    def watch(self, group: int) -> None:
        with self._lock:
            self._groups.add(group)
            self._order(f"+{group}\n")

    def forget(self, group: int) -> None:
        with self._lock:
            self._groups.discard(group)
            self._order(f"-{group}\n")

    def renew(self, until: float) -> None:
        with self._lock:
            self._until = until
            if self._groups:
                self._order(f"={until!r}\n")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            popen, self._popen = self._popen, None
        if popen is not None:
            _end(popen)

    def _order(self, order: str) -> None:
        if self._popen is not None:
            with suppress(OSError):
                _write(self._popen, order)
                return
            logger.warning("the guard of this node has died; starting another one")
            self._popen.kill()  # or it is frozen and its pipe is full: it would take our end for that of the node
            _end(self._popen)
            self._popen = None
        if self._groups and not self._closed:
            self._start()

    def _start(self) -> None:
        try:
            with _blocked():
                self._popen = subprocess.Popen(
                    [sys.executable, "-I", "-S", str(GUARD_PROGRAM), str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    start_new_session=True,
                )
            os.set_blocking(self._popen.stdin.fileno(), False)  # type: ignore[union-attr]  # it is a pipe
            orders = [f"+{group}\n" for group in sorted(self._groups)]
            _write(self._popen, "".join(orders) + ("" if self._until is None else f"={self._until!r}\n"))
        except OSError as error:
            logger.warning("cannot start the guard of this node: %s; its processes end by themselves", error)


@contextmanager
def _blocked() -> Iterator[None]:
    """Keep the signals that end a node from a process that is started inside; this thread gets them afterwards."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, NOT_FOR_IT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _write(popen: "subprocess.Popen[bytes]", orders: str) -> None:
    assert popen.stdin is not None  # noqa: S101 - it is a pipe
    os.write(popen.stdin.fileno(), orders.encode())


def _end(popen: "subprocess.Popen[bytes]") -> None:
    if popen.stdin is not None:
        popen.stdin.close()
    popen.wait()
