"""Jobs that may have killed a process run here again, in halves: a half that dies is halved again.

A job that is left alone and kills its process again is guilty. All jobs of a half run at once, so a half without a
culprit costs its jobs nothing but the time to begin again.
"""

import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import Final

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.processes.remote_runner import ProcessRole
from shiftwork.runtime.running.job_run import Run, RunOwner
from shiftwork.runtime.running.runner import Runner

logger: Final = logging.getLogger("shiftwork")

ROLES: Final[tuple[ProcessRole, ...]] = ("shared", "alone")
FEWEST_CELLS: Final = 4
"""How many cells there should be room for at a time, however small the machine is."""
LONG_CELL_SECONDS: Final = 10.0
"""A cell that has been busy for longer than this no longer counts: those that wait need not wait for a night's work."""
MOST_CELLS: Final = 32
"""The number of processes never exceeds this."""
CELL_KEEP_SECONDS: Final = 10.0
"""How long an idle process is kept for the next suspects."""
FIRST_CELL_WAIT_SECONDS: Final = 1.0
LONGEST_CELL_WAIT_SECONDS: Final = 30.0
"""How long suspects are kept when no process can be started for them, before they are handed back."""


class SuspectGroup:
    """Runs that are tried together, and whom to tell if they die together."""

    __slots__ = ("again", "runs")

    def __init__(self, runs: Sequence[Run], again: Callable[[Sequence[Run]], None]) -> None:
        self.runs: list[Run] = list(runs)
        self.again: Callable[[Sequence[Run]], None] = again

    @property
    def role(self) -> ProcessRole:
        """The kind of process that they need."""
        return "shared" if len(self.runs) > 1 else "alone"

    @property
    def longest(self) -> float:
        """How long they may take."""
        return max((inf if (seconds := run.config.timeout_seconds) is None else seconds) for run in self.runs)


class Cell:
    """A process of the quarantine: what runs in it, and since when."""

    __slots__ = ("again", "began", "role", "runs")

    def __init__(self, role: ProcessRole) -> None:
        self.role = role
        self.runs: list[Run] = []
        self.began: float = inf
        self.again: Callable[[Sequence[Run]], None] | None = None


