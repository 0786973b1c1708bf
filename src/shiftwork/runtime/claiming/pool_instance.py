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
from shiftwork.store.protocol import Bell, Claims

logger: Final = logging.getLogger("shiftwork")


class PoolInstanceListener(Protocol):
    """Hears what happens to an engine, on the event loop."""

    def engine_ready(self, engine: "PoolInstance") -> None:
        """Its runner takes runs from now on."""

    def run_ended(self, engine: "PoolInstance") -> None:
        """One of its runs has ended."""

    def engine_gone(self, engine: "PoolInstance", *, expected: bool) -> None:
        """Its runner is dead. It was expected to end if it claimed no more before that."""


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
        tenure = InstanceLease(name)
        self.tenure: InstanceLease = tenure
        self._listener = listener
        self._clock = services.clock
        self._bell = bell
        self._node = services.node
        # All of them: a worker that has moved to another pool may have jobs left in this one.
        self._workers = tuple(sorted(services.registry.workers))
        self._started_at = services.clock.now()
        self._stopping_runs = False
        self._settler = settler = JobEnder(services, tenure)
        self._runs = runs = Runs(
            services, runner, isolation, settler=settler, suspected=self._suspected, after_end=self._run_ended
        )
        self.runs: dict[str, Run] = runs.active
        """The runs that have not ended, by the id of their job."""
        self._claimer = JobClaimer(
            pool, self._workers, services, tenure=tenure, runner=runner, runs=runs, settler=settler
        )
        runner.attach(self)

    # ── claiming ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def instance(self) -> str:
        """The name under which it claims now."""
        return self.tenure.instance

    @property
    def draining(self) -> bool:
        """Whether it claims no more."""
        return self.tenure.draining

    @property
    def slots(self) -> int:
        """How many jobs may run at a time."""
        return self._claimer.slots

    @property
    def free(self) -> int:
        """How many more jobs it could run now."""
        return self._claimer.free

    @property
    def in_doubt(self) -> bool:
        """Whether a claim was begun whose answer never came."""
        return self._claimer.in_doubt

    @property
    def age(self) -> float:
        """Seconds since its beginning."""
        return self._clock.now() - self._started_at

    @property
    def waiting(self) -> int:
        """How many jobs it has claimed ahead, which wait for a free slot."""
        return self._claimer.waiting

    @property
    def look_at(self) -> float | None:
        """When it may want to claim although nothing has happened: some runs will be about to end."""
        return self._claimer.look_at

    async def claim(self) -> tuple[int, Claims]:
        """Claim jobs and start those that there are slots for. Returns how many were wanted, and what the store had."""
        return await self._claimer.claim()

    def resize(self, slots: int) -> None:
        """Run up to this many jobs from now on. Running jobs are never interrupted; those that wait are handed back."""
        if slots != self._claimer.slots:
            if slots < self._claimer.slots:
                self._claimer.hand_back()
            self._claimer.slots = slots
            self._bell.ring()

    def adopt(self, workers: Iterable[str]) -> None:
        """Claim jobs of these workers too: they were registered after the start."""
        self._workers = tuple(sorted({*self._workers, *workers}))
        self._claimer.workers = frozenset(self._workers)
        self._bell.ring()

    # ── runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _run_ended(self, run: Run) -> None:
        self._bell.ring()
        self._listener.run_ended(self)  # it may have been the last one before the runner is replaced
        self._claimer.ended(run)

    def runner_ready(self, _runner: Runner) -> None:
        self._bell.ring()
        self._listener.engine_ready(self)

    def runner_gone(self, _runner: Runner, suspects: Sequence[Run]) -> None:
        expected, self.tenure.draining = self.draining, True
        self._claimer.hand_back()
        self._suspected(suspects)
        self._listener.engine_gone(self, expected=expected)

    def _suspected(self, suspects: Sequence[Run]) -> None:
        if self._stopping_runs:
            self._runs.hand_back(suspects)
        elif suspects:
            self._runs.retry_apart(suspects)

    def hand_back_unbegun(self) -> None:
        """Let other instances have the jobs of runs that were started and have not begun."""
        self._runs.hand_back_unbegun()

    def cancel(self, job_id: str, fence: int) -> None:
        """End a job that a person has cancelled: its run, or its wait for one."""
        self._claimer.cancel(job_id, fence)
        self._runs.cancel(job_id, fence)

    def runner_of(self, run: Run) -> Runner | None:
        """Where a run takes place; None while it waits for a place. Safe from any thread."""
        return self._runs.runner_of(run)

    # ── lease and end ────────────────────────────────────────────────────────────────────────────────────────────

    def renewed(self, until: float) -> None:
        """The lease under the present name holds until then, by the monotonic clock."""
        self.runner.renewed(until)
        if self.tenure.renewed():
            self._bell.ring()

    def step_down(self, *, lost: bool) -> None:
        """Stop everything: the lease is lost, or may be. An instance that lost it goes on under a new name."""
        self.tenure.suspend()
        self.stop_runs()
        self._stopping_runs = self.draining
        if lost:
            self.tenure.rename()

    def drain(self) -> None:
        """Claim no more, hand back what has not begun, and tell the running functions that the end is near."""
        self.tenure.draining = True
        self._claimer.hand_back()
        self.runner.drain()

    def stop_runs(self) -> None:
        """End every run and hand its job back, and those that have not begun."""
        self._stopping_runs = True
        self._claimer.hand_back()
        self._runs.stop_all()

    async def close(self) -> None:
        """Let go of the runner, and reconcile. If the store fails, the engine stays in doubt."""
        self.runner.close()
        self._runs.close()
        try:
            await self.reconcile()
        except StoreError as error:
            logger.debug("cannot find out whether %s still holds jobs: %s", self.instance, error)

    async def reconcile(self) -> None:
        """Hand back what a claim may have brought whose answer never came. Raises what the store raises."""
        if self._claimer.in_doubt:
            await self._claimer.reconcile()

    def beat(self) -> Beat:
        """A sign of life. Called from the pulse's thread, so it only reads."""
        busy, load = len(self.runs) - self.runner.waiting, self.runner.load
        return Beat(
            instance=self.instance,
            node=self._node,
            pool=self.pool.name,
            slots=self.slots,
            busy=busy,
            started_at=self._started_at,
            completed=self._settler.completed,
            failed=self._settler.failed,
            memory=load.memory,
            cpu=load.cpu,
            lag=load.lag,
            workers=self._workers,
            status="draining" if self.draining else "busy" if busy else "idle",
            apart=self.runner.apart,
            pid=self.runner.pid,
        )
