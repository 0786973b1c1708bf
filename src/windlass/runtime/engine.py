"""One pool in this process: claim up to the free slots, start, collect.

The engine never decides what an end means (`core.retry.settle` does) and never writes it (the outbox does).
"""

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import psutil

from windlass.core.model import Beat, Claimed, JobFilter, JobStatus, Outcome, PoolConfig
from windlass.core.retry import End, EndKind, settle
from windlass.errors import JobStateError, StoreError
from windlass.runtime.clock import Clock
from windlass.runtime.context import Context
from windlass.runtime.deadlines import Deadlines
from windlass.runtime.execute import Run, Threads, run_async, run_rest, run_sync
from windlass.runtime.outbox import Notebook, Outbox, Settled
from windlass.runtime.registry import Registry
from windlass.store.protocol import Bell, Store, transactional

logger: Final = logging.getLogger("windlass")

_process: Final = psutil.Process()

STUBBORN_SECONDS: Final = 5.0
"""How long a function that was told to stop may take before it is given up on."""


class Engine:
    """Runs the jobs of one pool as one instance of it, on this event loop and in threads of its own."""

    def __init__(
        self,
        pool: PoolConfig,
        registry: Registry,
        *,
        store: Store,
        clock: Clock,
        outbox: Outbox,
        notebook: Notebook,
        bell: Bell,
        node: str,
    ) -> None:
        self.pool = pool
        self.slots = max(pool.min_workers, 1)
        self.runs: dict[str, Run] = {}
        self.strays: set[Run] = set()
        """Runs that were given up on and whose function goes on regardless."""
        self.completed = 0
        self.failed = 0
        self.draining = False
        self.on_end: Callable[[], None] | None = None
        """Called after each end, for whoever waits for the last one."""
        self._registry = registry
        # All of them: a worker that has moved to another pool may have jobs left in this one.
        self._workers = frozenset(registry.workers)
        self._names = tuple(sorted(self._workers))
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._notebook = notebook
        self._bell = bell
        self._node = node
        self._lives = 0
        self._started_at = clock.now()
        self._threads = Threads()
        self._deadlines = Deadlines(clock, partial(self.end, kind=EndKind.TIMED_OUT))
        self._loop = asyncio.get_running_loop()
        self._in_doubt = False
        self._leased: str | None = None
        """The name under which it holds a lease. Without one it claims nothing: jobs would be taken from it at once."""
        self.instance = f"{node}/{pool.name}"

    # ── claiming ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def poll(self) -> float | None:
        """Claim as many jobs as there are free slots and start them; answers when time alone may bring more."""
        if self._in_doubt:
            await self.reconcile()
        free = self.slots - len(self.runs)
        instance = self.instance
        if free <= 0 or not self._serves_as(instance):
            return None
        self._in_doubt = True
        claims = await self._store.claim(instance, self.pool.name, free, self._clock.now(), self._workers)
        for job in claims.jobs:
            if self._serves_as(instance):
                self._start(job)
            else:  # no longer: that has changed since we asked
                self._settle(job, End(EndKind.DRAINED), started_at=self._clock.now())
        # Only now: should one of them have been impossible to start, the others are handed back.
        self._in_doubt = False
        return claims.next_at

    def _serves_as(self, instance: str) -> bool:
        return not self.draining and self._leased == instance

    async def reconcile(self) -> None:
        """Hand back jobs that the store says are ours and of which we know nothing: the answer to a claim got lost."""
        held = await self._store.find(JobFilter(instance=self.instance, status=(JobStatus.PROCESSING,), limit=10_000))
        known = self.runs.keys() | self._outbox.holds()
        for record in held:
            if record.id in known:
                continue
            logger.warning("job %s of %s was claimed but never arrived; handing it back", record.id, record.worker)
            self._settle(record.claimed(), End(EndKind.DRAINED), started_at=record.started_at or self._clock.now())
        self._in_doubt = False

    # ── running ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _start(self, job: Claimed) -> None:
        callee = self._registry.workers[job.worker]
        now = self._clock.now()
        timeout = callee.config.timeout_seconds
        deadline = None if timeout is None else now + timeout
        context = Context(
            job,
            callee.config,
            deadline=deadline,
            clock=self._clock,
            report=self._notebook.report,
            transact=self._transaction,
        )
        context.stopping = self.draining
        run = Run(job, callee, context, now)
        self.runs[job.id] = run
        if timeout is not None:
            self._deadlines.watch(run, timeout)
        if callee.is_async:
            self._start_task(run, run_async(run))
        else:
            self._start_thread(run)

    def _start_thread(self, run: Run) -> None:
        try:
            self._threads.start(partial(self._in_thread, run))
        except RuntimeError:  # no more threads to be had: the job is not ours after all
            run.ended = True
            del self.runs[run.job.id]
            raise

    def _start_task(self, run: Run, coroutine: Coroutine[Any, Any, End]) -> None:
        run.task = self._loop.create_task(coroutine)
        run.task.add_done_callback(partial(self._task_done, run))

    def _task_done(self, run: Run, task: asyncio.Task[End]) -> None:
        if task.cancelled() or task.exception():  # before its first step, or the loop is interrupted
            self._ended(run, End(run.stopped_as or EndKind.DRAINED))
        else:
            self._ended(run, task.result())

    def _in_thread(self, run: Run) -> None:
        end = run_sync(run)
        try:
            self._loop.call_soon_threadsafe(self._thread_done, run, end)
        except RuntimeError:  # the loop is gone, and with it everybody who would want to know
            logger.warning("job %s of %s ended after everything else had", run.job.id, run.job.worker)

    def _thread_done(self, run: Run, end: End | Coroutine[Any, Any, Any]) -> None:
        if isinstance(end, End):
            self._ended(run, end)
        elif run.ended or run.stopped_as is not None:
            end.close()
            self._ended(run, End(run.stopped_as or EndKind.DRAINED))
        else:
            self._start_task(run, run_rest(run, end))

    def _ended(self, run: Run, end: End) -> None:
        if run.ended:
            self.strays.discard(run)
            return
        run.ended = True
        if run.patience is not None:
            run.patience.cancel()
        del self.runs[run.job.id]
        if run.outcome is None:
            self._settle(run.job, end, started_at=run.started_at)
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

    # ── transactions ─────────────────────────────────────────────────────────────────────────────────────────────

    @asynccontextmanager
    async def _transaction(self, job_id: str) -> AsyncIterator[Any]:
        """A transaction that completes the job when it commits."""
        store = transactional(self._store, "ctx.transaction()")
        run = self.runs.get(job_id)
        if run is None or run.outcome is not None:
            raise JobStateError(f"job {job_id} has ended: nothing can be written together with its end any more")
        async with store.transaction() as transaction:
            yield transaction.connection
            now = self._clock.now()
            done = End(EndKind.RETURNED)
            outcome = settle(run.job, done, run.callee.config, started_at=run.started_at, now=now, rand=0.0)
            if not await transaction.finish(outcome, now):
                raise JobStateError(
                    f"this run of job {job_id} is stale: the job was taken from it. Nothing was written"
                )
        run.outcome = outcome

    def _settled(self, run: Run, outcome: Outcome, end: End) -> None:
        """The function has ended its job itself; whatever it did afterwards does not count."""
        if end.kind is not EndKind.RETURNED:
            logger.warning(
                "job %s of %s had completed, and then: %s", run.job.id, run.job.worker, end.error or end.kind
            )
        self.completed += 1
        self._outbox.put(Settled(outcome, run.started_at, written=True))

    # ── ending ───────────────────────────────────────────────────────────────────────────────────────────────────

    def end(self, run: Run, kind: EndKind) -> None:
        """Make a run end: cancel a coroutine, tell a thread. One that does not listen is given up on."""
        if run.ended or run.stopped_as is not None:
            return
        run.stopped_as = kind
        run.context.cancelled = True
        if run.task is not None:
            run.task.cancel()
        patience = 0.0 if run.task is None and kind is not EndKind.CANCELLED else STUBBORN_SECONDS
        if patience:
            run.patience = self._clock.call_in(patience, partial(self._give_up, run))
        else:
            self._give_up(run)

    def _give_up(self, run: Run) -> None:
        if run.ended:
            return
        self.strays.add(run)
        what = "its coroutine swallowed the cancellation" if run.task else "its thread cannot be stopped"
        logger.error(
            "job %s of %s was told to stop (%s), but goes on: %s", run.job.id, run.job.worker, run.stopped_as, what
        )
        timed_out = run.stopped_as is EndKind.TIMED_OUT
        why = f"timed out after {run.callee.config.timeout_seconds:g} s" if timed_out else "told to stop"
        self._ended(run, End(run.stopped_as or EndKind.DRAINED, error=f"{why}, but {what}"))

    def cancel(self, job_id: str, fence: int) -> None:
        """A person cancelled this job."""
        run = self.runs.get(job_id)
        if run is not None and run.job.fence == fence:
            self.end(run, EndKind.CANCELLED)

    def drain(self) -> None:
        """Claim no more, and let the functions know that the end is near."""
        self.draining = True
        for run in self.runs.values():
            run.context.stopping = True

    def end_all(self) -> None:
        """End every run and hand its job back."""
        for run in list(self.runs.values()):
            self.end(run, EndKind.DRAINED)

    def renewed(self) -> None:
        """The lease holds, under the present name."""
        if self._leased != self.instance:
            self._leased = self.instance
            self._bell.ring()

    def step_down(self, *, lost: bool) -> None:
        """The lease is gone, or may be: stop everything. A lost instance goes on under a new name."""
        logger.error("instance %s could not keep its lease; its %d jobs are stopped", self.instance, len(self.runs))
        self._leased = None
        self.end_all()
        if lost:
            self._lives += 1
            self.instance = f"{self._node}/{self.pool.name}.{self._lives}"

    async def close(self) -> None:
        """Let go of the threads, and hand back what a cut-off claim may have brought."""
        self._threads.close()
        self._deadlines.close()
        if self._in_doubt:
            try:
                await self.reconcile()
            except StoreError as error:
                logger.warning("cannot tell whether jobs are left with %s: %s", self.instance, error)

    def resize(self, slots: int) -> None:
        """Run up to this many jobs from now on. Running ones are never interrupted."""
        self.slots = slots
        self._bell.ring()

    def beat(self) -> Beat:
        """A sign of life. Called from the pulse's thread: reads only."""
        busy = len(self.runs)
        return Beat(
            instance=self.instance,
            node=self._node,
            pool=self.pool.name,
            slots=self.slots,
            busy=busy,
            started_at=self._started_at,
            completed=self.completed,
            failed=self.failed,
            memory=_process.memory_info().rss,
            workers=self._names,
            status="draining" if self.draining else "busy" if busy else "idle",
        )
