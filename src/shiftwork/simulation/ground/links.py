"""What connects a simulated node with a process of it: both ends of a socket, and the other things that they share.

A byte that was sent has arrived at once, as within one machine; when the other side notices is drawn. The tokens and
the page are the real ones (`runtime.processes.handover`), and so are the messages. Between any two things that the node
or the process do to what they share, the other may go on: each may lose the processor there.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from shiftwork.runtime.processes.handover import NodeEnd, ProcessEnd

Interrupt = Callable[[], None]
"""Perhaps takes the process that runs off the processor for a moment."""


class SimSocket:
    """One end of a simulated connection."""

    def __init__(self, wake: Callable[[Callable[[], object]], None]) -> None:
        self.other: SimSocket
        self._wake = wake
        """Calls back when this side notices that something has arrived."""
        self._arrived = bytearray()
        self._over = False
        self._reader: Callable[[], object] | None = None
        self._waking = False

    def setblocking(self, flag: bool) -> None:  # noqa: FBT001 - the socket's signature
        """Do nothing: it never blocks."""

    def send(self, data: Any) -> int:
        """Send bytes; all of them are taken."""
        if self._over:
            raise BrokenPipeError
        self.other.arrive(bytes(data))
        return len(data)

    def recv(self, most: int) -> bytes:
        """Receive what has arrived; nothing once the other side is gone."""
        if not self._arrived and not self._over:
            raise BlockingIOError
        data = bytes(self._arrived[:most])
        del self._arrived[:most]
        if self._arrived or self._over:
            self._notice()
        return data

    def close(self) -> None:
        """Close this end."""
        self._reader = None
        self.other.end()

    # ── how it is noticed ────────────────────────────────────────────────────────────────────────────────────────

    def arrive(self, data: bytes) -> None:
        """Take bytes from the other side."""
        self._arrived += data
        self._notice()

    def end(self) -> None:
        """Note that the other side is gone."""
        self._over = True
        self._notice()

    def watch(self, reader: Callable[[], object] | None) -> None:
        """Call this whenever there is something to receive."""
        self._reader = reader
        if self._arrived or self._over:
            self._notice()

    def _notice(self) -> None:
        if self._reader is not None and not self._waking:
            self._waking = True
            self._wake(self._read)

    def _read(self) -> None:
        self._waking = False
        if self._reader is not None and (self._arrived or self._over):
            self._reader()


class Handover(NamedTuple):
    """Makes both ends of the pipe of tokens and the page. A test plants faults here."""

    node_end: "Callable[[Interrupt], NodeEnd]"
    process_end: "Callable[[int, int, Interrupt], ProcessEnd]"


class InterruptedNodeEnd(NodeEnd):
    """The node's end, which may lose the processor before and after each thing that it does to the pipe."""

    def __init__(self, interrupt: Interrupt) -> None:
        super().__init__()
        self._interrupt = interrupt
        self._closed = False

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            super().close()

    def write(self) -> bool:
        self._interrupt()
        late = super().write()
        self._interrupt()
        return late

    def take_back(self) -> list[int]:
        self._interrupt()
        taken = super().take_back()
        self._interrupt()
        return taken

    def take_back_one(self, number: int) -> bool:
        self._interrupt()
        taken = super().take_back_one(number)
        self._interrupt()
        return taken


class InterruptedProcessEnd(ProcessEnd):
    """The process's end, which may lose the processor likewise."""

    def __init__(self, tokens: int, page: int, interrupt: Interrupt) -> None:
        super().__init__(tokens, page)
        self._interrupt = interrupt
        self._page: Final = self.times
        self.times = cast("memoryview[float]", InterruptedTimes(self._page, interrupt))

    def _read(self, most: int) -> None:
        self._interrupt()
        super()._read(most)
        self._interrupt()

    def _read_one(self) -> bool:
        self._interrupt()
        there = super()._read_one()
        self._interrupt()
        return there

    def close(self) -> None:
        self.times = self._page
        super().close()


class InterruptedTimes:
    """The page of beginnings: a process may lose the processor before it notes one.

    Not after it: nothing would show that a function was about to be called, and a history would be called illegal.
    """

    def __init__(self, page: "memoryview[float]", interrupt: Interrupt) -> None:
        self._page = page
        self._interrupt = interrupt

    def __setitem__(self, place: int, at: float) -> None:
        self._interrupt()
        self._page[place] = at


HANDOVER: Final = Handover(InterruptedNodeEnd, InterruptedProcessEnd)
