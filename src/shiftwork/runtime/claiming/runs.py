"""The runs of one instance, from their start to their end: where each takes place, and when its time is over."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from shiftwork.core.jobs.retry import End, EndKind
from shiftwork.core.model.jobs import Claimed
from shiftwork.core.model.workers import RunState
from shiftwork.runtime.claiming.instance_services import InstanceServices
from shiftwork.runtime.claiming.job_ender import JobEnder
from shiftwork.runtime.running.deadlines import Deadlines
from shiftwork.runtime.running.isolation import Isolation
from shiftwork.runtime.running.run import Run
from shiftwork.runtime.running.runner import Runner


class Runs:
    """Starts runs, watches their deadlines, ends them, and settles them. It owns the runs it starts."""

    def __init__(
        self,
        services: InstanceServices,
        runner: Runner,
        isolation: Isolation | None,
        *,
        settler: JobEnder,
        suspected: Callable[[Sequence[Run]], None],
        after_end: Callable[[Run], None],
    ) -> None:
        self.active: dict[str, Run] = {}
        """Runs that have not ended, by the id of their job."""
        self._registry = services.registry
        self._runner = runner
        self._isolation = isolation
        self._isolated: set[str] = set()
        self._states = services.states
        self._settler = settler
        self._clock = services.clock
        self._report_beginning = services.reporter.run_begun
        self._suspected = suspected
        """Called with isolated runs that died together."""
        self._after_end = after_end
        self._deadlines = Deadlines(
            services.clock, began=self._began, expire=partial(self.stop, kind=EndKind.TIMED_OUT)
        )

    def start(self, job: Claimed) -> None:
        """Run a job. One that has crashed before runs alone, where that can be had."""
        state = RunState.of(self._states.get(job.worker))
        config = self._registry.workers[job.worker].config
        run = self.active[job.id] = Run(job, config, self._clock.now(), self, state)
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
        isolation.take(runs, self._suspected)

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
        self._settler.settle(run, end)
        self._after_end(run)

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
        """Where a run takes place; None while it waits for a place. Safe from any thread."""
        if self._isolation is not None and run.job.id in self._isolated:
            return self._isolation.runner_of(run)
        return self._runner

    def close(self) -> None:
        """Watch no more deadlines."""
        self._deadlines.close()
