"""One instance of a pool: claim up to the free slots, have them run, collect.

The engine never decides what an end means (`core.retry.settle` does) and never writes it (the outbox does).
"""

import logging
import random
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from shiftwork.core.model import Beat, Claimed, JobFilter, JobStatus, Outcome, PoolConfig
from shiftwork.core.retry import End, EndKind, settle
from shiftwork.errors import StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.deadlines import Deadlines
from shiftwork.runtime.engine.execute import Run
from shiftwork.runtime.engine.outbox import Outbox, Settled
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.runner import Runner
from shiftwork.runtime.gauge import Stopwatch
from shiftwork.runtime.processes.quarantine import Quarantine
from shiftwork.store.protocol import Bell, Claims, Store

if TYPE_CHECKING:
    from collections.abc import Callable

logger: Final = logging.getLogger("shiftwork")


class Engine:
    """Claims jobs of one pool under one lease, and hands them to its runner."""

    def __init__(
        self,
        pool: PoolConfig,
        registry: Registry,
        *,
        store: Store,
        clock: Clock,
        outbox: Outbox,
        runner: Runner,
        bell: Bell,
        stopwatch: Stopwatch,
        node: str,
        name: str,
        quarantine: Quarantine | None = None,
    ) -> None:
        self.pool = pool
        self.slots = 0
        self.runs: dict[str, Run] = {}
        self.runner = runner
        self.completed = 0
        self.failed = 0
        self.draining = False
        self._ending = False
        self.on_end: Callable[[], None] | None = None
        """Called after each end, for whoever waits for the last one."""
        self._registry = registry
        # All of them: a worker that has moved to another pool may have jobs left in this one.
        self._workers = frozenset(registry.workers)
        self._names = tuple(sorted(self._workers))
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._bell = bell
        self._stopwatch = stopwatch
        self._node = node
        self._lives = 0
        self._started_at = clock.now()
        self._deadlines = Deadlines(clock, partial(self.end, kind=EndKind.TIMED_OUT))
        self._in_doubt = False
        self._leased: str | None = None
        """The name under which it holds a lease. Without one it claims nothing: jobs would be taken from it at once."""
        self._name = name
        self.instance = name
        self._quarantine = quarantine
        self._isolated: set[str] = set()
        """Jobs of ours that run in quarantine."""

    # ── claiming ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def free(self) -> int:
        """How many more jobs it could run now."""
        return self.slots - len(self.runs) if self._serves_as(self.instance) else 0

    async def claim(self) -> Claims:
        """Claim as many jobs as there are free slots and start them; answers with what the store had."""
        if self._in_doubt:
            await self.reconcile()
        free, instance = self.free, self.instance
        if free <= 0:
            return Claims([])
        self._in_doubt = True
        claims = await self._stopwatch.time(
            self._store.claim(instance, self.pool.name, free, self._clock.now(), self._workers)
        )
        for job in claims.jobs:
            if self._serves_as(instance):
                self._start(job)
            else:  # no longer: that has changed since we asked
                self._settle(job, End(EndKind.DRAINED), started_at=self._clock.now())
        # Only now: should one of them have been impossible to start, the others are handed back.
        self._in_doubt = False
        return claims

    def _serves_as(self, instance: str) -> bool:
        return not self.draining and self._leased == instance and self.runner.open

    async def reconcile(self) -> None:
        """Hand back jobs that the store says are ours and of which we know nothing: the answer to a claim got lost."""
        held = await self._store.find(JobFilter(instance=self.instance, status=(JobStatus.PROCESSING,), limit=10_000))
        known = self.runs.keys() | self._outbox.holds()
        for record in held:
            if record.id in known:
                continue
            about = {"job_id": record.id, "worker": record.worker}
            logger.warning(
                "job %s of %s was claimed but never arrived; handing it back", record.id, record.worker, extra=about
            )
            self._settle(record.claimed(), End(EndKind.DRAINED), started_at=record.started_at or self._clock.now())
        self._in_doubt = False

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, job: Claimed) -> None:
        run = Run(job, self._registry.workers[job.worker].config, self._clock.now(), self._ended)
        self.runs[job.id] = run
        if job.crashes and self._quarantine is not None:
            self._isolate(run, self._quarantine)
            return
        try:
            self.runner.start(run)
        except BaseException:  # no more threads to be had, say: the job is not ours after all
            run.ended = True
            del self.runs[job.id]
            raise
        self._watch(run)

    def _watch(self, run: Run) -> None:
        timeout = run.config.timeout_seconds
        if timeout is not None:
            self._deadlines.watch(run, timeout)

    def suspect(self, run: Run) -> None:
        """Its process died while it ran there among others: it is run again, alone."""
        run.ended = True
        again = Run(run.job, run.config, self._clock.now(), self._ended)
        self.runs[run.job.id] = again
        if self._quarantine is None or self._ending:
            self._ended(again, End(EndKind.DRAINED))
        else:
            self._isolate(again, self._quarantine)

    def _isolate(self, run: Run, quarantine: Quarantine) -> None:
        self._isolated.add(run.job.id)
        quarantine.take(run, self._watch)

    @property
    def age(self) -> float:
        """Seconds since its beginning."""
        return self._clock.now() - self._started_at

    def hand_back(self, runs: Iterable[Run]) -> None:
        """These have not begun: somebody else may run them."""
        for run in runs:
            run.ended = True
            self._ended(run, End(EndKind.DRAINED))

    def _ended(self, run: Run, end: End) -> None:
        del self.runs[run.job.id]
        self._isolated.discard(run.job.id)
        if run.outcome is None:
            self._settle(run.job, replace(end, log=run.log) if run.log else end, started_at=run.started_at)
        else:
            self._settled(run, run.outcome, end)
        self._bell.ring()
        if self.on_end is not None:
            self.on_end()

    def _settle(self, job: Claimed, end: End, *, started_at: float) -> None:
        callee = self._registry.workers.get(job.worker)
        outcome = settle(
            job,
            end,
            callee.config if callee else None,
            started_at=started_at,
            now=self._clock.now(),
            rand=random.random(),
            instance=self.instance,
        )
        if outcome.status is JobStatus.COMPLETED:
            self.completed += 1
        elif outcome.report is not None:
            self.failed += 1
        self._outbox.put(Settled(outcome, started_at))

    def _settled(self, run: Run, outcome: Outcome, end: End) -> None:
        """The function has ended its job itself; whatever it did afterwards does not count."""
        if end.kind is not EndKind.RETURNED:
            job, about = run.job, {"job_id": run.job.id, "worker": run.job.worker}
            logger.warning(
                "job %s of %s had completed, and then: %s", job.id, job.worker, end.error or end.kind, extra=about
            )
        self.completed += 1
        self._outbox.put(Settled(outcome, run.started_at, written=True))

    # ── ending ───────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, run: Run, kind: EndKind) -> None:
        """Make a run end. One that does not listen is given up on."""
        if not run.ended and run.stopped_as is None:
            run.stopped_as = kind
            if self._quarantine is not None and run.job.id in self._isolated:
                self._quarantine.stop(run)
            else:
                self.runner.stop(run)

    def cancel(self, job_id: str, fence: int) -> None:
        """A person cancelled this job."""
        run = self.runs.get(job_id)
        if run is not None and run.job.fence == fence:
            self.end(run, EndKind.CANCELLED)

    def place_of(self, run: Run) -> Runner | None:
        """Where it runs; None if it has not begun. Safe from any thread."""
        if self._quarantine is not None and run.job.id in self._isolated:
            return self._quarantine.cell_of(run)
        return self.runner

    def drain(self) -> None:
        """Claim no more, and let the functions know that the end is near."""
        self.draining = True
        self.runner.drain()

    def end_all(self) -> None:
        """End every run and hand its job back."""
        self._ending = True
        for run in list(self.runs.values()):
            self.end(run, EndKind.DRAINED)

    def renewed(self, until: float) -> None:
        """The lease holds, under the present name, until then by the monotonic clock."""
        self.runner.renewed(until)
        if self._leased != self.instance:
            self._leased = self.instance
            self._bell.ring()

    def step_down(self, *, lost: bool) -> None:
        """The lease is gone, or may be: stop everything. A lost instance goes on under a new name."""
        logger.error("instance %s could not keep its lease; its %d jobs are stopped", self.instance, len(self.runs))
        self._leased = None
        self.end_all()
        self._ending = self.draining
        if lost:
            self._lives += 1
            self.instance = f"{self._name}.{self._lives}"

    async def close(self) -> None:
        """Let go of the threads, and hand back what a cut-off claim may have brought."""
        self.runner.close()
        self._deadlines.close()
        if self._in_doubt:
            try:
                await self.reconcile()
            except StoreError as error:
                logger.warning("cannot tell whether jobs are left with %s: %s", self.instance, error)

    def resize(self, slots: int) -> None:
        """Run up to this many jobs from now on. Running ones are never interrupted."""
        if slots != self.slots:
            self.slots = slots
            self._bell.ring()

    def beat(self) -> Beat:
        """A sign of life. Called from the pulse's thread: reads only."""
        busy, load = len(self.runs), self.runner.load
        return Beat(
            instance=self.instance,
            node=self._node,
            pool=self.pool.name,
            slots=self.slots,
            busy=busy,
            started_at=self._started_at,
            completed=self.completed,
            failed=self.failed,
            memory=load.memory,
            cpu=load.cpu,
            lag=load.lag,
            workers=self._names,
            status="draining" if self.draining else "busy" if busy else "idle",
            apart=self.runner.apart,
            pid=self.runner.pid,
        )
