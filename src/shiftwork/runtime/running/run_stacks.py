"""What runs in this process are doing now, as text: files, lines and names of functions; never a value."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import Any, Final

from shiftwork.runtime.error_text import shortened, storable
from shiftwork.runtime.running import execute
from shiftwork.runtime.running.job_run import LocalRun

LONGEST_STACKS: Final = 32_000
OUR_PREFIX: Final = "shiftwork"
"""How the names of our own tasks and threads begin. They only wait, so they are not shown."""

Frames = dict[int, FrameType]


class RunStacks:
    """Looks at the runs of one event loop and its threads. Safe from any thread: the loop may be blocked."""

    def __init__(self) -> None:
        """Remember the running event loop and its thread."""
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()

    def of(self, run: LocalRun) -> str | None:
        """Return what this run is doing."""
        summary = self._summary(run, sys._current_frames())  # noqa: SLF001 - there is no other way
        return None if summary is None else shortened("".join(summary.format()))

    def around(self, run: LocalRun, others: Iterable[LocalRun]) -> str:
        """Return what this run is doing; then everything else in this process, as far as it fits."""
        text = ""
        for title, summary in self._sections(run, tuple(others)):
            lines = "".join(summary.format()) if summary else "  it has not begun yet, or has just ended\n"
            text += f"{title}:\n{lines}\n"
            if len(text) > LONGEST_STACKS:
                return storable(text[:LONGEST_STACKS]) + "\n…"
        return storable(text.rstrip() + "\n")

    def _sections(
        self, run: LocalRun, others: tuple[LocalRun, ...]
    ) -> Iterator[tuple[str, traceback.StackSummary | None]]:
        """Yield the run itself; tasks and threads of no run, which it may wait for; then the other runs."""
        frames: Frames = sys._current_frames()  # noqa: SLF001
        runs = (run, *(other for other in others if other is not run))
        yield f"job {run.job.id} of {run.job.worker}", self._summary(run, frames)
        tasks = {one.task for one in runs}
        for task in asyncio.all_tasks(self._loop):
            if task not in tasks and not task.get_name().startswith(OUR_PREFIX):
                yield f"task {task.get_name()}", self._summary_of_task(task, frames)
        threads = {one.thread for one in runs if one.task is None} | {threading.get_ident()}
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for thread, frame in frames.items():
            name = names.get(thread, str(thread))
            if thread not in threads and not name.startswith(OUR_PREFIX):
                yield f"thread {name}", traceback.extract_stack(frame)
        for other in runs[1:]:
            yield f"job {other.job.id} of {other.job.worker}", self._summary(other, frames)

    def _summary(self, run: LocalRun, frames: Frames) -> traceback.StackSummary | None:
        if run.task is not None:
            return _behind_us(self._summary_of_task(run.task, frames))
        frame = None if run.thread is None else frames.get(run.thread)
        return None if frame is None else _behind_us(traceback.extract_stack(frame))

    def _summary_of_task(self, task: "asyncio.Task[Any]", frames: Frames) -> traceback.StackSummary | None:
        coroutine = task.get_coro()
        blocked = getattr(coroutine, "cr_running", False) and self._loop_thread != threading.get_ident()
        if blocked and self._loop_thread in frames:  # it does not wait: it is what the loop is doing
            return traceback.extract_stack(frames[self._loop_thread])
        found = traceback.StackSummary.extract((frame, frame.f_lineno) for frame in _awaiting(coroutine))
        return found or None


def _behind_us(stack: traceback.StackSummary | None) -> traceback.StackSummary | None:
    """Return the stack from the user's function on."""
    ours = [at for at, frame in enumerate(stack or ()) if frame.filename == execute.__file__]
    return traceback.StackSummary.from_list(stack[ours[-1] + 1 :] or stack) if stack and ours else stack


def _awaiting(coroutine: Any) -> Iterator[FrameType]:
    """Yield the frames of a coroutine that waits, from the outermost in; a task has only the first of them."""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
