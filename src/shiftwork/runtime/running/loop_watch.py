"""Names what blocks the event loop, while it does: which job or hook, in which file, at which line.

A coroutine that computes, or waits without `await`, holds up every other job of its process, and nothing but the
timeout would end it. While jobs run, a thread of its own asks the loop to answer twice a second, and looks at the
stack of the loop's thread if none comes within a second. It never touches the loop otherwise.
"""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from msgspec import Struct

from shiftwork.core.words import in_words
from shiftwork.runtime.outcomes.run_log import write
from shiftwork.runtime.running.job_run import Run

LOOP_LOOK_SECONDS: Final = 0.5
IDLE_LOOKS: Final = 5
"""While no job runs, the loop is asked only once in this many looks: an idle process costs little."""
BLOCKED_SECONDS: Final = 1.0
"""How long the loop may take to come round."""
FROZEN_SECONDS: Final = 0.1
"""How long it gets on top of that: if the whole process was stopped, it comes round at once."""
WINDOW_SECONDS: Final = 60.0
NAMED_IN_FULL: Final = 5
"""How often the same worker is named in a window."""

_OURS: Final = str(Path(__file__).parents[2])
_PATHS: Final = ("stdlib", "platstdlib", "purelib", "platlib")


class _Namings(Struct):
    began: float
    named: int = 0
    left_out: int = 0


class LoopWatch:
    """Watches the event loop on which it is made."""

    def __init__(
        self,
        runs: Callable[[], Iterable[Run]],
        *,
        others: str = "no job, but other code",
        waiting: str = "every other job here waits",
    ) -> None:
        self._runs = runs
        """Returns the runs of this loop; called in the thread of the watch."""
        self._others = others
        """What to call code that is not of a run."""
        self._waiting = waiting
        """What is held up, in words."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._over = threading.Event()
        self._answered = threading.Event()
        self._windows: dict[str, _Namings] = {}

    def start(self) -> None:
        """Begin to watch."""
        threading.Thread(target=self._watch, name="shiftwork loop watch", daemon=True).start()

    def stop(self) -> None:
        """Watch no longer. The thread ends soon."""
        self._over.set()
        self._answered.set()

    def _watch(self) -> None:
        idle = 0
        while not self._over.wait(LOOP_LOOK_SECONDS):
            idle = 0 if tuple(self._runs()) else idle + 1
            if idle % IDLE_LOOKS:
                continue
            self._answered.clear()
            asked_at = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(self._answered.set)
            except RuntimeError:  # the loop is closed
                return
            if not self._answered.wait(BLOCKED_SECONDS) and not self._answered.wait(FROZEN_SECONDS):
                self._blocked(asked_at)

    def _blocked(self, asked_at: float) -> None:
        run, name = self._who()
        named = self._is_worth_a_line(name)
        if named:
            seconds = in_words(time.monotonic() - asked_at)
            text = f"{name}: has blocked the event loop for {seconds} {self._where()}, and {self._waiting}"
            self._write(logging.WARNING, text, run)
        self._answered.wait()
        if named and not self._over.is_set():
            seconds = in_words(time.monotonic() - asked_at)
            self._write(logging.INFO, f"{name}: blocked the event loop for {seconds}", run)

    def _who(self) -> tuple[Run | None, str]:
        """Return the run whose coroutine is running now, and the name to log."""
        for run in tuple(self._runs()):
            if run.task is not None and getattr(run.task.get_coro(), "cr_running", False):
                return run, run.job.worker
        return None, self._others

    def _where(self) -> str:
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - there is no other way
        frames = list(_outwards(frame))
        if not frames:
            return "at an unknown place"
        users = next((one for one in frames if not _is_foreign(one)), frames[0])
        inside = "" if users is frames[0] else f", inside {_place(frames[0])}"
        return f"at {_place(users)}{inside}"

    def _is_worth_a_line(self, name: str) -> bool:
        now = time.monotonic()
        window = self._windows.get(name)
        if window is None or now - window.began >= WINDOW_SECONDS:
            if window is not None and window.left_out:
                more = f"{name}: … and blocked the event loop {window.left_out} more times in the minute before"
                self._write(logging.WARNING, more, None)
            window = self._windows[name] = _Namings(now)
        window.named += 1
        window.left_out += window.named > NAMED_IN_FULL
        return window.named <= NAMED_IN_FULL

    def _write(self, level: int, text: str, run: Run | None) -> None:
        write(level, text, None, job_id=run and run.job.id, worker=run and run.job.worker)


def _outwards(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_foreign(frame: FrameType) -> bool:
    """Return whether a frame is of the standard library, of an installed package, or ours: not of the app."""
    return frame.f_code.co_filename.startswith(_foreign())


@cache
def _foreign() -> tuple[str, ...]:
    """Return where such files are."""
    import sysconfig  # noqa: PLC0415 - it reads everything that Python was built with

    return ("<frozen", *(sysconfig.get_path(name) for name in _PATHS), _OURS)


def _place(frame: FrameType) -> str:
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
