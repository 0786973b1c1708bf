"""The runs of one instance, from start to outcome: where each takes place, when its time is over, and how it ended.

`Runs` starts and stops them. `JobEnder` turns each end into an outcome: `core.jobs.retry.settle` decides, the outbox
writes.
"""

import logging
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from shiftwork.core.jobs.retry import End, EndKind, settle
from shiftwork.core.jobs.run_options import run_options_of
from shiftwork.core.jobs.transitions import is_expired
from shiftwork.core.model.job_changes import Outcome
from shiftwork.core.model.jobs import Claimed, JobStatus
from shiftwork.core.model.workers import RunState
from shiftwork.runtime.claiming.instance_services import InstanceLease, InstanceServices
from shiftwork.runtime.clock import Clock, Timer
from shiftwork.runtime.outcomes.outbox import Settled
from shiftwork.runtime.running.job_run import AnyRun, LocalRun, Run
from shiftwork.runtime.running.runner import Isolation, Runner

logger: Final = logging.getLogger("shiftwork")


class Runs:
    """Starts runs, watches their deadlines, ends them, and settles them. It owns the runs it starts."""

    def __init__(
        self,
        services: InstanceServices,
        runner: Runner,
        isolation: Isolation | None,
        *,
        ender: "JobEnder",
        on_suspects: Callable[[Sequence[Run]], None],
        on_end: Callable[[Run], None],
    ) -> None:
        self.active: dict[str, Run] = {}
        """Runs that have not ended, by the id of their job."""
        self._registry = services.registry
        self._runner = runner
        self._isolation = isolation
        self._isolated: set[str] = set()
        self._states = services.states
        self._ender = ender
        self._clock = services.clock
        self._report_beginning = services.reporter.run_begun
        self._on_suspects = on_suspects
        """Called with isolated runs that died together."""
        self._on_end = on_end
        self._new_run: type[Run] = Run if runner.apart else LocalRun
        self._deadlines = Deadlines(
            services.clock, began=self._began, on_expired=partial(self.stop, kind=EndKind.TIMED_OUT)
        )

    def start(self, job: Claimed) -> None:
        """Run a job. One that has crashed before runs alone, where that can be had."""
        state = RunState.of(self._states.get(job.worker))
        config = self._registry.workers[job.worker].config
        run = self.active[job.id] = self._new_run(job, config, self._clock.now(), self, state)
        if job.crashes and self._isolation is not None:
            self._isolate([run], self._isolation)
            return
        try:
            begins = self._runner.start(run)
        except BaseException:  # out of threads, for instance: the job is not ours after all
            run.ended = True
            del self.active[job.id]
            raise
        if begins:
            self.run_begun(run)

    def retry_apart(self, suspects: Sequence[Run]) -> None:
        """Run jobs again whose process died, apart from others. Without a place for that: hand them back."""
        if self._isolation is None:
            self.hand_back(suspects)
            return
        again = []
        for suspect in suspects:
            suspect.ended = True
            self._forget_deadline(suspect)
            again.append(Run(suspect.job, suspect.config, self._clock.now(), self, suspect.state))
            again[-1].begun = suspect.begun
            self.active[suspect.job.id] = again[-1]
        self._isolate(again, self._isolation)

    def hand_back(self, runs: Iterable[Run]) -> None:
        """Let other instances have the jobs of these runs, which have not begun or must not begin again."""
        for run in runs:
            self._end(run, End(EndKind.DRAINED))

    def hand_back_unbegun(self) -> None:
        """Let other instances have the jobs of runs that were started and have not begun."""
        taken_back = self._runner.take_back()
        for run in taken_back:
            run.begun = False  # started, but not more
        self.hand_back(taken_back)

    def _isolate(self, runs: Sequence[Run], isolation: Isolation) -> None:
        self._isolated.update(run.job.id for run in runs)
        isolation.take(runs, self._on_suspects)

    def run_begun(self, run: Run) -> None:
        """Watch the deadline of a run from now on, and report its beginning."""
        run.begun = True
        timeout = run.config.timeout_seconds
        if timeout is not None:
            self._deadlines.watch(run, timeout)
        self._report_beginning(run.job)

    def _began(self, run: Run) -> float | None:
        runner = self.runner_of(run)
        return None if runner is None else runner.began(run)

    def _forget_deadline(self, run: Run) -> None:
        if run.config.timeout_seconds is not None:
            self._deadlines.forget(run, run.config.timeout_seconds)

    def _end(self, run: Run, end: End) -> None:
        run.ended = True
        self.run_ended(run, end)

    def run_ended(self, run: Run, end: End) -> None:
        """Settle a run. Its job may run here again, if the lease was lost while the run took long to stop."""
        if self.active.get(run.job.id) is run:
            del self.active[run.job.id]
            self._isolated.discard(run.job.id)
        self._forget_deadline(run)
        self._ender.settle(run, end)
        self._on_end(run)

    def stop(self, run: Run, kind: EndKind) -> None:
        """Make a run end. If it is being stopped already, the first reason stays."""
        if not run.ended and run.stopped_as is None:
            run.stopped_as = kind
            if self._isolation is not None and run.job.id in self._isolated:
                self._isolation.stop(run)
            else:
                self._runner.stop(run)

    def stop_all(self) -> None:
        """End every run and hand its job back. What has not begun is taken back together: one by one takes long."""
        self.hand_back_unbegun()
        for run in list(self.active.values()):
            self.stop(run, EndKind.DRAINED)

    def cancel(self, job_id: str, fence: int) -> None:
        """End a run whose job a person has cancelled."""
        run = self.active.get(job_id)
        if run is not None and run.job.fence == fence:
            self.stop(run, EndKind.CANCELLED)

    def runner_of(self, run: Run) -> Runner | None:
        """Return where a run takes place; None while it waits for a place. Safe from any thread."""
        if self._isolation is not None and run.job.id in self._isolated:
            return self._isolation.runner_of(run)
        return self._runner

    def close(self) -> None:
        """Watch no more deadlines."""
        self._deadlines.close()