class Quarantine:
    """Takes the suspects of every instance whose runs share a process. It is the isolation of these instances."""

    def __init__(
        self,
        start: Callable[[ProcessRole], Runner],
        clock: Clock,
        *,
        cells: int,
        memory_limit: Callable[[str], int | None],
        on_gone: Callable[[], None],
    ) -> None:
        self._start = start
        """Starts a process. Raises `OSError` if that is impossible."""
        self._cells_at_a_time = cells
        self._memory_limit = memory_limit
        """How many bytes a process of this pool may use."""
        self._on_gone = on_gone
        """Called when a process is gone."""
        self._clock = clock
        self._waiting: list[SuspectGroup] = []
        self._cells: dict[Runner, Cell] = {}
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
        return not self._cells

    @property
    def runners(self) -> tuple[Runner, ...]:
        """Its processes. Safe from any thread."""
        return tuple(self._cells)

    def runner_of(self, run: Run) -> Runner | None:
        """Return where a run takes place; None while it waits. Safe from any thread."""
        return next((runner for runner, cell in tuple(self._cells.items()) if run in tuple(cell.runs)), None)

    def take(self, runs: Sequence[Run], again: Callable[[Sequence[Run]], None]) -> None:
        """Run these, of one pool, as soon as there are places: one half apart from the other, a single one alone."""
        half = len(runs) // 2
        self._waiting += [SuspectGroup(part, again) for part in (runs[:half], runs[half:]) if part]
        self._waiting.sort(key=lambda group: group.longest)
        self._go_on()

    def stop(self, run: Run) -> None:
        """Make a run end as `run.stopped_as` says; one that still waits ends at once."""
        runner = self.runner_of(run)
        if runner is not None:
            runner.stop(run)
            return
        for group in self._waiting:
            group.runs = [waiting for waiting in group.runs if waiting is not run]
        self._waiting = [group for group in self._waiting if group.runs]
        _end_unbegun(run)

    def look(self) -> None:
        """Look after the processes, every second."""
        for runner, cell in list(self._cells.items()):
            runner.look(self._memory_limit(cell.runs[0].job.pool) if cell.runs else None)
        self._go_on()

    def renewed(self, until: float) -> None:
        """Note that the leases of its runs hold until then."""
        self._until = until
        for runner in tuple(self._cells):
            runner.renewed(until)

    def close(self) -> None:
        """Let the processes go."""
        self._closed = True
        for timer in (self._tidying, self._giving_up):
            if timer is not None:
                timer.cancel()
        for runner in tuple(self._cells):
            runner.close()

    # ── places ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _go_on(self) -> None:
        for runner, cell in list(self._cells.items()):
            group = self._next_for(cell) if runner.open and not cell.runs else None
            if group is not None:
                self._failures = 0
                self._begin(group, runner, cell)
        for role in ROLES:
            while self._wants(role):
                self._start_cell(role)
        if not self._waiting and self._cells and self._tidying is None and not self._closed:
            self._tidying = self._clock.call_in(CELL_KEEP_SECONDS, self._tidy)

    def _next_for(self, cell: Cell) -> SuspectGroup | None:
        group = next((group for group in self._waiting if group.role == cell.role), None)
        if group is not None:
            self._waiting.remove(group)
        return group

    def _wants(self, role: ProcessRole) -> bool:
        """Return whether one more process of this kind is wanted, and allowed."""
        if self._closed or self._giving_up is not None:
            return False
        now = self._clock.now()
        waiting = sum(group.role == role for group in self._waiting)
        starting = sum(cell.role == role and not runner.ready for runner, cell in self._cells.items())
        # An idle process of the other kind is no help to those that wait, and must not be in their way.
        busy = [cell for runner, cell in self._cells.items() if cell.runs or not runner.ready]
        counted = sum(not cell.runs or now - cell.began < LONG_CELL_SECONDS for cell in busy)
        return starting < waiting and counted < self._cells_at_a_time and len(self._cells) < MOST_CELLS

    def _start_cell(self, role: ProcessRole) -> None:
        try:
            runner = self._start(role)
        except OSError as error:
            self._failed(str(error))
        else:
            runner.attach(self)
            self._cells[runner] = Cell(role)

    def runner_ready(self, _runner: Runner) -> None:
        self._go_on()

    def runner_gone(self, runner: Runner, suspects: Sequence[Run]) -> None:
        """Try those that died together once more. A run that is alone is never a suspect: it is guilty."""
        cell = self._cells.pop(runner)
        for run in suspects:
            run.owner = self._owners.pop(run)
        if not runner.ready and not self._closed:
            self._failed(runner.error or "it ended before it was ready")
        if suspects and cell.again is not None:
            cell.again(suspects)
        self._go_on()
        self._on_gone()

    def _tidy(self) -> None:
        self._tidying = None
        if not self._waiting:
            for runner, cell in list(self._cells.items()):
                if not cell.runs:
                    runner.close()

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, group: SuspectGroup, runner: Runner, cell: Cell) -> None:
        cell.runs, cell.again, cell.began = group.runs, group.again, self._clock.now()
        if self._until is not None:  # it may be new, and must know when to end itself
            runner.renewed(self._until)
        for run in tuple(group.runs):
            owner = self._owners[run] = run.owner
            run.owner = self
            run.started_at = cell.began
            runner.start(run)
            owner.run_begun(run)

    def run_begun(self, run: Run) -> None:
        """Do nothing: a run that is started here begins at once."""

    def run_ended(self, run: Run, end: End) -> None:
        runner, run.owner = self.runner_of(run), self._owners.pop(run)
        if runner is not None:
            self._cells[runner].runs.remove(run)
        run.owner.run_ended(run, end)
        self._go_on()

    # ── failures ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _failed(self, why: str) -> None:
        """Keep those that wait for a while: handed back they would return at once, and find the same."""
        self._failures += 1
        wait = min(LONGEST_CELL_WAIT_SECONDS, FIRST_CELL_WAIT_SECONDS * 2.0 ** min(self._failures - 1, 10))
        logger.error("cannot start a process for jobs in quarantine: %s; trying again in %.1f s", why, wait)
        if self._giving_up is None:
            self._giving_up = self._clock.call_in(wait, self._hand_back)

    def _hand_back(self) -> None:
        self._giving_up = None
        waiting, self._waiting = self._waiting, []
        for run in [run for group in waiting for run in group.runs]:
            _end_unbegun(run)


def _end_unbegun(run: Run) -> None:
    run.ended = True
    run.owner.run_ended(run, End(run.stopped_as or EndKind.DRAINED))
