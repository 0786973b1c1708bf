"""Where jobs run that may have killed a process, apart from the others: what an engine needs to know of it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from shiftwork.runtime.running.run import Run
from shiftwork.runtime.running.runner import Runner


class Isolation(Protocol):
    """Runs suspects in ever smaller groups, and a single one alone in a process."""

    def take(self, runs: Sequence[Run], again: Callable[[Sequence[Run]], None]) -> None:
        """Run these as soon as there are places. Each calls `run.owner.run_begun`, and `run_ended` at its end.

        Those of which one has killed their process once more are passed to `again`, and have not ended. Where no place
        can be had for a long time, the runs end without having begun, as handed back.
        """

    def stop(self, run: Run) -> None:
        """Make a run end as `run.stopped_as` says; one that still waits ends at once."""

    def runner_of(self, run: Run) -> Runner | None:
        """Where the run takes place; None while it waits. Safe from any thread."""
