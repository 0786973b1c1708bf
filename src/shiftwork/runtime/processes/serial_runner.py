"""Runs that take place in this process one at a time, in the order in which they arrive."""

import threading
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from typing import Any, Final

from shiftwork.core.jobs.retry import End
from shiftwork.runtime.context.current_run import ContextServices
from shiftwork.runtime.processes.handover import ProcessEnd
from shiftwork.runtime.processes.messages import Start
from shiftwork.runtime.registry import Callee
from shiftwork.runtime.running.job_run import LocalRun
from shiftwork.runtime.running.job_threads import JobThreads
from shiftwork.runtime.running.local_runner import LocalRunner


class SerialRunner(LocalRunner):
    """Runs one job after the other. A plain function begins in the thread in which the one before it has ended.

    It never gives up on a run: the node kills the process instead.
    """

    def __init__(
        self,
        callees: Mapping[str, Callee],
        services: ContextServices,
        given: ProcessEnd,
        *,
        prepare: Callable[[Start], LocalRun | None],
        on_not_started: Callable[[LocalRun, RuntimeError], None],
        threads: JobThreads | None = None,
    ) -> None:
        super().__init__(callees, services, gives_up=False, threads=threads)
        self._given = given
        self._prepare = prepare
        """Makes a run of what was taken; None if it cannot run here."""
        self._on_not_started = on_not_started
        """Called with a run that could not be started."""
        self._context = copy_context()
        """As it was before any run, which may set variables in its own."""
        self._busy = False
        self.taking: Final = threading.Lock()
        """Held while a run is taken, on the event loop or in a thread: what was taken is prepared, or is not here."""

    def begin_next(self) -> None:
        """Begin the next run that has arrived, unless one is under way."""
        with self.taking:
            idle, self._busy = not self._busy, True
        if idle:
            self._go_on()

    def _go_on(self) -> None:
        run = self._next()
        if run is not None:
            self._context.copy().run(self._start, run)

    def _next(self) -> LocalRun | None:
        while True:
            with self.taking:
                start = self._given.take()
                if start is None:
                    self._busy = False
                    return None
                run = self._prepare(start)
            if run is not None:
                return run

    def _start(self, run: LocalRun) -> None:
        try:
            self.start(run)
        except RuntimeError as error:  # out of threads: another instance may run it
            self._on_not_started(run, error)
            self._go_on()

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _ended(self, run: LocalRun, end: End) -> None:
        super()._ended(run, end)
        self._go_on()

    def _in_thread(self, run: LocalRun) -> None:
        following = self._run_in_thread(run)
        while following is not None:
            context = self._context.copy() if following.span is None else following.span.variables
            following = context.run(self._run_in_thread, following)

    def _run_in_thread(self, run: LocalRun) -> LocalRun | None:
        """LocalRun a plain function; returns the next one that can run in this thread."""
        end: End | Coroutine[Any, Any, Any] = self._end_in_thread(run)
        if not isinstance(end, End):
            self._loop.call_soon_threadsafe(self._thread_done, run, end)
            return None
        super()._ended(run, end)
        following = self._next()
        if following is None:
            return None
        if self._callees[following.job.worker].is_async:
            self._loop.call_soon_threadsafe(self._start, following, context=self._context.copy())
            return None
        self._running.add(following)
        return self._prepared(following)
