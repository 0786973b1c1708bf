"""Jobs under suspicion run here, each alone in its process: whoever brings that one down is guilty."""

from collections import deque
from collections.abc import Callable
from typing import Final

from windlass.core.retry import End, EndKind
from windlass.runtime.clock import Clock, Timer
from windlass.runtime.execute import Run
from windlass.runtime.remote import RemoteRunner

AT_A_TIME: Final = 2
KEEP_SECONDS: Final = 10.0
"""How long a process without a suspect is kept for the next."""

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

    def take(self, run: Run, begun: Callable[[Run], None]) -> None:
        """Run it as soon as there is a place; `begun` is called then."""
        self._waiting.append((run, begun))
        self._go_on()

    def stop(self, run: Run) -> None:
        """Make a run end, as `run.stopped_as` says; one that has not begun ends at once."""
        for cell, held in self._cells.items():
            if held is run:
                cell.stop(run)
                return
        self._waiting = deque(pair for pair in self._waiting if pair[0] is not run)
        run.ended = True
        run.on_end(run, End(run.stopped_as or EndKind.DRAINED))

    def look(self) -> None:
        """Now and then: how much memory do they use?"""
        for cell, run in list(self._cells.items()):
            limit = None if run is None else self._most_memory(run.job.pool)
            if run is not None and limit is not None and cell.measure() > limit:
                cell.fail(f"used {cell.memory():,} bytes of memory; the limit of pool {run.job.pool} is {limit:,}")

    def renewed(self) -> None:
        """The leases of its runs hold."""
        for cell in self._cells:
            cell.renewed()

    def close(self) -> None:
        """Let the processes go."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for cell in self._cells:
            cell.close()

    def _go_on(self) -> None:
        for cell, held in self._cells.items():
            if held is None and cell.ready and not cell.dead and self._waiting:
                self._begin(cell)
        if self._waiting and len(self._cells) < AT_A_TIME and not self._closed:
            free = sum(held is None for held in self._cells.values())
            if free < len(self._waiting):
                self._cells[self._hire(self._go_on, self._gone)] = None
        if not self._waiting and self._cells and self._timer is None:
            self._timer = self._clock.call_in(KEEP_SECONDS, self._tidy)

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
        cell.start(run)
        begun(run)

    def _gone(self, cell: RemoteRunner) -> None:
        del self._cells[cell]
        if not cell.ready:  # it cannot even begin: they cannot be tried here
            for run, _ in self._waiting:
                run.stopped_as = run.stopped_as or EndKind.DRAINED
            while self._waiting:
                self.stop(self._waiting[0][0])
        self._go_on()

    def _tidy(self) -> None:
        self._timer = None
        if not self._waiting:
            for cell, held in self._cells.items():
                if held is None:
                    cell.close()
