"""Runs that take place in a process of their own, or in one that they share: the node's side of it.

The process tells how a run ended. When it dies, or does not answer, this side decides: a run that was to stop has
stopped; a run that was alone has crashed; several are suspects, and each is run again, alone. A process that could not
be told in time that its lease holds has ended itself: its runs are handed back.
"""

import asyncio
import logging
import random
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from shiftwork.core.model import Claimed, Progress
from shiftwork.core.retry import End, EndKind
from shiftwork.runtime import machine
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.engine.execute import Run
from shiftwork.runtime.gauge import Gauge, Lateness, Load
from shiftwork.runtime.processes.messages import (
    Bye,
    Drain,
    Ended,
    Failed,
    Frame,
    FromProcess,
    Happened,
    Hello,
    Ping,
    Ready,
    Revoke,
    Said,
    Show,
    Shown,
    Start,
    Stop,
)
from shiftwork.runtime.processes.process import Process, in_words

logger: Final = logging.getLogger("shiftwork")

STUBBORN_SECONDS: Final = 5.0
"""How long a process may take to do as it is told."""
CANCEL_SECONDS: Final = 1.0
"""How long a run that is alone may take to end by itself once its time is over, before its process is terminated."""
SILENT_SECONDS: Final = 1.0
"""A process that shares its runs and has not answered for so long is given no more of them."""
SHOW_SECONDS: Final = 1.0
"""How long a process may take to say what a run is doing, before the system is asked to make it tell."""
TELL_SECONDS: Final = 2.0
"""How long that may take."""
START_SECONDS: Final = 120.0
"""How long importing the app may take."""
MOST_SUSPECTS: Final = 32
"""How many of the runs that died together are tried alone: the youngest, and others by lot.

The rest is handed back. If the culprit is among them it kills again, and is found another time: two hundred long runs,
tried one by one, would take all day.
"""


