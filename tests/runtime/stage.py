"""What tests of the runtime play with: a clock moved by hand, a store that fails on command, functions on hold."""

import asyncio
import functools
import inspect
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final, Literal, cast

from shiftwork import Context, Job, JobStatus, StoreUnavailableError, WorkerOrchestrator
from shiftwork.runtime.clock import ManualClock, settle
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
        self._gates: dict[str, asyncio.Event] = {}

    def fail(
        self, *methods: str, kind: Kind = "before", error: Exception | None = None, times: int | None = None
    ) -> None:
        """Let these methods (all, if none are named) fail; `after` does the work first, and then says it failed."""
        cause = error or StoreUnavailableError("the store is away, says the test")
        self._plans.append((frozenset(methods), kind, cause, times))

    def mend(self) -> None:
        """Everything works again."""
        self._plans.clear()

    def hold(self, method: str) -> asyncio.Event:
        """Let the answers of this method wait until the event is set; the work itself is done at once."""
        self._gates[method] = asyncio.Event()
        return self._gates[method]

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
        answer = await call()
        gate = self._gates.get(method)
        if gate is not None:
            await gate.wait()
        if plan is not None:
            raise plan[1]
        return answer


class FaultyStore:
    """Another store, some of whose calls fail. It answers for every method of the one it wraps."""

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
        self._apps: list[WorkerOrchestrator] = []

    def app(self, **options: Any) -> WorkerOrchestrator:
        """A new orchestrator on the same store; it is stopped when the test ends."""
        made = WorkerOrchestrator(self.store, clock=self.clock, **options)
        self._apps.append(made)
        return made

    def faulty_app(self, **options: Any) -> WorkerOrchestrator:
        """Likewise, but its way to the store obeys `faults`."""
        made = WorkerOrchestrator(cast("Store", FaultyStore(self.store, self.faults)), clock=self.clock, **options)
        self._apps.append(made)
        return made

    async def stop(self, app: WorkerOrchestrator, *, grace: float = 0.0) -> None:
        """Stop it, letting as much time pass as that takes."""
        await self.during(app.stop(grace))

    async def during(self, work: Awaitable[Any], *, step: float = 1.0, longest: float = 600.0) -> Any:
        """Let time pass until this is done; answers with what it answers."""
        task = asyncio.ensure_future(work)
        passed = 0.0
        await settle()
        while not task.done() and passed < longest:
            await self.clock.advance(step)
            passed += step
        async with asyncio.timeout(DEADLINE):
            return await task

    async def close(self) -> None:
        self.faults.mend()
        for app in self._apps:
            await self.stop(app)
            await app.close()

    def bench(self, app: WorkerOrchestrator) -> None:
        """Let it claim nothing any more, while everything else of it goes on."""
        node = app._node
        assert node is not None
        for team in node.teams.values():
            team.close()
            for engine in team.engines:
                engine.draining = True

    async def crash(self, app: WorkerOrchestrator) -> None:
        """As if its process had been killed: nothing of it runs any more, and nobody was told."""
        node = app._node
        assert node is not None
        for duty in [*node._duties, *node._keeper._duties]:
            duty._stopping = True
            if duty._task is not None:
                duty._task.cancel()
            duty._bell.close()
        for engine in node.engines:
            for run in list(engine.runs.values()):
                run.ended = True
                if run.task is not None:
                    run.task.cancel()
            engine.runs.clear()
            engine._deadlines.close()
        app._node = None
        app._state = "stopped"
        await settle()


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
        self._waiting: list[asyncio.Future[Any]] = []

    async def __call__(self, ctx: Context) -> Any:
        self.started += 1
        self.running += 1
        self.most = max(self.most, self.running)
        self.contexts.append(ctx)
        self.diary.append(f"{self.name} starts")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            return await future
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
            self.diary.append(f"{self.name} ends")
            if future in self._waiting:
                self._waiting.remove(future)

    async def finish(self, value: Any = None) -> None:
        """Let the eldest run return."""
        self._waiting.pop(0).set_result(value)
        await settle()

    async def fail(self, error: Exception | None = None) -> None:
        """Let the eldest run raise."""
        self._waiting.pop(0).set_exception(error or RuntimeError(f"{self.name} failed"))
        await settle()


class Hatch:
    """Where a thread waits until the test lets it go on; and where the test waits for the thread."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self._go = threading.Event()

    def wait(self) -> None:
        """For the thread."""
        self.entered.set()
        assert self._go.wait(DEADLINE)

    def open(self) -> None:
        """Let the thread go on."""
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


async def eventually(met: Callable[[], bool], what: str = "it") -> None:
    """Give the loop turns until this is so. For what other threads do, where no event can be waited for."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + DEADLINE
    while not met():
        assert loop.time() < deadline, f"{what} did not come about within {DEADLINE:g} s"
        await asyncio.sleep(0.001)


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
