"""What tests of the runtime play with: a clock moved by hand, a store that fails on command, functions on hold.

Tests look inside an orchestrator through the handles here (`node_of`, `worker_of`, `Stage.crash` …), and nowhere else.
"""

import asyncio
import functools
import inspect
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, cast

from msgspec.structs import replace

from shiftwork import Context, Job, JobStatus, StoreUnavailableError, WorkerOrchestrator
from shiftwork.handles.worker import Worker
from shiftwork.runtime.claiming.job_claimer import PrefetchedJobs
from shiftwork.runtime.claiming.pool_instance import PoolInstance
from shiftwork.runtime.clock import ManualClock, until_idle
from shiftwork.runtime.node.node import Node
from shiftwork.store.memory import MemoryStore
from shiftwork.store.protocol import Store

DEADLINE: Final = 30.0
"""Seconds of real time after which something that must happen has not happened."""

Kind = Literal["before", "after"]


class Faults:
    """Which calls of a `FaultyStore` fail, and which ones hang."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._plans: list[tuple[frozenset[str], Kind, Exception, int | None]] = []
        self._gates: dict[tuple[str, Kind], asyncio.Event] = {}
        self._answers: dict[str, Any] = {}

    def fail(
        self, *methods: str, kind: Kind = "before", error: Exception | None = None, times: int | None = None
    ) -> None:
        """Let these methods (all, if none are named) fail; `after` does the work first, and then fails."""
        cause = error or StoreUnavailableError("the store is away, says the test")
        self._plans.append((frozenset(methods), kind, cause, times))

    def clear(self) -> None:
        """Let everything work again."""
        self._plans.clear()

    def answer(self, method: str, value: Any) -> None:
        """Let every call of this method return this value, without doing its work."""
        self._answers[method] = value

    def hold(self, method: str, kind: Kind = "after") -> asyncio.Event:
        """Let this method wait for the event after it has done its work, or before."""
        self._gates[method, kind] = asyncio.Event()
        return self._gates[method, kind]

    def plan_of(self, method: str) -> tuple[Kind, Exception] | None:
        for position, (methods, kind, error, times) in enumerate(self._plans):
            if method not in (methods or {method} - {"close"}):
                continue
            if times is not None:
                left = times - 1
                self._plans[position : position + 1] = [(methods, kind, error, left)] if left else []
            self.failed[method] += 1
            return kind, type(error)(*error.args)
        return None

    async def around(self, method: str, call: Callable[[], Awaitable[Any]]) -> Any:
        self.calls[method] += 1
        plan = self.plan_of(method)
        if plan is not None and plan[0] == "before":
            raise plan[1]
        await self._pass(method, "before")
        answer = self._answers[method] if method in self._answers else await call()
        await self._pass(method, "after")
        if plan is not None:
            raise plan[1]
        return answer

    async def _pass(self, method: str, kind: Kind) -> None:
        gate = self._gates.get((method, kind))
        if gate is not None:
            await gate.wait()


class FaultyStore:
    """Another store, some of whose calls fail. It has every method of the store that it wraps."""

    def __init__(self, store: Store, faults: Faults) -> None:
        self.url = store.url
        self._store = store
        self._faults = faults

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if not inspect.iscoroutinefunction(method):
            return method

        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._faults.around(name, lambda: method(*args, **kwargs))

        return call


class Stage:
    """A store, a clock, and the orchestrators that a test puts on them."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore()
        self.faults = Faults()
        self.apps: list[WorkerOrchestrator] = []

    def app(self, **options: Any) -> WorkerOrchestrator:
        """A new orchestrator on the same store; it is stopped when the test ends."""
        made = WorkerOrchestrator(self.store, clock=self.clock, **options)
        self.apps.append(made)
        return made

    def faulty_app(self, **options: Any) -> WorkerOrchestrator:
        """Likewise, but its way to the store obeys `faults`."""
        made = WorkerOrchestrator(cast("Store", FaultyStore(self.store, self.faults)), clock=self.clock, **options)
        self.apps.append(made)
        return made

    async def stop(self, app: WorkerOrchestrator, *, grace: float = 0.0) -> None:
        """Stop it, letting as much time pass as that takes."""
        await self.during(app.stop(grace))

    async def during(self, work: Awaitable[Any], *, step: float = 1.0, longest: float = 600.0) -> Any:
        """Let time pass until this is done; returns its result."""
        task = asyncio.ensure_future(work)
        passed = 0.0
        await until_idle()
        while not task.done() and passed < longest:
            await self.clock.advance(step)
            passed += step
        async with asyncio.timeout(DEADLINE):
            return await task

    async def close(self) -> None:
        self.faults.clear()
        for app in self.apps:
            await self.stop(app)
            await app.close()

    def ring(self, *topics: str) -> None:
        """Ring the bells of these topics."""
        self.store._bells.ring(topics)

    def topics(self) -> list[str]:
        """The topics to which something listens."""
        return self.store._bells.topics()

    async def depose(self, app: WorkerOrchestrator) -> None:
        """Let a node that does nothing take the lead from this one, and keep it."""
        await self.store.drop("leader", node_of(app).name)
        assert await self.store.hold("leader", "an idle node", 1, 1e6, self.clock.now())
        await self.clock.advance(10)
        assert not node_of(app).leader.leading

    def bench(self, app: WorkerOrchestrator) -> None:
        """Let the app claim nothing from now on, while everything else continues."""
        for pool in node_of(app).pools.values():
            pool.close()
            for instance in pool.instances:
                instance.lease.draining = True

    async def crash(self, app: WorkerOrchestrator) -> None:
        """Stop everything of the app as if its process had been killed, without telling the store."""
        node = node_of(app)
        for duty in node.duties:
            duty._stopping = True
            if duty._task is not None:
                duty._task.cancel()
            duty._bell.close()
        for instance in node.instances:
            for run in list(instance.runs.active.values()):
                run.ended = True
                if run.task is not None:
                    run.task.cancel()
            instance.runs.active.clear()
            instance.claimer._prefetched.empty()
            instance.runs.close()
        app._lifecycle.node = None
        app._lifecycle.state = "stopped"
        await until_idle()


