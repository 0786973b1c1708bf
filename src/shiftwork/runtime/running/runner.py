"""Where the runs of an instance take place: what every `Runner` owes its users, and what the quarantine does."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from shiftwork.runtime.gauge import Load
from shiftwork.runtime.running.job_run import AnyRun, Run


class RunnerListener(Protocol):
    """Hears of the beginning and the end of a runner, on the event loop."""

    def runner_ready(self, runner: "Runner") -> None:
        """Called when the runner begins to take runs; not by a runner that was ready from the start."""

    def runner_gone(self, runner: "Runner", suspects: Sequence[Run]) -> None:
        """Called once when the runner is dead, after its runs have ended.

        The suspects have not ended: one of them killed the process, and there is no telling which. From now on they
        belong to the listener, which may run them again, apart from others.
        """


class Runner(Protocol):
    """Runs jobs, in this process or in one of its own.

    It owes every run that `start` accepted one `run.owner.run_ended`, on the event loop; except for runs that
    `take_back` returned and for the suspects of `runner_gone`. It never decides what an end means, and never writes it.

    The properties are safe from any thread; everything else belongs to the event loop.
    """

    @property
    def apart(self) -> bool:
        """Whether the runs take place in another process, which can die, be killed and be replaced."""

    @property
    def pid(self) -> int:
        """The process in which the runs take place."""

    @property
    def load(self) -> Load:
        """How hard that process works, as of the last look."""

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def ready(self) -> bool:
        """Whether the runner has ever been able to take runs. In this process: from the start."""

    @property
    def open(self) -> bool:
        """Whether the runner takes runs now."""

    @property
    def dead(self) -> bool:
        """Whether the runner is gone for good. In this process: whether it was closed."""

    @property
    def error(self) -> str | None:
        """Why the runner died before it was ready; None if it did not."""

    @property
    def killed_from_outside(self) -> bool:
        """Whether the runner died of a SIGKILL that was not ours, and not for want of memory."""

    @property
    def lapsed(self) -> bool:
        """Whether the runner must have ended itself, because no renewal of its lease reached it in time.

        Never in this process: there the node stops the runs itself.
        """

    @property
    def silence(self) -> float:
        """How many seconds the runner has owed an answer. 0 in this process, and where one job may take all of it."""

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def used(self) -> bool:
        """Whether the runner was ever given a run."""

    @property
    def served(self) -> int:
        """How many runs have ended in the runner."""

    @property
    def strays(self) -> Mapping[Any, float]:
        """Runs that were given up on and whose function goes on regardless, with when that was."""

    def attach(self, listener: RunnerListener) -> None:
        """Report the runner's own beginning and end to this listener."""

    @property
    def places(self) -> int:
        """How many runs it takes beyond the slots of its instance. They wait there until others have ended."""

    @property
    def waiting(self) -> int:
        """How many runs wait there now."""

    def start(self, run: AnyRun) -> bool:
        """Take a run; returns whether it begins at once. Otherwise `run.owner.run_begun` is called when it does.

        Raises if that is impossible: then the run has not begun, and never will.
        """

    def stop(self, run: AnyRun) -> None:
        """Make a run end as `run.stopped_as` says. One that does not stop is given up on, or killed."""

    def began(self, run: AnyRun) -> float | None:
        """Return when a run that has not ended began, by the monotonic clock. Its deadline counts from then."""

    def take_back(self) -> list[AnyRun]:
        """Take back the runs that were started and have certainly not begun. They never will, and do not end here."""

    async def stack(self, run: AnyRun) -> str:
        """Return what a run is doing now, and what else goes on in its process."""

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def renew(self, until: float) -> None:
        """Let the process of the runs live until then, if they are apart. Safe from any thread.

        `renewed` follows, but not before the event loop has time for it.
        """

    def renewed(self, until: float) -> None:
        """Note that the lease of the runs holds until then, by the monotonic clock, with some time to spare."""

    def look(self, memory_limit: int | None) -> None:
        """Measure the process, ask it for a sign of life, and hold it to this many bytes. Called every second.

        Only where the runs are apart: the node measures its own process itself, and never ends it.
        """

    def drain(self) -> None:
        """Tell the running functions that the end is near."""

    def kill(self, why: str, *, at_once: bool = False) -> None:
        """End the runner now, whatever it runs; `at_once` without asking what it does, and without a chance to tidy up.

        Threads of this process cannot be ended: they are abandoned.
        """

    def close(self) -> None:
        """End the runner, which has no runs left. Harmless if it is dead."""


class Isolation(Protocol):
    """Runs suspects apart from other jobs: in ever smaller groups, and a single one alone in a process."""

    def take(self, runs: Sequence[Run], again: Callable[[Sequence[Run]], None]) -> None:
        """Run these as soon as there are places. Each calls `run.owner.run_begun`, and `run_ended` at its end.

        A group that has killed its process once more is passed to `again`, and has not ended. If no place is free for a
        long time, the runs end without having begun, as handed back.
        """

    def stop(self, run: Run) -> None:
        """Make a run end as `run.stopped_as` says; one that still waits ends at once."""

    def runner_of(self, run: Run) -> Runner | None:
        """Return where the run takes place; None while it waits. Safe from any thread."""
