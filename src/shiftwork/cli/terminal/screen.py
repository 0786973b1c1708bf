"""The terminal as a full screen: frames are painted over each other, keys are read, and the terminal is always
restored.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Final, Self

_ENTER: Final = "\x1b[?1049h\x1b[?25l\x1b[2J"
"""Switches to the alternate screen, hides the cursor, and clears."""
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_BEGIN: Final = "\x1b[?2026h\x1b[H"
"""Holds back output until the frame is complete, where the terminal supports it, and moves to the top."""
_END: Final = "\x1b[J\x1b[?2026l"
_REST_OF_LINE: Final = "\x1b[K"


class Screen:
    """A terminal, taken over. `key` gets what is typed; `resized` is called when its size has changed.

    SIGTERM, SIGHUP, SIGINT and the end of the terminal set `over`; Ctrl-Z restores the terminal until it continues.
    """

    def __init__(self, *, key: Callable[[str], None], resized: Callable[[], None]) -> None:
        self.over: asyncio.Event = asyncio.Event()
        self._key = key
        self._resized = resized
        self._loop = asyncio.get_running_loop()
        self._keys = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._before: list[Any] | None = None
        self._signals: list[int] = []

    def __enter__(self) -> Self:
        try:
            self._listen()
            self._take()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._give_back()
        if self._keys is not None:
            self._loop.remove_reader(self._keys)
        for number in self._signals:
            self._loop.remove_signal_handler(number)

    def paint(self, lines: Sequence[str]) -> None:
        """Show a frame in one write over the last one, so that nothing flickers."""
        height = shutil.get_terminal_size().lines
        self._write(_BEGIN + "\r\n".join(line + _REST_OF_LINE for line in lines[:height]) + _END)

    def _listen(self) -> None:
        for number, act in (
            (signal.SIGINT, self.over.set),
            (signal.SIGTERM, self.over.set),
            (signal.SIGHUP, self.over.set),
            (signal.SIGWINCH, self._resized),
            (signal.SIGTSTP, self._pause),
        ):
            self._loop.add_signal_handler(number, act)
            self._signals.append(number)
        if self._keys is not None:
            self._loop.add_reader(self._keys, self._hear)

    def _hear(self) -> None:
        assert self._keys is not None  # noqa: S101 - we read from it
        typed = b""
        with contextlib.suppress(OSError):
            typed = os.read(self._keys, 1024)
        if not typed:  # the terminal was closed
            self._loop.remove_reader(self._keys)
            self.over.set()
        for letter in typed.decode(errors="replace"):
            self._key(letter)

    def _take(self) -> None:
        if self._keys is not None:
            self._before = termios.tcgetattr(self._keys)
            tty.setcbreak(self._keys)
        self._write(_ENTER)

    def _give_back(self) -> None:
        with contextlib.suppress(OSError):  # it may be closed
            self._write(_LEAVE)
        if self._keys is not None and self._before is not None:
            with contextlib.suppress(OSError, termios.error), _undisturbed():
                termios.tcsetattr(self._keys, termios.TCSADRAIN, self._before)

    def _pause(self) -> None:
        """Suspend on Ctrl-Z."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()
        self._resized()

    def _write(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Ignore SIGTTOU, which stops a background program that changes the terminal."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGTTOU, before)