def node_of(app: WorkerOrchestrator) -> Node:
    """The node of an orchestrator that has been started."""
    assert app._lifecycle.node is not None
    return app._lifecycle.node


def lag_of(app: WorkerOrchestrator) -> float | None:
    """How late the event loop of an orchestrator was, as far as its node has measured it."""
    return node_of(app)._services.gauge.load().lag


def instance_of(app: WorkerOrchestrator) -> PoolInstance:
    """The only instance of an orchestrator that has been started."""
    (instance,) = node_of(app).instances
    return instance


def limit_jobs(instance: PoolInstance, most: int) -> None:
    """Let the instance be replaced after this many jobs."""
    instance.claimer._pool = replace(instance.pool, max_jobs_per_instance=most)


def prefetched_of(instance: PoolInstance) -> PrefetchedJobs:
    """The jobs that the instance has claimed ahead."""
    return instance.claimer._prefetched


def leads(app: WorkerOrchestrator) -> bool:
    """Whether the orchestrator runs, and leads."""
    return app._lifecycle.node is not None and app._lifecycle.node.leader.leading


def worker_of(app: WorkerOrchestrator, name: str) -> Worker[..., Any]:
    """The handle of a worker that is registered under this name."""
    return app._composition.registered.workers[name]


def deadlines_of(instance: PoolInstance) -> int:
    """How many deadlines the instance remembers."""
    return sum(map(len, instance.runs._deadlines._queues.values()))


class Act:
    """A worker's function that runs until the test lets it go, and keeps a diary."""

    def __init__(self, name: str = "act", diary: list[str] | None = None) -> None:
        self.name = name
        self.diary: list[str] = [] if diary is None else diary
        self.started = 0
        self.running = 0
        self.most = 0
        self.cancelled = 0
        self.contexts: list[Context] = []
        self.waiting: list[asyncio.Future[Any]] = []
        """What the runs wait for, the eldest first."""

    async def __call__(self, ctx: Context) -> Any:
        self.started += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.contexts.append(ctx)
        self.diary.append(f"{self.name} starts")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.waiting.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
            self.diary.append(f"{self.name} ends")
            if future in self.waiting:
                self.waiting.remove(future)

    async def finish(self, value: Any = None) -> None:
        """Let the eldest run return."""
        self.waiting.pop(0).set_result(value)
        await until_idle()

    async def fail(self, error: Exception | None = None) -> None:
        """Let the eldest run raise."""
        self.waiting.pop(0).set_exception(error or RuntimeError(f"{self.name} failed"))
        await until_idle()


class Hatch:
    """Where a thread waits until the test lets it continue; and where the test waits for the thread."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._go = threading.Event()

    def wait(self) -> None:
        """For the thread."""
        self.entered.set()
        assert self._go.wait(DEADLINE)

    def open(self) -> None:
        """Let the thread continue."""
        self._go.set()

    async def reached(self) -> None:
        """For the test: wait until the thread is here."""
        assert await asyncio.to_thread(self.entered.wait, DEADLINE)


async def status(job: Job[Any]) -> JobStatus:
    """The job's status now."""
    return (await job.refresh()).status


async def statuses(jobs: Iterable[Job[Any]]) -> list[str]:
    """All their statuses now."""
    return [str(await status(job)) for job in jobs]


@asynccontextmanager
async def started(*apps: WorkerOrchestrator) -> AsyncIterator[None]:
    """They run meanwhile, by the real clock."""
    try:
        for app in apps:
            await app.start()
        yield
    finally:
        for app in apps:
            await app.stop(0.0)
            await app.close()
