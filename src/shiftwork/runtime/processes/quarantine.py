"""Jobs under suspicion run here, each alone in its process: whoever brings that one down is guilty."""

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from shiftwork.core.retry import End, EndKind
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.engine.execute import Run
from shiftwork.runtime.processes.remote_runner import RemoteRunner

logger: Final = logging.getLogger("shiftwork")

AT_A_TIME: Final = 2
LONG_SECONDS: Final = 10.0
"""A run that has taken so long no longer counts: those that wait shall not wait for the end of a night's work."""
MOST: Final = 32
"""More processes than this there never are."""
KEEP_SECONDS: Final = 10.0
"""How long a process without a suspect is kept for the next."""
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 30.0
"""How long suspects are kept when no process can be started for them, before they are handed back."""

Hire = Callable[[Callable[[], None], Callable[[RemoteRunner], None]], RemoteRunner]
"""Starts a process that runs one job at a time, given whom to tell that it is ready, and that it is gone."""


class Quarantine:
    """Takes runs one after the other."""

    def __init__(self, hire: Hire, clock: Clock, most_memory: Callable[[str], int | None]) -> None:
        self._hire = hire
        self._most_memory = most_memory
        """Bytes that a process of this pool may use."""
        self._clock = clock
        self._waiting: deque[tuple[Run, Callable[[Run], None]]] = deque()
        self._cells: dict[RemoteRunner, Run | None] = {}
        self._closed = False
        self._timer: Timer | None = None
        self._until: float | None = None
        self._failures = 0
        self._despair: Timer | None = None

    @property
    def empty(self) -> bool:
        """Whether all its processes are gone."""
        return not self._cells

    @property
    def cells(self) -> tuple[RemoteRunner, ...]:
        """Its processes. Safe from any thread."""
        return tuple(self._cells)

    def cell_of(self, run: Run) -> RemoteRunner | None:
        """Where it runs; None if it has not begun."""
        return next((cell for cell, held in tuple(self._cells.items()) if held is run), None)

    def take(self, run: Run, begun: Callable[[Run], None]) -> None:
        """Run it as soon as there is a place; `begun` is called then."""
        self._waiting.append((run, begun))
        self._go_on()

    def stop(self, run: Run) -> None:
        """Make a run end, as `run.stopped_as` says; one that has not begun ends at once."""
        cell = self.cell_of(run)
        if cell is not None:
            cell.stop(run)
            return
        self._waiting = deque(pair for pair in self._waiting if pair[0] is not run)
        run.ended = True
        run.on_end(run, End(run.stopped_as or EndKind.DRAINED))

    def look(self) -> None:
        """Now and then: how much do they use?"""
        for cell, run in list(self._cells.items()):
            used, limit = cell.measure(), None if run is None else self._most_memory(run.job.pool)
            if run is not None and limit is not None and used > limit:
                cell.fail(f"used {used:,} bytes of memory; the limit of pool {run.job.pool} is {limit:,}")
        self._go_on()

    def renewed(self, until: float) -> None:
        """The leases of its runs hold until then."""
        self._until = until
        for cell in self._cells:
            cell.renewed(until)

    def close(self) -> None:
        """Let the processes go."""
        self._closed = True
        for timer in (self._timer, self._despair):
            if timer is not None:
                timer.cancel()
        for cell in self._cells:
            cell.close()

    def _go_on(self) -> None:
        for cell, held in list(self._cells.items()):
            if held is None and cell.open and self._waiting:
                self._failures = 0
                self._begin(cell)
        if self._waiting and not self._closed and self._despair is None and self._has_room():
            self._open_cell()
        if not self._waiting and self._cells and self._timer is None and not self._closed:
            self._timer = self._clock.call_in(KEEP_SECONDS, self._tidy)

    def _has_room(self) -> bool:
        """Whether one more process is wanted, and allowed."""
        now = self._clock.now()
        starting = sum(held is None and not cell.ready for cell, held in self._cells.items())
        counted = sum(held is None or now - held.started_at < LONG_SECONDS for held in self._cells.values())
        return starting < len(self._waiting) and counted < AT_A_TIME and len(self._cells) < MOST

    def _open_cell(self) -> None:
        try:
            cell = self._hire(self._go_on, self._gone)
        except OSError as error:
            self._cannot(f"no process can be started: {error}")
        else:
            self._cells[cell] = None

    def _begin(self, cell: RemoteRunner) -> None:
        run, begun = self._waiting.popleft()
        self._cells[cell] = run
        answer = run.on_end
        run.started_at = self._clock.now()

        def ended(run: Run, end: End) -> None:
            if cell in self._cells:
                self._cells[cell] = None
            answer(run, end)
            self._go_on()

        run.on_end = ended
        if self._until is not None:  # it may be new, and must know when to end itself
            cell.renewed(self._until)
        cell.start(run)
        begun(run)

    def _gone(self, cell: RemoteRunner) -> None:
        del self._cells[cell]
        if not cell.ready and not self._closed:  # it cannot even begin: they cannot be tried here
            self._cannot(cell.error or "it ended before it was ready")
        self._go_on()

    def _cannot(self, why: str) -> None:
        """Keep those that wait for a while: they come back at once when handed back, and would find the same."""
        self._failures += 1
        wait = min(LONGEST_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2.0 ** min(self._failures - 1, 10))
        logger.error("a process for jobs under suspicion cannot be started: %s; trying again in %.1f s", why, wait)
        if self._despair is None:
            self._despair = self._clock.call_in(wait, self._hand_back)

    def _hand_back(self) -> None:
        self._despair = None
        waiting, self._waiting = self._waiting, deque()
        for run, _ in waiting:
            run.ended = True
            run.on_end(run, End(run.stopped_as or EndKind.DRAINED))

    def _tidy(self) -> None:
        self._timer = None
        if not self._waiting:
            for cell, held in self._cells.items():
                if held is None:
                    cell.close()
