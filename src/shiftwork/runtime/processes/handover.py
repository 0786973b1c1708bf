"""What a node and one of its processes share besides the socket: the runs on their way, the lifeline, a signal.

The node puts a token for each run into a pipe that both can read. A token is read once: by the process, which runs the
run, or by the node, which takes it back. The kernel decides which of them comes first, whatever state the process is
in: it may be stopped, blocked or dead.

When a run begins, the process notes the time in memory that it shares with the node. So the node knows what has begun,
and since when, without a message for each run, and even if the process has died.
"""

import mmap
import os
import signal
import struct
from array import array
from collections import deque
from contextlib import ExitStack, suppress
from typing import Final

from shiftwork.runtime.processes.messages import Start

LEASE: Final = struct.Struct("=d")
"""What the node writes to the lifeline: until when the lease holds, by the machine's monotonic clock."""
STACK_SIGNAL: Final = signal.SIGUSR2
"""Makes a process write down what each of its threads is doing, whatever that is."""
CUT_OFF: Final = 117
"""The exit status of a process that has lost its lifeline, because a job closed what was not its own."""
MOST_RUNS_IN_PROCESS: Final = 65_536
"""How many runs may be in a process at a time. Memory that no run has used costs nothing."""
_PAGE_BYTES: Final = 8 * MOST_RUNS_IN_PROCESS
_TOKEN: Final = "Q"  # noqa: S105 - how an array calls it
_TOKEN_BYTES: Final = array(_TOKEN).itemsize
_MANY: Final = 65_536
"""How many bytes are read at a time. Most pipes hold no more."""
_WHOLE: Final = 512 // _TOKEN_BYTES
"""How many tokens are written at a time: every system writes 512 bytes to a pipe as a whole, or not at all."""


class NodeEnd:
    """The node's end: gives runs to a process, takes back what it has not taken, and sees what has begun."""

    tokens: int
    """Where both read tokens. The process inherits it, and the page."""

    def __init__(self) -> None:
        with ExitStack() as on_failure:
            self.page: int = unnamed_file()
            on_failure.callback(os.close, self.page)
            os.truncate(self.page, _PAGE_BYTES)
            self._memory = mmap.mmap(self.page, _PAGE_BYTES)
            self._times = memoryview(self._memory).cast("d")
            self.tokens, self._writer = os.pipe()
            on_failure.pop_all()
        os.set_blocking(self.tokens, False)
        os.set_blocking(self._writer, False)
        self._given = 0
        self._unwritten: list[int] = []
        """The tokens that are not in the pipe yet."""
        self._waits = False
        """Whether the first of them found no room."""
        self._free: list[int] = []
        self._used = 0

    @property
    def used(self) -> bool:
        """Whether a run was ever given."""
        return self._given > 0

    def give(self) -> tuple[int, int]:
        """Let the process have a run; returns its number and place. Its message follows, and before that `write`.

        Raises `RuntimeError` if the process has too many runs.
        """
        if self._free:
            place = self._free.pop()
        elif self._used < MOST_RUNS_IN_PROCESS:
            place, self._used = self._used, self._used + 1
        else:
            message = f"a process cannot have more than {MOST_RUNS_IN_PROCESS:,} runs"
            raise RuntimeError(message)
        self._given = number = self._given + 1
        self._times[place] = 0.0
        self._unwritten.append(number)
        return number, place

    @property
    def full(self) -> bool:
        """Whether tokens are not in the pipe yet: it may have had no room for them."""
        return bool(self._unwritten)

    def write(self) -> bool:
        """Put the tokens of all runs that were given into the pipe, as far as it has room.

        It holds 8,192, but only a few hundred if its user has very many pipes. Returns whether there was room now for
        some that had to wait: ask the process to `LookAgain`, because their messages may have arrived long ago.
        """
        waited, self._waits, before = self._waits, False, len(self._unwritten)
        while self._unwritten:
            some = array(_TOKEN, self._unwritten[:_WHOLE])
            try:
                os.write(self._writer, some)
            except BlockingIOError:
                self._waits = True
                break
            del self._unwritten[: len(some)]
        return waited and len(self._unwritten) < before

    def began(self, place: int) -> float | None:
        """Return when the run in this place began, by the monotonic clock; None if it has not."""
        return self._times[place] or None

    def take_back(self) -> list[int]:
        """Take the runs that the process has not taken: it never will. Returns their numbers, in order."""
        return self._read()

    def take_back_one(self, number: int) -> bool:
        """Take this run back; returns whether the process had not taken it.

        The process may have looked for the others meanwhile: ask it to `LookAgain`.
        """
        tokens = self._read()
        self._unwritten = [one for one in tokens if one != number]
        self.write()
        return number in tokens

    def _read(self) -> list[int]:
        """Take every token that the process has not taken, in order."""
        tokens: list[int] = []
        with suppress(BlockingIOError):
            while True:
                tokens += _numbers(os.read(self.tokens, _MANY))
        tokens += self._unwritten
        self._unwritten.clear()
        self._waits = False
        return tokens

    def free(self, place: int) -> None:
        """Let others have the place of a run that has ended or was taken back."""
        self._free.append(place)

    def close_page(self) -> None:
        """Close the descriptor of the page, once the process has it. The memory stays."""
        os.close(self.page)

    def close(self) -> None:
        self._times.release()
        self._memory.close()
        os.close(self.tokens)
        os.close(self._writer)


