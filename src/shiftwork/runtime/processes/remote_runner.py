"""Runs that take place in a process of their own, or in one that they share: the node's side of it.

The process reports how a run ended. When it dies, or does not stop a run in time and is killed, `post_mortem` decides
how its runs ended.
"""

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Literal

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.jobs import Claimed, Progress
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.gauge import Load
from shiftwork.runtime.processes.host import THIS_HOST, Host
from shiftwork.runtime.processes.link import log_refusal, longest_frame
from shiftwork.runtime.processes.messages import (
    Drain,
    Exit,
    FromNode,
    FromProcess,
    LookAgain,
    Ping,
    ProcessFrame,
    Progressed,
    Ready,
    RunEnded,
    Setup,
    SetupFailed,
    StackShown,
    Start,
    Stop,
)
from shiftwork.runtime.processes.post_mortem import Death, KilledJobs, end_of, log_death, suspects
from shiftwork.runtime.processes.process_guard import NodeGuard
from shiftwork.runtime.processes.process_watch import SILENT_SECONDS, ProcessWatch
from shiftwork.runtime.processes.started_process import STUBBORN_SECONDS, StackQuestions, StartedProcess, Termination
from shiftwork.runtime.running.job_run import Run
from shiftwork.runtime.running.runner import RunnerListener

logger: Final = logging.getLogger("shiftwork")

ProcessRole = Literal["shared", "alone"]
"""Whether a process runs many jobs at a time, or one."""
CANCEL_SECONDS: Final = 1.0
"""How long a run that is alone may take to end by itself once its time is over, before its process is terminated."""
SERIAL_PLACES: Final = 16
"""How many runs may wait in a process that runs one at a time, so that it need not wait for the next one."""
LONGEST_WAIT_SECONDS: Final = 0.1
"""How long runs wait for a run that takes longer than expected, before they are handed back; twice as long at most."""


