"""One instance of a pool: it holds a lease, claims jobs under it, and has its runner run them.

Each part has one job: `InstanceLease` knows the lease, `JobClaimer` claims, `Runs` tracks what runs, `JobEnder` turns
ends into outcomes. The instance puts them together, and reports to its pool what happens.
"""

import logging
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import Beat
from shiftwork.errors import StoreError
from shiftwork.runtime.claiming.instance_services import InstanceLease, InstanceServices
from shiftwork.runtime.claiming.job_claimer import JobClaimer
from shiftwork.runtime.claiming.runs import JobEnder, Runs
from shiftwork.runtime.running.job_run import Run
from shiftwork.runtime.running.runner import Isolation, Runner
from shiftwork.store.protocol import Bell

logger: Final = logging.getLogger("shiftwork")


class PoolInstanceListener(Protocol):
    """Hears what happens to an instance, on the event loop."""

    def instance_ready(self, instance: "PoolInstance") -> None:
        """Called when its runner begins to take runs."""

    def run_ended(self, instance: "PoolInstance") -> None:
        """Called when one of its runs has ended."""

    def instance_gone(self, instance: "PoolInstance", *, expected: bool) -> None:
        """Called when its runner is dead. It was expected to end if it claimed no more before that."""


class PoolInstance:
    """Claims jobs of one pool under one lease, and has them run."""

    def __init__(
        self,
        pool: PoolConfig,
        services: InstanceServices,
        *,
        name: str,
        runner: Runner,
        isolation: Isolation | None,
        listener: PoolInstanceListener,
        bell: Bell,
    ) -> None:
        self.pool = pool
        self.runner = runner
        self.lease: InstanceLease = (lease := InstanceLease(name))
        self._listener = listener
        self._clock = services.clock
        self._bell = bell
        self._node = services.node
        # All of them: a worker that has moved to another pool may have jobs left in this one.
        self._workers = tuple(sorted(services.registry.workers))
        self._started_at = services.clock.now()
        self._stopping_runs = False
        self._ender = ender = JobEnder(services, lease)
        self.runs: Runs = Runs(
            services, runner, isolation, ender=ender, on_suspects=self._suspected, on_end=self._run_ended
        )
        self.claimer: JobClaimer = JobClaimer(
            pool, self._workers, services, lease=lease, runner=runner, runs=self.runs, ender=ender
        )
        runner.attach(self)

    @property
    def name(self) -> str:
        """The name under which it claims now."""
        return self.lease.name

    @property
    def age(self) -> float:
        """Seconds since its beginning."""
        return self._clock.now() - self._started_at

    def resize(self, slots: int) -> None:
        """Run up to this many jobs from now on. Running jobs are never interrupted; those that wait are handed back."""
        if slots != self.claimer.slots:
            if slots < self.claimer.slots:
                self.claimer.hand_back()
            self.claimer.slots = slots
            self._bell.ring()

    def adopt(self, workers: Iterable[str]) -> None:
        """Claim jobs of these workers too: they were registered after the start."""
        self._workers = tuple(sorted({*self._workers, *workers}))
        self.claimer.workers = frozenset(self._workers)
        self._bell.ring()

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _run_ended(self, run: Run) -> None:
        self._bell.ring()
        self._listener.run_ended(self)  # it may have been the last one before the runner is replaced
        self.claimer.ended(run)

    def runner_ready(self, _runner: Runner) -> None:
        self._bell.ring()
        self._listener.instance_ready(self)

    def runner_gone(self, _runner: Runner, suspects: Sequence[Run]) -> None:
        expected, self.lease.draining = self.lease.draining, True
        self.claimer.hand_back()
        self._suspected(suspects)
        self._listener.instance_gone(self, expected=expected)

    def _suspected(self, suspects: Sequence[Run]) -> None:
        if self._stopping_runs:
            self.runs.hand_back(suspects)
        elif suspects:
            self.runs.retry_apart(suspects)

    def cancel(self, job_id: str, fence: int) -> None:
        """End a job that a person has cancelled: its run, or its wait for one."""
        self.claimer.cancel(job_id, fence)
        self.runs.cancel(job_id, fence)

    # ── lease and end ────────────────────────────────────────────────────────────────────────────────────────────

    def renewed(self, until: float) -> None:
        """Note that the lease under the present name holds until then, by the monotonic clock."""
        self.runner.renewed(until)
        if self.lease.renewed():
            self._bell.ring()

    def step_down(self, *, lost: bool) -> None:
        """Stop everything: the lease is lost, or may be. An instance that lost it goes on under a new name."""
        self.lease.suspend()
        self.stop_runs()
        self._stopping_runs = self.lease.draining
        if lost:
            self.lease.rename()

    def drain(self) -> None:
        """Claim no more, hand back what has not begun, and tell the running functions that the end is near."""
        self.lease.draining = True
        self.claimer.hand_back()
        self.runner.drain()

    def stop_runs(self) -> None:
        """End every run and hand its job back, and those that have not begun."""
        self._stopping_runs = True
        self.claimer.hand_back()
        self.runs.stop_all()

    async def close(self) -> None:
        """Let go of the runner, and reconcile. If the store fails, the instance stays in doubt."""
        self.runner.close()
        self.runs.close()
        try:
            await self.reconcile()
        except StoreError as error:
            logger.debug("cannot find out whether %s still holds jobs: %s", self.name, error)

    async def reconcile(self) -> None:
        """Hand back what a claim may have brought whose answer never came. Raises what the store raises."""
        if self.claimer.in_doubt:
            await self.claimer.reconcile()

    def beat(self) -> Beat:
        """Return a beat. Called from the pulse's thread, so it only reads."""
        busy, load = len(self.runs.active) - self.runner.waiting, self.runner.load
        return Beat(
            instance=self.name,
            node=self._node,
            pool=self.pool.name,
            slots=self.claimer.slots,
            busy=busy,
            started_at=self._started_at,
            completed=self._ender.completed,
            failed=self._ender.failed,
            memory=load.memory,
            cpu=load.cpu,
            lag=load.lag,
            workers=self._workers,
            status="draining" if self.lease.draining else "busy" if busy else "idle",
            apart=self.runner.apart,
            pid=self.runner.pid,
        )