class ProcessEnd:
    """The process's end: takes runs, in the order in which they were given, and notes that they begin."""

    def __init__(self, tokens: int, page: int) -> None:
        import ctypes  # noqa: PLC0415 - a quarter of a megabyte, which a node does without

        self._fd = tokens
        self._memory = mmap.mmap(page, _PAGE_BYTES)
        self.times: memoryview[float] = memoryview(self._memory).cast("d")
        """Where it is noted when the run in each place begins."""
        self._arrived: deque[Start] = deque()
        self._tokens: deque[int] = deque()
        """Those that were read and whose message has not arrived."""
        self._call = ctypes.PyDLL(None).read
        self._token = ctypes.c_uint64()
        self._into = ctypes.c_int(tokens), ctypes.byref(self._token), ctypes.c_size_t(_TOKEN_BYTES)

    def arrived(self, start: Start) -> None:
        """Note the message of a run, which may have been taken back since."""
        self._arrived.append(start)

    def take(self) -> Start | None:
        """Take the next run that has arrived and was not taken back; None if there is none."""
        while self._arrived:
            if not self._tokens and not self._read_one():
                return None
            start, number = self._arrived[0], self._tokens[0]
            if start.number <= number:
                self._arrived.popleft()
            if start.number >= number:
                self._tokens.popleft()  # without a run, if its message could not be sent
            if start.number == number:
                return start
        return None

    def take_all(self) -> list[Start]:
        """Take every run that has arrived and was not taken back."""
        self._read(len(self._arrived))
        taken = [*self._arrived]
        if [start.number for start in taken] == [*self._tokens]:  # mostly
            self._arrived.clear()
            self._tokens.clear()
            return taken
        return [*iter(self.take, None)]

    def _read(self, most: int) -> None:
        with suppress(OSError):  # there is none, or a job has closed the pipe, and this process is about to be ended
            self._tokens.extend(_numbers(os.read(self._fd, most * _TOKEN_BYTES)))

    def _read_one(self) -> bool:
        """Read one token. `os.read` would let other threads run, and to wait for them takes longer than to read."""
        if self._call(*self._into) != _TOKEN_BYTES:
            return False
        self._tokens.append(self._token.value)
        return True

    def close(self) -> None:
        self.times.release()
        self._memory.close()


def _numbers(words: bytes) -> list[int]:
    return memoryview(words).cast(_TOKEN).tolist()


def unnamed_file() -> int:
    """Return the descriptor of a new file, which is in memory where the system has such files."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("shiftwork")
    import tempfile  # noqa: PLC0415 - on Linux, every process does without

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
