"""A process has died: which of its runs may have killed it, and how has each of them ended?

A run that was being stopped has stopped. A run that was alone has crashed. Of several, each is a suspect, and is to be
run again, alone. A process that ended itself because its lease was not renewed blames none of them: they are handed
back. Nothing here acts: the answers are values.
"""

import random
import signal
from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from shiftwork.core.retry import End, EndKind
from shiftwork.runtime.engine.run import Run
from shiftwork.runtime.processes.process import exit_in_words

MOST_SUSPECTS: Final = 32
"""How many of the runs that died together are tried alone: the youngest, and others by lot.

The rest is handed back. If the culprit is among them it kills again, and is found another time: two hundred long runs,
tried one by one, would take all day.
"""


class Death(Struct, frozen=True, kw_only=True):
    """How a process died."""

    status: int
    """Its exit status; negative if a signal killed it."""
    why: str | None
    """Why we killed it; None if we did not."""
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
        return self.status == -signal.SIGKILL and self.why is None and not self.starved and self.severed is None

    @property
    def words(self) -> str:
        """How it ended: "was killed by SIGKILL"."""
        return self.severed or exit_in_words(self.status)

    @property
    def before_ready(self) -> str:
        """Why it could not begin, for a process that died before it was ready."""
        how = self.why or f"the process {exit_in_words(self.status)} before it was ready"
        return f"{how}\n{self.stack}" if self.stack else how


def suspects(runs: Collection[Run], death: Death, dice: random.Random) -> list[Run]:
    """The runs that may have killed the process, as many of them as are worth trying."""
    if death.lapsed or (death.alone and death.why is not None):
        return []
    untold = [run for run in runs if run.stopped_as is None]
    if len(untold) <= MOST_SUSPECTS:
        return untold
    half = MOST_SUSPECTS // 2
    return [*dice.sample(untold[:-half], half), *untold[-half:]]


def end_of(run: Run, death: Death, suspected: Sequence[Run]) -> End | None:
    """How a run ended with its process; None if it is one of several suspects."""
    if run.stopped_as is not None:
        return End(run.stopped_as, error=_error(run, death), traceback=death.stack)
    if run not in suspected:
        return End(EndKind.DRAINED)
    if len(suspected) > 1 or death.why is not None:
        return None
    error = f"its process {death.words}"
    return End(EndKind.CRASHED, error=error, traceback=death.stack, from_outside=death.from_outside)


def _error(run: Run, death: Death) -> str | None:
    if run.stopped_as is EndKind.RAISED:
        return death.why
    if run.stopped_as is EndKind.TIMED_OUT:
        return f"timed out after {run.config.timeout_seconds:g} s and did not stop; its process was killed"
    return None