class RemoteRunner:
    """Runs jobs in a process that it starts."""

    apart = True

    def __init__(
        self,
        setup: Setup,
        clock: Clock,
        *,
        report: Callable[[Claimed, Progress], None],
        kills: KilledJobs,
        guard: NodeGuard | None = None,
        host: Host = THIS_HOST,
    ) -> None:
        self.strays: dict[Run, float] = {}
        self.ready: bool = False
        self.dead: bool = False
        self.error: str | None = None
        self.killed_from_outside: bool = False
        self.served: int = 0
        self._alone = setup.role == "alone"
        self._clock = clock
        self._report = report
        self._kills = kills
        self._listener: RunnerListener | None = None
        self._runs: dict[int, Run] = {}
        """By their fences. A job may run again while an earlier run of it stops."""
        self._look_timer: Timer | None = None
        """Runs while runs wait for the one that has begun."""
        self._going_on: set[Run] = set()
        """Runs that are to be handed back but cannot be stopped: they end with the process."""
        self._until: float | None = None
        """When the process ends itself unless its lease is renewed."""
        self._host = host
        self._starved = host.starved()
        self._process = StartedProcess(
            on_frames=self._received,
            on_ended=self._ended,
            on_refused=self._refused,
            longest=longest_frame(setup.max_payload_bytes),
            guard=guard,
            host=host,
        )
        self.pid: int = self._process.pid
        self._questions = StackQuestions(self._process)
        self._watch = ProcessWatch(self.pid, clock, alone=self._alone, usage=host.usage)
        self._answer = self._watch.answer
        self._termination = Termination(self._process, clock, gently=self._alone)
        self._process.send(setup)

    # ── state ────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def open(self) -> bool:
        is_alive = self.ready and not self.dead and not self._termination.under_way
        return is_alive and self.silence <= SILENT_SECONDS

    @property
    def silence(self) -> float:
        """A function that runs alone may take all of its process."""
        overdue = self._answer.overdue
        return 0.0 if overdue and self._alone and self._busy else overdue

    @property
    def lapsed(self) -> bool:
        return self._until is not None and self._clock.monotonic() >= self._until

    @property
    def used(self) -> bool:
        return self._process.runs.used

    @property
    def load(self) -> Load:
        """How hard the process works. Its event loop is late by as much as it takes to answer a ping."""
        return self._watch.load

    @property
    def places(self) -> int:
        return SERIAL_PLACES if self._alone else 0

    @property
    def waiting(self) -> int:
        return max(0, len(self._runs) - 1) if self._alone else 0

    def attach(self, listener: RunnerListener) -> None:
        self._listener = listener

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, run: Run) -> bool:
        """Send the run to the process."""
        if self.dead:
            message = f"process {self.pid} has just ended"
            raise RuntimeError(message)
        run.number, run.place = self._process.runs.give()
        self._runs[run.job.fence] = run
        self._process.send(Start(run.job, run.number, run.place, run.state))
        if not self.waiting:
            return True
        if self._look_timer is None:
            self._watch_first_run()
        return False

    def stop(self, run: Run) -> None:
        """Ask the process to stop the run; if that does not help, kill the process. One that it has not taken ends."""
        if self.began(run) is None and self._take_back_one(run):
            self._end(run, End(run.stopped_as or EndKind.DRAINED, begun=False))
        else:
            self._ask_to_stop(run)

    def _take_back_one(self, run: Run) -> bool:
        taken_back = not self.dead and self._process.runs.take_back_one(run.number)
        self._process.send(LookAgain())
        return taken_back

    def _ask_to_stop(self, run: Run) -> None:
        assert run.stopped_as is not None  # noqa: S101 - set by all who stop a run
        self._process.send(Stop(run.job.id, run.job.fence, run.stopped_as))
        patience = STUBBORN_SECONDS
        if self._alone and run.stopped_as is not EndKind.CANCELLED:
            patience = CANCEL_SECONDS
        elif not self._alone:
            patience += CANCEL_SECONDS  # the process has a patience of its own
        if run.patience is not None:
            run.patience.cancel()
        run.patience = self._clock.call_in(patience, partial(self._overdue, run))

    def _overdue(self, run: Run) -> None:
        if not run.ended:
            self.kill(f"job {run.job.id} of {run.job.worker} was told to stop ({run.stopped_as}) and did not")

    def began(self, run: Run) -> float | None:
        return self._process.runs.began(run.place) if self._runs.get(run.job.fence) is run else None

    def take_back(self) -> list[Run]:
        if self.dead:
            return []
        numbers = set(self._process.runs.take_back())
        taken_back = [run for run in self._runs.values() if run.number in numbers]
        for run in taken_back:
            self._forget(run)
        return taken_back

    async def stack(self, run: Run) -> str:
        if self.began(run) is None:
            return "it has not begun: it waits for its turn in its process\n"
        return await self._questions.ask(run)

    def _forget(self, run: Run) -> None:
        del self._runs[run.job.fence]
        if run not in self.strays:  # a thread of it may still be about to note that it begins
            self._process.runs.free(run.place)
        if self._going_on:
            self._going_on.discard(run)
        if run.patience is not None:
            run.patience.cancel()
            run.patience = None

    def _end(self, run: Run, end: End) -> None:
        next_begins = self._alone and not self._waits(run)
        self._forget(run)
        run.ended = True
        if next_begins and self._runs:
            self._begins(next(iter(self._runs.values())))
        run.owner.run_ended(run, end)

    # ── runs that wait for their turn ────────────────────────────────────────────────────────────────────────────

    @property
    def _busy(self) -> bool:
        """Whether the first run has begun."""
        first = next(iter(self._runs.values()), None)
        return first is not None and self.began(first) is not None

    def _waits(self, run: Run) -> bool:
        """Return whether a run waits until another one has ended."""
        return self._alone and next(iter(self._runs.values()), run) is not run

    def _begins(self, run: Run) -> None:
        run.started_at = self._clock.now()
        run.owner.run_begun(run)
        if run.stopped_as is not None:
            self._ask_to_stop(run)

    def _hand_back(self, run: Run) -> None:
        run.ended = True
        run.owner.run_ended(run, End(run.stopped_as or EndKind.DRAINED, begun=False))

    def _watch_first_run(self) -> None:
        first = next(iter(self._runs.values()))
        self._look_timer = self._clock.call_in(LONGEST_WAIT_SECONDS, partial(self._look_at_first_run, first))

    def _look_at_first_run(self, watched: Run) -> None:
        """Hand back what waits for a run that takes longer than those before it: others may have room."""
        self._look_timer = None
        if self.dead or not self.waiting:
            return
        if self._waits(watched) or watched.ended or not self._busy:
            self._watch_first_run()
        else:
            self._hand_back_unbegun()

    def _hand_back_unbegun(self) -> None:
        for run in self.take_back():
            self._hand_back(run)

    def _refused(self, message: FromNode, why: str) -> None:
        """End the run whose message is too long for the process: its payload was stored under another limit."""
        run = self._runs.get(message.job.fence) if isinstance(message, Start) else None
        if run is None:
            log_refusal(message, why)
        else:
            error = f"the payload is too large to be sent to its process: {why}; raise max_payload_bytes"
            self._end(run, End(EndKind.UNDECODABLE, error=error))

    # ── messages from the process ────────────────────────────────────────────────────────────────────────────────

    def _received(self, frames: Sequence[ProcessFrame]) -> None:
        self._answer.came()
        if self._process.runs.full:
            self._process.send(LookAgain())  # which writes the tokens first
        for frame in frames:
            for message in frame.messages:
                try:
                    self._handle(message)
                except Exception:  # the next message is about another run, which would never end
                    logger.exception("cannot handle a %s message of process %d", type(message).__name__, self.pid)

    def _handle(self, message: FromProcess) -> None:
        match message:
            case RunEnded():
                self._run_ended(message)
            case Progressed():
                run = self._runs.get(message.fence)
                if run is not None:
                    run.log = message.progress.log
                    self._report(run.job, message.progress)
            case StackShown():
                self._questions.answered(message)
            case Ready():
                self._is_ready()
            case SetupFailed():
                self.error = message.error
            case _:
                pass

    def _run_ended(self, message: RunEnded) -> None:
        run = self._runs.get(message.fence)
        if run is None:
            return
        run.outcome = message.outcome
        if message.stray:
            self.strays[run] = self._clock.now()
        if message.stray and message.end.kind is EndKind.DRAINED:
            # Another instance would run the job while it goes on here: not before this process is gone.
            self._going_on.add(run)
        else:
            self.served += 1
            self._end(run, message.end)
        if self._going_on and len(self._going_on) == len(self._runs):
            self.kill("runs that are handed back go on in it")

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_ready(self) -> None:
        self.ready = True
        self._termination.ready()
        if self._listener is not None:
            self._listener.runner_ready(self)

    def renew(self, until: float) -> None:
        """Pass a renewal on, unless it comes too late: the process has ended itself, or is about to."""
        if not self.lapsed and (self._until is None or self._until < until):
            self._until = until
            self._process.renew(until)

    def renewed(self, until: float) -> None:
        """Pass a renewal on, and kill the process if it came too late."""
        self.renew(until)
        if self._until is not None and self._until < until:
            self.kill("the renewal of its lease came too late")

    def look(self, memory_limit: int | None) -> None:
        self._starved = self._host.starved()
        if self.dead or not self.ready:
            return
        fault = self._watch.look(list(self._runs.values()), self.began, memory_limit)
        if fault is not None and self._termination.why is None:
            if fault.blamed is not None:
                fault.blamed.stopped_as = fault.blamed.stopped_as or EndKind.RAISED
            self.kill(fault.why)
        self._answer.due_in(0.0)
        self._process.send(Ping(self._clock.now(), time.monotonic()))

    def drain(self) -> None:
        self._process.send(Drain())
        self._hand_back_unbegun()

    # ── death ────────────────────────────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Let the process go. It is given a while."""
        if not self.dead and not self._termination.asked:
            self._process.send(Exit())
            self._termination.give_a_while()

    def kill(self, why: str, *, at_once: bool = False) -> None:
        """Kill the process now, after a look at what its threads are doing unless it must be at once."""
        self._termination.kill(why, at_once=at_once)

    def _ended(self, status: int) -> None:
        self.dead = True
        self._termination.done()
        death = Death(
            status=status,
            why=self._termination.why,
            killed=self._process.killed,
            alone=self._alone,
            lapsed=self.lapsed,
            starved=self._host.starved() > self._starved,
            severed=self._process.severed,
            stack=self._termination.stack or self._process.last_words() or None,
        )
        self.killed_from_outside = death.from_outside
        unbegun = [run for run in self._runs.values() if self.began(run) is None]
        for run in unbegun:
            self._forget(run)
        log_death(death, self.pid, self._runs.values(), expected=not self.ready or self._termination.asked)
        if not self.ready and self.error is None:
            self.error = death.before_ready
        suspected = self._end_runs(death)
        for run in unbegun:
            self._hand_back(run)
        if self._listener is not None:
            self._listener.runner_gone(self, suspected)

    def _end_runs(self, death: Death) -> list[Run]:
        """End the runs that died with the process; returns those that are to be tried again, apart."""
        runs, tried = list(self._runs.values()), []
        suspected = suspects(runs, death, self._kills)
        if death.from_outside:
            self._kills.add(run.job.id for run in runs)
        for run in runs:
            end = end_of(run, death, suspected, together=len(runs))
            if end is None:
                self._forget(run)
                tried.append(run)
                continue
            try:
                self._end(run, end)
            except Exception:  # the others have to end too
                logger.exception("cannot end job %s of %s", run.job.id, run.job.worker)
        return tried
