"""Runs on their way from a node to one of its processes: which of the two has each run, and which runs have begun.

The node puts a token for each run into a pipe that both can read. A token is read once: by the process, which runs the
run, or by the node, which takes it back. The kernel decides which of them comes first, whatever state the process is
in: it may be stopped, blocked or dead.

When a run begins, the process notes the time in memory that it shares with the node. So the node knows what has begun,
and since when, without a message for each run, and even if the process has died.
"""

import mmap
import os
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import islice
from struct import Struct
from typing import Final

from shiftwork.runtime.processes.messages import Start
from shiftwork.runtime.processes.unnamed_file import unnamed_file

PLACES: Final = 65_536
"""How many runs may be in a process at a time. Memory that no run has used costs nothing."""
_PAGE_BYTES: Final = 8 * PLACES
_TOKEN: Final = Struct("=Q")
_MANY: Final = 65_536
"""How many bytes are read from the pipe at a time. Most pipes hold no more."""
_WHOLE: Final = 512 // _TOKEN.size
"""How many tokens are written at a time: every system writes so many bytes completely or not at all."""

RunKey = tuple[str, int]
"""The id of a job and the fence of its run: the job may run again while an earlier run of it is still being stopped."""


class NodeEnd:
    """The node's end: gives runs to a process, takes back what it has not taken, and sees what has begun."""

    def __init__(self) -> None:
        with ExitStack() as on_failure:
            self.page = unnamed_file()
            on_failure.callback(os.close, self.page)
            os.truncate(self.page, _PAGE_BYTES)
            self._memory = mmap.mmap(self.page, _PAGE_BYTES)
            self._times = memoryview(self._memory).cast("d")
            self.tokens, self._writer = os.pipe()
            """Where both read tokens. The process inherits it, and the page."""
            on_failure.pop_all()
        os.set_blocking(self.tokens, False)
        os.set_blocking(self._writer, False)
        self._given = 0
        self._unwritten: deque[int] = deque()
        """Tokens for which the pipe has had no room so far."""
        self._runs: dict[RunKey, tuple[int, int]] = {}
        """The number and the place of each run."""
        self._free: list[int] = []
        self._used = 0

    @property
    def used(self) -> bool:
        """Whether a run was ever given."""
        return self._given > 0

    def give(self, run: RunKey) -> tuple[int, int]:
        """Let the process have a run; returns its number and place. Its message may follow later, in the same order.

        Raises `RuntimeError` if the process has too many runs.
        """
        if not self._free and self._used == PLACES:
            message = f"a process cannot have more than {PLACES:,} runs"
            raise RuntimeError(message)
        self._given += 1
        if self._free:
            place = self._free.pop()
        else:
            place, self._used = self._used, self._used + 1
        self._times[place] = 0.0
        self._runs[run] = self._given, place
        self._unwritten.append(self._given)
        self.go_on()
        return self._given, place

    def go_on(self) -> bool:
        """Write the tokens for which the pipe had no room; returns whether any of them were written.

        Their messages may have arrived meanwhile: ask the process to `LookAgain`. A pipe holds 8,192 tokens, but only a
        few hundred if its user has very many pipes.
        """
        written = False
        while self._unwritten:
            tokens = [*islice(self._unwritten, _WHOLE)]
            try:
                os.write(self._writer, b"".join(map(_TOKEN.pack, tokens)))
            except BlockingIOError:
                break
            for _ in tokens:
                self._unwritten.popleft()
            written = True
        return written

    def began(self, run: RunKey) -> float | None:
        """When a run began, by the monotonic clock; None if it has not, or is not here."""
        given = self._runs.get(run)
        return None if given is None else self._times[given[1]] or None

    def take_back(self) -> list[RunKey]:
        """Take the runs that the process has not taken: it never will. Returns them in order."""
        tokens = set(self._read())
        return [run for run, (number, _) in self._runs.items() if number in tokens]

    def take_back_one(self, run: RunKey) -> bool:
        """Take this run back; returns whether the process had not taken it.

        The process may have looked for the others meanwhile: ask it to `LookAgain`.
        """
        tokens, wanted = self._read(), self._runs[run][0]
        self._unwritten.extend(number for number in tokens if number != wanted)
        self.go_on()
        return wanted in tokens

    def _read(self) -> list[int]:
        """Take every token that the process has not taken, in order."""
        tokens: list[int] = []
        with suppress(BlockingIOError):
            while True:
                tokens += (number for (number,) in _TOKEN.iter_unpack(os.read(self.tokens, _MANY)))
        tokens += self._unwritten
        self._unwritten.clear()
        return tokens

    def forget(self, run: RunKey) -> None:
        """Let go of a run that has ended or was taken back: others may have its place."""
        self._free.append(self._runs.pop(run)[1])

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
        self._fd = tokens
        self._memory = mmap.mmap(page, _PAGE_BYTES)
        self._times = memoryview(self._memory).cast("d")
        self._arrived: deque[Start] = deque()
        self._tokens: deque[int] = deque()
        """Those that were read and whose message has not arrived."""

    def arrived(self, start: Start) -> None:
        """Note the message of a run, which may have been taken back since."""
        self._arrived.append(start)

    def take(self) -> Start | None:
        """Take the next run that has arrived and was not taken back; None if there is none."""
        while self._arrived:
            if not self._tokens and not self._read(_TOKEN.size):
                return None
            start, number = self._arrived[0], self._tokens[0]
            if start.number <= number:
                self._arrived.popleft()
            if start.number >= number:
                self._tokens.popleft()  # without a run, if its message could not be sent
            if start.number == number:
                return start
        return None

    def take_all(self) -> Iterator[Start]:
        """Take every run that has arrived and was not taken back."""
        self._read(len(self._arrived) * _TOKEN.size)
        while (start := self.take()) is not None:
            yield start

    def _read(self, most: int) -> bool:
        try:
            words = os.read(self._fd, most)
        except OSError:  # there is none, or a job has closed the pipe, and this process is about to be ended
            return False
        if len(words) == _TOKEN.size:
            self._tokens.append(int.from_bytes(words, sys.byteorder))
        else:
            self._tokens.extend(number for (number,) in _TOKEN.iter_unpack(words))
        return bool(words)

    def begin(self, place: int, at: float) -> None:
        """Note that the run in this place begins. For any thread."""
        self._times[place] = at

    def close(self) -> None:
        self._times.release()
        self._memory.close()
