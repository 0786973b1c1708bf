"""Where a job runs alone that may have killed a process: what an engine needs to know of it."""

from typing import Protocol

from shiftwork.runtime.engine.run import Run
from shiftwork.runtime.engine.runner import Runner


class Isolation(Protocol):
    """Runs jobs one by one, each alone in a process."""

    def take(self, run: Run) -> None:
        """Run it as soon as there is a place; `run.owner.run_begun` is called then, `run.owner.run_ended` at its end.

        Where no place can be had for a long time, the run ends without having begun, as handed back.
        """

    def stop(self, run: Run) -> None:
        """Make a run end as `run.stopped_as` says; one that still waits ends at once."""

    def runner_of(self, run: Run) -> Runner | None:
        """Where the run takes place; None while it waits. Safe from any thread."""