class RemoteRunner:
    """A process that runs jobs."""

    apart = True

    def __init__(
        self,
        hello: Hello,
        clock: Clock,
        *,
        report: Callable[[Claimed, Progress], None],
        ready: Callable[[], None],
        gone: Callable[["RemoteRunner"], None],
        suspect: Callable[[Run], None],
    ) -> None:
        self.alone = hello.role == "alone"
        self.strays: set[Run] = set()
        self.ready = False
        self.error: str | None = None
        """Why it could not begin."""
        self.killed_from_outside = False
        """Whether it died of SIGKILL, and not by our hand: the system wanted its memory, or a person its end."""
        self.served = 0
        """How many runs have ended in it."""
        self._clock = clock
        self._report = report
        self._tell_ready = ready
        self._tell_gone = gone
        self._suspect = suspect
        self._runs: dict[str, Run] = {}
        self._numbers: dict[str, int] = {}
        self._started = 0
        self._seen = 0
        self._answer = Lateness(clock.monotonic)
        self._until: float | None = None
        """When it ends itself unless it hears from us."""
        self._closing = False
        self._why_killed: str | None = None
        self._going_on: set[Run] = set()
        """Runs that are to be handed back and cannot be stopped: they end with the process."""
        self._stack = ""
        self._ending: set[asyncio.Task[None]] = set()
        self._shown: dict[tuple[str, int], asyncio.Future[str]] = {}
        """Who waits for what is said of a run."""
        self._starved = machine.starved()
        self._process = Process(heard=self._heard, ended=self._ended)
        self.pid = self._process.pid
        self._gauge = Gauge(self.pid, clock.monotonic)
        self.dead = False
        self._patience: Timer | None = clock.call_in(START_SECONDS, self._never_ready)
        self._process.send(hello)

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, run: Run) -> None:
        """Hand it over."""
        if self.dead:
            message = f"the process {self.pid} has just ended"
            raise RuntimeError(message)
        self._started += 1
        self._runs[run.job.id] = run
        self._numbers[run.job.id] = self._started
        self._process.send(Start(run.job, self._started))

    def stop(self, run: Run) -> None:
        """Tell the process; where that does not help, end the process."""
        assert run.stopped_as is not None  # noqa: S101 - who stops a run says why
        self._process.send(Stop(run.job.id, run.job.fence, run.stopped_as))
        patience = STUBBORN_SECONDS
        if self.alone and run.stopped_as is not EndKind.CANCELLED:
            patience = CANCEL_SECONDS
        elif not self.alone:
            patience += CANCEL_SECONDS  # it has a patience of its own
        run.patience = self._clock.call_in(patience, partial(self._overdue, run))

    def drain(self) -> None:
        """Let the functions know."""
        self._process.send(Drain())

    def tell(self, event: Any) -> None:
        """Something happened: it shall call the hooks."""
        self._process.send(Happened(event))

    @property
    def load(self) -> Load:
        """How hard it works. It is late by as much as it takes to answer a ping."""
        return Load(cpu=self._gauge.cpu, memory=self._gauge.memory, lag=self._answer.seconds)

    def measure(self) -> int:
        """Look what it uses; answers with the bytes of memory."""
        self._starved = machine.starved()
        return 0 if self.dead else self._gauge.look()

    async def stack(self, run: Run) -> str:
        """Ask the process. One whose event loop is held up is made to tell what its threads are doing."""
        wanted = run.job.id, run.job.fence
        if wanted not in self._shown:
            self._shown[wanted] = asyncio.get_running_loop().create_future()
            self._process.send(Show(*wanted))
        try:
            async with asyncio.timeout(SHOW_SECONDS):
                return await asyncio.shield(self._shown[wanted])  # others may wait for it too
        except TimeoutError:
            threads = await self._process.stack(TELL_SECONDS) or "  (it tells nothing: it may be stopped, or gone)"
            return f"the event loop of its process does not answer; what its threads are doing:\n\n{threads}\n"
        finally:
            self._shown.pop(wanted, None)

    def close(self) -> None:
        """Let it go. It is given a while."""
        if not self.dead and not self._closing:
            self._closing = True
            self._process.send(Bye())
            self._calm()
            self._patience = self._clock.call_in(STUBBORN_SECONDS, self._process.kill)

    @property
    def open(self) -> bool:
        """Whether it takes runs now."""
        if not self.ready or self.dead or self._closing or self._why_killed is not None:
            return False
        return self.alone or self.silence <= SILENT_SECONDS

    @property
    def silence(self) -> float:
        """For how many seconds it has owed an answer."""
        return self._answer.overdue

    def renewed(self, until: float) -> None:
        """The lease of its runs holds until then. Too late for one that had to end itself before: it shall."""
        if self.lapsed:
            self.kill("it was not told in time that its lease holds")
            return
        self._until = until
        self._process.renew(until)

    @property
    def used(self) -> bool:
        """Whether it was ever given a run."""
        return self._started > 0

    @property
    def lapsed(self) -> bool:
        """Whether it must have ended itself by now, because it was not told in time that its lease holds."""
        return self._until is not None and self._clock.monotonic() >= self._until

    def ping(self) -> None:
        """Ask whether it is there."""
        self._answer.due_in(0.0)
        self._process.send(Ping(self._clock.now()))

    def take_back(self) -> list[Run]:
        """The runs that it cannot have begun, because it has not even heard of them; it never will."""
        with self._process.frozen() as frozen:  # else it might begin one just now
            self._process.catch_up()
            unheard = [run for run in self._runs.values() if self._numbers[run.job.id] > self._seen]
            if not frozen or not unheard or self._process.unsent:
                return []
            self._process.send(Revoke([run.job.id for run in unheard]))
            if not self._process.flush():  # it may read the first word without the second: leave them with it
                return []
        for run in unheard:
            self._forget(run)
        return unheard

    def kill(self, why: str) -> None:
        """End it now. Its runs are told why."""
        if not self.dead and self._why_killed is None:
            self._why_killed = why
            self._later(self._kill())

    def fail(self, error: str) -> None:
        """End it now, and let its runs fail with this error."""
        if self._why_killed is None:
            for run in self._runs.values():
                run.stopped_as = run.stopped_as or EndKind.RAISED
            self.kill(error)

    # ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────

    def _heard(self, frames: Sequence[Frame]) -> None:
        self._answer.came()
        for frame in frames:
            self._seen = max(self._seen, frame.seen)
            for message in frame.messages:
                try:
                    self._take_in(message)
                except Exception:  # the next message is about another run, which would never end
                    logger.exception("what process %d said could not be taken in: %s", self.pid, type(message).__name__)

    def _take_in(self, message: FromProcess) -> None:
        match message:
            case Ended():
                self._run_ended(message)
            case Said():
                run = self._runs.get(message.id)
                if run is not None and run.job.fence == message.fence:
                    run.log = message.progress.log
                    self._report(run.job, message.progress)
            case Shown():
                waiting = self._shown.get((message.id, message.fence))
                if waiting is not None and not waiting.done():
                    waiting.set_result(message.stack)
            case Ready():
                self._is_ready()
            case Failed():
                self.error = message.error
            case _:
                pass

    def _is_ready(self) -> None:
        self.ready = True
        if not self._closing and self._why_killed is None:
            self._calm()
        self._tell_ready()

    def _calm(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _never_ready(self) -> None:
        self.kill(f"it was not ready after {START_SECONDS:g} s")

    def _run_ended(self, message: Ended) -> None:
        run = self._runs.get(message.id)
        if run is None or run.job.fence != message.fence:
            return
        run.outcome = message.outcome
        if message.stray:
            self.strays.add(run)
        if message.stray and message.end.kind is EndKind.DRAINED:
            # Somebody else would run it while it goes on here: not before this process is gone.
            self._going_on.add(run)
        else:
            self.served += 1
            self._over(run, message.end)
        if self._going_on and len(self._going_on) == len(self._runs):
            self.kill("runs that are handed back go on in it")

    # ── ends ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _forget(self, run: Run) -> None:
        del self._runs[run.job.id]
        del self._numbers[run.job.id]
        self._going_on.discard(run)
        if run.patience is not None:
            run.patience.cancel()
            run.patience = None

    def _over(self, run: Run, end: End) -> None:
        self._forget(run)
        run.ended = True
        run.on_end(run, end)

    def _overdue(self, run: Run) -> None:
        if not run.ended:
            self.kill(f"job {run.job.id} of {run.job.worker} was told to stop ({run.stopped_as}) and did not")

    async def _kill(self) -> None:
        try:
            self._stack = await self._process.stack()
        finally:
            if self.alone and not self.dead:
                self._process.terminate()
                self._calm()
                self._patience = self._clock.call_in(STUBBORN_SECONDS, self._process.kill)
            else:
                self._process.kill()

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _ended(self, status: int) -> None:
        self.dead = True
        # For want of memory, too, it is the system that kills; but then the job is to blame.
        hungry = machine.starved() > self._starved
        self.killed_from_outside = status == -signal.SIGKILL and self._why_killed is None and not hungry
        self._calm()
        stack = self._stack or self._process.last_words() or None
        if not self.ready and self.error is None:
            self.error = "\n".join(
                filter(None, [self._why_killed or f"it {in_words(status)} before it was ready", stack])
            )
        suspects = self._suspects()
        for run in list(self._runs.values()):
            try:
                self._died_with(run, f"its process {in_words(status)}", stack, suspects)
            except Exception:  # the others have to end too
                logger.exception("the end of job %s of %s went wrong", run.job.id, run.job.worker)
        self._tell_gone(self)

    def _suspects(self) -> list[Run]:
        """Those of its runs that may have killed it."""
        if self.lapsed or (self.alone and self._why_killed is not None):
            return []
        runs = [run for run in self._runs.values() if run.stopped_as is None]
        if len(runs) <= MOST_SUSPECTS:
            return runs
        half = MOST_SUSPECTS // 2
        return [*random.sample(runs[:-half], half), *runs[-half:]]

    def _died_with(self, run: Run, how: str, stack: str | None, suspects: list[Run]) -> None:
        if run.stopped_as is not None:
            self._over(run, End(run.stopped_as, error=self._in_words(run), traceback=stack))
        elif run not in suspects:
            self._over(run, End(EndKind.DRAINED))
        elif len(suspects) == 1 and self._why_killed is None:
            outside = self.killed_from_outside
            self._over(run, End(EndKind.CRASHED, error=how, traceback=stack, from_outside=outside))
        else:
            self._forget(run)
            self._suspect(run)

    def _in_words(self, run: Run) -> str | None:
        if run.stopped_as is EndKind.RAISED:
            return self._why_killed
        if run.stopped_as is EndKind.TIMED_OUT:
            return f"timed out after {run.config.timeout_seconds:g} s and did not stop; its process was killed"
        return None
