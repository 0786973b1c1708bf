"""How a process is made to end: it is asked to, terminated or killed, and killed if that takes too long."""

import asyncio
from typing import Final

from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.processes.process import Process

STUBBORN_SECONDS: Final = 5.0
"""How long a process may take to do what it was asked to."""
START_SECONDS: Final = 120.0
"""How long importing the app may take."""


class Termination:
    """Ends a process, or sees that it starts in time."""

    def __init__(self, process: Process, clock: Clock, *, gently: bool) -> None:
        self.under_way: bool = False
        """Whether the process is to end."""
        self.asked: bool = False
        """Whether it was asked to."""
        self.why: str | None = None
        """Why it was killed, if it was."""
        self.stack: str = ""
        """What its threads were doing before it was killed."""
        self._process = process
        self._clock = clock
        self._gently = gently
        """Whether it is terminated before it is killed: its only run may clean up."""
        self._dead = False
        self._killing: asyncio.Task[None] | None = None
        self._patience: Timer | None = clock.call_in(START_SECONDS, self._never_ready)

    def ready(self) -> None:
        """The process has started."""
        if not self.under_way:
            self._cancel_patience()

    def _never_ready(self) -> None:
        self.kill(f"the process was not ready after {START_SECONDS:g} s")

    def give_a_while(self) -> None:
        """The process was asked to end."""
        self.under_way = self.asked = True
        self._kill_after(STUBBORN_SECONDS)

    def kill(self, why: str, *, at_once: bool = False) -> None:
        """Kill the process now, after a look at what its threads are doing unless it must be at once."""
        if at_once:
            self.under_way, self.why = True, self.why or why
            self._process.kill()
        elif not self._dead and self.why is None:
            self.under_way, self.why = True, why
            self._killing = asyncio.get_running_loop().create_task(self._kill())

    async def _kill(self) -> None:
        try:
            self.stack = await self._process.stack()
        finally:
            if self._gently and not self._dead:
                self._process.terminate()
                self._kill_after(STUBBORN_SECONDS)
            else:
                self._process.kill()

    def done(self) -> None:
        """The process has ended."""
        self._dead = True
        self._cancel_patience()

    def _kill_after(self, seconds: float) -> None:
        self._cancel_patience()
        self._patience = self._clock.call_in(seconds, self._process.kill)

    def _cancel_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
