"""A process has died: which of its runs may have killed it, and how has each of them ended?

A run that was being stopped has stopped. A run that was alone has crashed. Of several, each is a suspect, and is to be
run again, apart from others. Two deaths blame none of the runs, which are handed back: that of a process that ended
itself because its lease was not renewed; and that of one for several jobs by a SIGKILL from outside. The second time it
does blame a job, which may have sent the signal itself. Nothing here acts but the log.
"""

import logging
import signal
from collections.abc import Collection, Container, Iterable, Sequence
from typing import Final

from msgspec import Struct

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.words import counted
from shiftwork.runtime.processes.started_process import exit_in_words
from shiftwork.runtime.running.job_run import Run

logger: Final = logging.getLogger("shiftwork")

SPEECHLESS_WORDS: Final = "and left no stack, as when a job closes file descriptors that it has not opened"
"""libuv aborts if its file descriptor is closed. An abort leaves a stack unless the file for that is closed, too."""

MOST_WORKERS_NAMED: Final = 3
"""How many of the workers are named that ran in a process that died."""
MOST_REMEMBERED: Final = 10_000
"""How many jobs are remembered, the latest."""


class Death(Struct, frozen=True, kw_only=True):
    """How a process died."""

    status: int
    """Its exit status; negative if a signal killed it."""
    why: str | None
    """Why the runner had it killed; None if it did not."""
    killed: bool
    """Whether we killed it, for whatever reason."""
    alone: bool
    """Whether it ran one job at a time."""
    lapsed: bool
    """Whether it ended itself because its lease was not renewed in time."""
    starved: bool
    """Whether the system was killing processes for want of memory."""
    severed: str | None
    """What it did to its connection, in words, if that is why it was ended."""
    stack: str | None
    """What its threads were doing, as far as that is known."""

    @property
    def from_outside(self) -> bool:
        """Whether a SIGKILL killed it that was neither ours nor, for want of memory, the system's."""
        return self.status == -signal.SIGKILL and not self.killed and not self.starved

    @property
    def words(self) -> str:
        """How it ended: "was killed by SIGKILL"."""
        how = self.severed or exit_in_words(self.status)
        return f"{how} {SPEECHLESS_WORDS}" if self.status == -signal.SIGABRT and self.stack is None else how

    @property
    def before_ready(self) -> str:
        """Why it could not begin, for a process that died before it was ready."""
        how = self.why or f"the process {exit_in_words(self.status)} before it was ready"
        return f"{how}\n{self.stack}" if self.stack else how


class KilledJobs:
    """Remembers which jobs were in a process that was killed from outside: twice makes a job a suspect."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._ids

    def add(self, ids: Iterable[str]) -> None:
        """Remember that these jobs were in a process that was killed from outside."""
        for job_id in ids:
            self._ids.pop(job_id, None)
            self._ids[job_id] = None
        while len(self._ids) > MOST_REMEMBERED:
            del self._ids[next(iter(self._ids))]


def suspects(runs: Collection[Run], death: Death, killed_before: Container[str]) -> list[Run]:
    """Return the runs that may have killed the process. `killed_before`: the jobs to which this happened before."""
    if death.lapsed or (death.alone and death.why is not None):
        return []
    untold = [run for run in runs if run.stopped_as is None]
    if death.from_outside and not death.alone:
        return [run for run in untold if run.job.id in killed_before]
    return untold


def end_of(run: Run, death: Death, suspected: Sequence[Run], *, together: int) -> End | None:
    """Return how a run ended with its process, which it shared with others; None if it is to be tried again."""
    if run.stopped_as is not None:
        return End(run.stopped_as, error=_error(run, death), traceback=death.stack)
    if run not in suspected:
        return End(EndKind.DRAINED)
    if together > 1 or death.why is not None:
        return None
    error = f"its process {death.words}"
    return End(EndKind.CRASHED, error=error, traceback=death.stack, from_outside=death.from_outside)


def _error(run: Run, death: Death) -> str | None:
    if run.stopped_as is EndKind.RAISED:
        return death.why
    if run.stopped_as is EndKind.TIMED_OUT:
        return f"timed out after {run.config.timeout_seconds:g} s and did not stop; its process was killed"
    return None


def log_death(death: Death, pid: int, runs: Collection[Run], *, expected: bool) -> None:
    """Log how a process died, with what it ran; not if it was expected to end."""
    if death.why is not None:
        logger.warning("killed process %d: %s", pid, death.why)
    elif death.lapsed:  # the node logs why it could not renew the leases
        logger.debug("process %d ended itself: its lease was not renewed", pid)
    elif not expected:
        workers = ", ".join(sorted({run.job.worker for run in runs})[:MOST_WORKERS_NAMED])
        ran = f"while it ran {counted(len(runs), 'job')} ({workers})" if workers else "while it was idle"
        logger.warning("process %d %s %s; a new one takes its place", pid, death.words, ran)