class JobEnder:
    """Turns the ends of runs of one instance into outcomes, and counts them."""

    def __init__(self, services: InstanceServices, lease: InstanceLease) -> None:
        self.completed: int = 0
        self.failed: int = 0
        self._registry = services.registry
        self._outbox = services.outbox
        self._clock = services.clock
        self._lease = lease
        self._unasked_hand_backs = services.unasked_hand_backs

    def settle(self, run: Run, end: End) -> None:
        """Put the outcome of a run into the outbox."""
        if run.outcome is None:
            if end.kind is EndKind.DRAINED and not run.begun:
                end = replace(end, begun=False)
            self.end(run.job, replace(end, log=run.log) if run.log else end, run.started_at)
        else:
            self._settled_itself(run, run.outcome, end)

    def hand_back(self, job: Claimed, started_at: float) -> None:
        """Return a job that was claimed and has not begun. One that has expired meanwhile is cancelled."""
        expired = is_expired(job, self._clock.now())
        self.end(job, End(EndKind.EXPIRED if expired else EndKind.DRAINED, begun=False), started_at)

    def end(self, job: Claimed, end: End, started_at: float) -> None:
        """Put the outcome of a job into the outbox."""
        callee = self._registry.workers.get(job.worker)
        outcome = settle(
            job,
            end,
            callee.config if callee else None,
            started_at=started_at,
            now=self._clock.now(),
            rand=random.random(),
            instance=self._lease.name,
            hand_backs=self._unasked_hand_backs.count(job.id, self._clock.monotonic()) if end.unasked else 0,
        )
        if outcome.status is JobStatus.COMPLETED:
            self.completed += 1
        elif outcome.report is not None:
            self.failed += 1
        own = None if job.options is None else run_options_of(job.options).max_retries
        self._outbox.put(Settled(outcome, started_at, max_retries=own, final=end.final))

    def _settled_itself(self, run: Run, outcome: Outcome, end: End) -> None:
        """Count a job that its function ended in a transaction; what the function did afterwards does not count."""
        self.completed += 1
        self._outbox.put(Settled(outcome, run.started_at, written=True))
        if end.kind is not EndKind.RETURNED:
            logger.warning(
                "job %s of %s failed after it had completed: %s",
                run.job.id,
                run.job.worker,
                end.error or end.kind,
                extra={"job_id": run.job.id, "worker": run.job.worker},
            )


class Deadlines:
    """Calls `on_expired` for every run that reaches its deadline, which counts from when the run began.

    One timer watches them instead of one each: most runs end long before theirs.

    Runs with the same timeout reach their deadlines in the order in which they were started. So there is a queue for
    each timeout, and a run that ends leaves its queue at once, with everything it refers to. Those that began later
    than they were started are watched for the rest of their time, or once more if they have not begun.
    """

    def __init__(
        self, clock: Clock, *, began: Callable[[AnyRun], float | None], on_expired: Callable[[AnyRun], None]
    ) -> None:
        self._clock = clock
        self._began = began
        self._on_expired = on_expired
        self._late: dict[Run, float] = {}
        """The deadlines of runs that began later than they were started, in no order."""
        self._queues: dict[float, dict[Run, float]] = {}
        """The deadlines of the runs with each timeout, the next one first."""
        self._armed_for = float("inf")
        self._timer: Timer | None = None

    def watch(self, run: Run, seconds: float) -> None:
        """Expire this run after this many seconds, by the monotonic clock, unless it is forgotten by then."""
        deadline = self._clock.monotonic() + seconds
        queue = self._queues.get(seconds)
        if queue is None:
            queue = self._queues[seconds] = {}
        queue[run] = deadline
        if deadline < self._armed_for:
            self._arm()

    def forget(self, run: Run, seconds: float) -> None:
        """Let go of a run, which has ended. Harmless if it is not watched."""
        queue = self._queues.get(seconds)
        if queue is not None:
            queue.pop(run, None)
        if self._late:
            self._late.pop(run, None)

    def close(self) -> None:
        """Forget every deadline."""
        self._queues.clear()
        self._late.clear()
        self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        self._queues = {seconds: queue for seconds, queue in self._queues.items() if queue}
        first = [next(iter(queue.values())) for queue in self._queues.values()]
        self._armed_for = min([*first, *self._late.values()], default=float("inf"))
        if self._queues or self._late:
            self._timer = self._clock.call_in(self._armed_for - self._clock.monotonic(), self._ring)

    def _ring(self) -> None:
        now = self._clock.monotonic()
        late = [run for run, deadline in self._late.items() if deadline <= now]
        try:
            for queue, due in [(self._late, late), *((queue, _due(queue, now)) for queue in self._queues.values())]:
                for run in due:
                    if queue.pop(run, None) is not None:  # the end of another may have ended this one
                        self._judge(run, now)
        finally:
            self._arm()

    def _judge(self, run: Run, now: float) -> None:
        seconds, began = run.config.timeout_seconds, self._began(run)
        assert seconds is not None  # noqa: S101 - only runs with a deadline are watched
        left = seconds if began is None else began + seconds - now
        if left > 0:
            self._late[run] = now + left
        else:
            self._on_expired(run)


def _due(queue: dict[Run, float], now: float) -> list[Run]:
    due = []
    for run, deadline in queue.items():
        if deadline > now:
            break
        due.append(run)
    return due
