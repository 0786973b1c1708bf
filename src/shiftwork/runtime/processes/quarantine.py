"""Jobs that may have killed a process run here, each alone in its process: the one that kills it again is guilty."""

import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from shiftwork.core.retry import End, EndKind
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.engine.run import Run, RunOwner
from shiftwork.runtime.engine.runner import Runner

logger: Final = logging.getLogger("shiftwork")

AT_A_TIME: Final = 2
LONG_SECONDS: Final = 10.0
"""A run that takes longer than this no longer counts: those that wait need not wait for a night's work."""
MOST: Final = 32
"""The number of processes never exceeds this."""
KEEP_SECONDS: Final = 10.0
"""How long an idle process is kept for the next suspect."""
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 30.0
"""How long suspects are kept when no process can be started for them, before they are handed back."""


class Quarantine:
    """Takes runs one after the other. It is the isolation of every engine whose runs share a process."""

    def __init__(
        self,
        start: Callable[[], Runner],
        clock: Clock,
        *,
        memory_limit: Callable[[str], int | None],
        changed: Callable[[], None],
    ) -> None:
        self._start = start
        """Starts a process that runs one job at a time. Raises `OSError` if that is impossible."""
        self._memory_limit = memory_limit
        """How many bytes a process of this pool may use."""
        self._changed = changed
        """Called when a process is gone."""
        self._clock = clock
        self._waiting: deque[Run] = deque()
        self._runners: dict[Runner, Run | None] = {}
        self._owners: dict[Run, RunOwner] = {}
        """The owners of the runs that have begun: meanwhile we own these runs."""
        self._closed = False
        self._until: float | None = None
        self._tidying: Timer | None = None
        self._failures = 0
        self._giving_up: Timer | None = None

    @property
    def empty(self) -> bool:
        """Whether all its processes are gone."""
        return not self._runners

    @property
    def runners(self) -> tuple[Runner, ...]:
        """Its processes. Safe from any thread."""
        return tuple(self._runners)

    def runner_of(self, run: Run) -> Runner | None:
        """Where a run takes place; None while it waits. Safe from any thread."""
        return next((runner for runner, held in tuple(self._runners.items()) if held is run), None)

    def take(self, run: Run) -> None:
        """Run it as soon as there is a place."""
        self._waiting.append(run)
        self._go_on()

    def stop(self, run: Run) -> None:
        """Make a run end as `run.stopped_as` says; one that still waits ends at once."""
        runner = self.runner_of(run)
        if runner is not None:
            runner.stop(run)
        else:
            self._waiting = deque(waiting for waiting in self._waiting if waiting is not run)
            _end_unbegun(run)

    def look(self) -> None:
        """Look after the processes, every second."""
        for runner, run in list(self._runners.items()):
            runner.look(None if run is None else self._memory_limit(run.job.pool))
        self._go_on()

    def renewed(self, until: float) -> None:
        """The leases of its runs hold until then."""
        self._until = until
        for runner in tuple(self._runners):
            runner.renewed(until)

    def close(self) -> None:
        """Let the processes go."""
        self._closed = True
        for timer in (self._tidying, self._giving_up):
            if timer is not None:
                timer.cancel()
        for runner in tuple(self._runners):
            runner.close()

    # ── places ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _go_on(self) -> None:
        for runner, held in list(self._runners.items()):
            if held is None and runner.open and self._waiting:
                self._failures = 0
                self._begin(self._waiting.popleft(), runner)
        if self._waiting and not self._closed and self._giving_up is None and self._has_room():
            self._start_runner()
        if not self._waiting and self._runners and self._tidying is None and not self._closed:
            self._tidying = self._clock.call_in(KEEP_SECONDS, self._tidy)

    def _has_room(self) -> bool:
        """Whether one more process is wanted, and allowed."""
        now = self._clock.now()
        starting = sum(held is None and not runner.ready for runner, held in self._runners.items())
        counted = sum(held is None or now - held.started_at < LONG_SECONDS for held in self._runners.values())
        return starting < len(self._waiting) and counted < AT_A_TIME and len(self._runners) < MOST

    def _start_runner(self) -> None:
        try:
            runner = self._start()
        except OSError as error:
            self._failed(str(error))
        else:
            runner.attach(self)
            self._runners[runner] = None

    def runner_ready(self, _runner: Runner) -> None:
        self._go_on()

    def runner_gone(self, runner: Runner, _suspects: Sequence[Run]) -> None:
        """A run that is alone is never a suspect: it is guilty."""
        del self._runners[runner]
        if not runner.ready and not self._closed:
            self._failed(runner.error or "it ended before it was ready")
        self._go_on()
        self._changed()

    def _tidy(self) -> None:
        self._tidying = None
        if not self._waiting:
            for runner, held in list(self._runners.items()):
                if held is None:
                    runner.close()

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, run: Run, runner: Runner) -> None:
        owner = self._owners[run] = run.owner
        self._runners[runner] = run
        run.owner = self
        run.started_at = self._clock.now()
        if self._until is not None:  # it may be new, and must know when to end itself
            runner.renewed(self._until)
        runner.start(run)
        owner.run_begun(run)

    def run_begun(self, run: Run) -> None:
        """A run that is started here begins at once."""

    def run_ended(self, run: Run, end: End) -> None:
        runner, run.owner = self.runner_of(run), self._owners.pop(run)
        if runner is not None:
            self._runners[runner] = None
        run.owner.run_ended(run, end)
        self._go_on()

    # ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _failed(self, why: str) -> None:
        """Keep those that wait for a while: handed back they would return at once, and find the same."""
        self._failures += 1
        wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(self._failures - 1, 10))
        logger.error("cannot start a process for jobs in quarantine: %s; trying again in %.1f s", why, wait)
        if self._giving_up is None:
            self._giving_up = self._clock.call_in(wait, self._hand_back)

    def _hand_back(self) -> None:
        self._giving_up = None
        waiting, self._waiting = self._waiting, deque()
        for run in waiting:
            _end_unbegun(run)


def _end_unbegun(run: Run) -> None:
    run.ended = True
    run.owner.run_ended(run, End(run.stopped_as or EndKind.DRAINED))
