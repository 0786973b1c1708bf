"""The orchestrator: what people hold. It registers, starts and stops, and composes the parts that do the work.

Rules are in `core`, running is in `runtime`, commands and questions are in `control`.
"""

import asyncio
import sys
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeVar, Unpack, overload

from msgspec import to_builtins

from shiftwork.app.blocking import BlockingCalls, blocking
from shiftwork.app.decorators import WorkerDecorator, checked, name_of, nameless
from shiftwork.app.registration import (
    Registrations,
    WorkerFn,
    check_in_place,
    default_pool,
    merged,
    one_function,
    warn_in_place,
)
from shiftwork.app.submitting import CurrentSubmitter
from shiftwork.app.triggering import Triggering
from shiftwork.control.control import Control
from shiftwork.control.environment import DEFAULT_NAMESPACE, default_store, namespace_of_environment
from shiftwork.control.event_loop import run
from shiftwork.control.forking import begin_anew_when_forked, never_free
from shiftwork.control.job_filter import JobSearch, JobSelection
from shiftwork.control.portal import refuse_on_a_loop
from shiftwork.control.registry import LocalRegistry
from shiftwork.core.durations import Duration, seconds_of, timeout_of
from shiftwork.core.model import Event, FlowRecord, PoolConfig, WorkerConfig
from shiftwork.core.option_types import NamedWorkerOptions, PoolOptions, WorkerOptions
from shiftwork.core.payload_limits import MAX_PAYLOAD_BYTES
from shiftwork.errors import ConfigurationError, LifecycleError
from shiftwork.events import AnyHook, Hooks, JobListeners
from shiftwork.handles.call import Call
from shiftwork.handles.flow import Flow
from shiftwork.handles.job import Job
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import Clock, SystemClock
from shiftwork.runtime.engine.context import Context
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.surroundings import AroundJob, Lifespan, Surroundings
from shiftwork.runtime.node.settings import Settings
from shiftwork.runtime.signals import stop_signals
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.keys import EncryptionKeys, find_keys
from shiftwork.store.urls import store_of

if TYPE_CHECKING:
    from shiftwork.app.alerts import AlertFormat
    from shiftwork.app.bench import Bench, Trial
    from shiftwork.app.decorators import AsyncWorker, AsyncWorkerWithContext, PlainWorker, PlainWorkerWithContext
    from shiftwork.core.health import Finding
    from shiftwork.runtime.clock import ManualClock
    from shiftwork.runtime.engine.engine import Engine
    from shiftwork.runtime.node.node import Node
    from shiftwork.runtime.processes.messages import Definition, Setup
    from shiftwork.views.explanation import Explanation
    from shiftwork.views.overview import NodeView
    from shiftwork.views.schedules import SchedulePreview, ScheduleView
    from shiftwork.views.stack import JobStack
    from shiftwork.web.access import Identify
    from shiftwork.web.api import Api

STOP_SECONDS: Final = 30.0
"""How long running work may take to finish when the orchestrator stops."""

P = ParamSpec("P")
R = TypeVar("R")
AnyLifespan = TypeVar("AnyLifespan", bound=Lifespan)
AnyAround = TypeVar("AnyAround", bound=AroundJob)


class WorkerOrchestrator:
    """Registers workers and pools, runs them here, and controls them from any process that reaches the store.

    `store` is a URL (`sqlite:///relative.db`, `sqlite:////absolute.db`, `memory://`) or a store. Without
    one it is `SHIFTWORK_STORE` of the environment, or else `sqlite:///shiftwork.db`; the default namespace is likewise
    `SHIFTWORK_NAMESPACE`, or else "default".
    `max_concurrent` is the size of the default pool. `tick_interval` is the longest sleep, not the resolution.
    `lease_seconds` is how long the jobs of a process that vanished stay its own. `encryption_keys` are the keys that
    encrypt what jobs carry (docs/encryption.md); by default those of the environment, and with () none.
    """

    def __init__(
        self,
        store: str | Store | None = None,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        tick_interval: Duration = 5.0,
        max_concurrent: int = 5,
        enable_health_checks: bool = True,
        lease_seconds: Duration = 15.0,
        max_payload_bytes: int = MAX_PAYLOAD_BYTES,
        encryption_keys: EncryptionKeys | None = None,
        clock: Clock | None = None,
    ) -> None:
        if store is None:
            store = default_store()
        if namespace == DEFAULT_NAMESPACE:
            namespace = namespace_of_environment()
        if not namespace:
            message = f"namespace must be a non-empty string, not {namespace!r}"
            raise ConfigurationError(message)
        self._url = store if isinstance(store, str) else None
        self._namespace = namespace
        self._keys = find_keys(encryption_keys)
        self._hooks = Hooks()
        self._surroundings = Surroundings()
        self._node: Node | None = None
        self._state: Literal["stopped", "running", "stopping"] = "stopped"
        self._starting: asyncio.Event | None = None
        self._bench: Bench | None = None
        settings = Settings(
            tick_interval=seconds_of("tick_interval", tick_interval),
            lease_seconds=seconds_of("lease_seconds", lease_seconds),
            health_checks=enable_health_checks,
            pulse_in_thread=clock is None,
            namespace=namespace if isinstance(store, str) else "",
        )
        registered = LocalRegistry(default_pool(max_concurrent))
        self._max_payload_bytes = max_payload_bytes
        self._registrations = Registrations(
            registered,
            CurrentSubmitter(lambda: self.control),
            self._surroundings,
            serving=self._serving,
            max_payload_bytes=max_payload_bytes,
        )
        opened = store_of(store, namespace=namespace, keys=self._keys)
        self._compose(opened, clock or SystemClock(), registered, settings, again=self._made_again(opened))
        begin_anew_when_forked(self)

    def _compose(
        self,
        store: Store,
        clock: Clock,
        registered: LocalRegistry,
        settings: Settings,
        *,
        again: Callable[[], Store] | None,
    ) -> None:
        """Put together everything that depends on the store and the clock. `again`: see `StoreAccess`."""
        self._clock = clock
        self._settings = settings
        self._registered = registered
        self.control = Control(
            store,
            clock,
            registered,
            hooks=self._hooks,
            strays=self._strays,
            lease_seconds=settings.lease_seconds,
            again=again,
        )
        """Every command and every question about the store, in families."""
        self._triggering = Triggering(
            self.control, registered, complete=self._registrations.complete, new_visitor=self._new_visitor
        )

    def _made_again(self, store: Store) -> Callable[[], Store] | None:
        """Return what makes the same store in a forked process; None for one in memory, or that is not given by URL."""
        scheme = "memory" if self._url is None else self._url.partition(":")[0].lower()
        if self._url is None or scheme == "memory":
            return None
        # The path of a file may be relative to a folder that the forked process has left.
        url = store.url if scheme == "sqlite" else self._url
        return partial(store_of, url, namespace=self._namespace, keys=self._keys)

    def forked(self) -> None:
        """Run nothing, in a process that was just forked: whatever runs does so in the parent."""
        never_free((self._node, self._surroundings.forked()))
        self._node, self._state, self._starting = None, "stopped", None

    @property
    def blocking(self) -> "BlockingOrchestrator":
        """Return the coroutines of this orchestrator as plain calls, for code that has no event loop."""
        return BlockingOrchestrator(self)

    # ── registration ─────────────────────────────────────────────────────────────────────────────────────────────

    def register_worker(
        self,
        name: str,
        function: WorkerFn | None = None,
        options: WorkerOptions | Mapping[str, Any] | None = None,
        *,
        fn: WorkerFn | None = None,
        **named: Unpack[WorkerOptions],
    ) -> Worker[..., Any]:
        """Register a function under a name. Without a schedule it runs every 300 seconds.

        Options are given by name, or as a mapping. `fn` is another name for `function`.
        """
        function = one_function(name, function, fn)
        return self._registrations.add_worker(name, function, merged(name, options, named), {})

    @overload
    def worker(  # type: ignore[overload-overlap]  # a coroutine is a value, too
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> "AsyncWorkerWithContext[P, R]": ...

    @overload
    def worker(self, function: Callable[Concatenate[Context, P], R], /) -> "PlainWorkerWithContext[P, R]": ...

    @overload
    def worker(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> "AsyncWorker[P, R]": ...  # type: ignore[overload-overlap]

    @overload
    def worker(self, function: Callable[P, R], /) -> "PlainWorker[P, R]": ...

    @overload
    def worker(self, /, **options: Unpack[NamedWorkerOptions]) -> WorkerDecorator: ...

    def worker(
        self, function: Callable[..., Any] | None = None, /, **options: Any
    ) -> WorkerDecorator | Worker[Any, Any]:
        """Register the decorated function, SCHEDULED by default. `name` is the function's by default.

        Without options the parentheses may be left out.
        """
        decorator = WorkerDecorator(self._add_worker, options)
        return decorator if function is None else decorator(checked("worker", function))

    def _add_worker(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Worker[Any, Any]:
        return self._registrations.add_worker(name_of(function, options), function, nameless(options), {})

    @overload
    def task(  # type: ignore[overload-overlap]  # a coroutine is a value, too
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> "AsyncWorkerWithContext[P, R]": ...

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> "PlainWorkerWithContext[P, R]": ...

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> "AsyncWorker[P, R]": ...  # type: ignore[overload-overlap]

    @overload
    def task(self, function: Callable[P, R], /) -> "PlainWorker[P, R]": ...

    @overload
    def task(self, /, **options: Unpack[NamedWorkerOptions]) -> WorkerDecorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> WorkerDecorator | Worker[Any, Any]:
        """Register the decorated function as a TRIGGERED worker, whose parameters are its payload.

        Without options the parentheses may be left out.
        """
        decorator = WorkerDecorator(self._add_task, options)
        return decorator if function is None else decorator(checked("task", function))

    def _add_task(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Worker[Any, Any]:
        name = name_of(function, options)
        defaults = {"execution_mode": "triggered", "max_consecutive_failures": None}
        return self._registrations.add_worker(name, function, nameless(options), defaults)

    def register_pool(self, name: str | PoolConfig, **options: Unpack[PoolOptions]) -> PoolConfig:
        """Register a pool, by its name and options or as a `PoolConfig`. Workers name it in their `pool` option."""
        return self._registrations.add_pool(name, options)

    def lifespan(self, function: AnyLifespan, /) -> AnyLifespan:
        """Enter this context manager once in each process that runs jobs; what it yields is `ctx.state` there.

        The function takes nothing and yields once, or returns a context manager; plain or async. If it raises, the
        process takes no jobs. It is left when the process has finished its jobs.
        """
        if self._state != "stopped":
            raise LifecycleError("@app.lifespan belongs before start(): this process runs jobs already")
        self._surroundings.set_lifespan(function)
        return function

    def around_job(self, function: AnyAround, /) -> AnyAround:
        """Run each job inside this context manager, where the job runs. Several are nested in this order.

        The function takes the `Context` and yields once, or returns a context manager; plain or async. It sees the
        exception that a run raises. What it raises itself fails the run; it cannot turn a failure into a success.
        """
        self._surroundings.add_around(function)
        return function

    @overload
    def on(self, event: str) -> Callable[[AnyHook], AnyHook]: ...

    @overload
    def on(self, event: str, hook: AnyHook) -> AnyHook: ...

    def on(self, event: str, hook: AnyHook | None = None) -> AnyHook | Callable[[AnyHook], AnyHook]:
        """Call a function, plain or async, for every event of this name in this process.

        "*" is every event that is kept: all but `job.started`, `job.completed` and `job.failed`.
        """
        if callable(event):
            raise ConfigurationError('@app.on names an event: @app.on("job.dead"), or @app.on("*") for all of them')
        if hook is not None:
            self._hooks.add(event, hook)
            return hook

        def decorate(hook: AnyHook) -> AnyHook:
            self._hooks.add(event, hook)
            return hook

        return decorate

    def alert(
        self,
        url: str,
        *,
        events: Sequence[str],
        secret: str | None = None,
        format: "AlertFormat" = "json",  # noqa: A002 - the word that people look for
    ) -> None:
        """Post these events ("*": all) to an address, until they are accepted.

        With a `secret` they are signed as Standard Webhooks are. `format` is "json", "slack" for an incoming webhook of
        Slack, or a function that takes the event and returns what to post as JSON, None for nothing. An event that is
        not accepted within about a minute is given up. Nothing waits for it.
        """
        from shiftwork.app.alerts import Alert

        if isinstance(events, str) or not events:
            message = f'app.alert takes a list of events: events=["job.dead", "health.problem"], not {events!r}'
            raise ConfigurationError(message)
        alert = Alert(url, secret, format)
        for event in dict.fromkeys(events):
            self._hooks.add(event, alert)

    def registered(self) -> tuple[dict[str, WorkerConfig], dict[str, PoolConfig]]:
        """Return the workers and pools registered here, checked together as `start` does, without asking the store."""
        registry = self._registrations.complete()
        return self._registered.worker_configs(), dict(registry.pools)

    def _serving(self, what: str) -> "Node | None":
        """Return the running node, if there is one, to serve what is registered now."""
        if self._state == "stopped" or (self._state == "running" and self._node is not None):
            return self._node
        doing = "starting" if self._state == "running" else "stopping"
        message = f"{what} cannot be registered while the orchestrator is {doing}; register it before, or afterwards"
        raise LifecycleError(message)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Run all registered workers in this process, on this event loop."""
        if self._state != "stopped":
            message = f"the orchestrator is already {self._state}"
            raise LifecycleError(message)
        if self._bench is not None:
            raise LifecycleError("the app is being tested: instead of start(), await test.run_pending()")
        _refuse_windows()
        registry = self._registrations.complete()
        check_in_place(registry.pools.values())
        warn_in_place(registry.pools.values())
        self._state = "running"  # from here on a second start is refused
        self._starting = asyncio.Event()
        try:
            await self._start(registry)
        finally:
            self._starting.set()
            self._starting = None

    async def _start(self, registry: Registry) -> None:
        from shiftwork.app.process_setup import setup_of
        from shiftwork.runtime.node.health_monitor import HealthMonitor

        try:
            await self.control.store.open_to_change()
            setup = setup_of(self, registry, max_payload_bytes=self._max_payload_bytes)
            node = self._new_node(registry, self._settings, setup)
            if self._settings.health_checks:
                monitor = HealthMonitor(
                    self.control.system.health,
                    node.reporter.emit,
                    node.reporter.emit_quietly,
                    now=self._clock.now,
                    leads=lambda: node.leader.leading,
                )
                node.watch_health(monitor.poll)
            await self._surroundings.enter()
            try:
                await node.start()
            except BaseException:
                await self._surroundings.leave()
                raise
        except BaseException:
            self._state = "stopped"
            await self.control.store.close()
            raise
        self._node = node
        self.control.portal.loop = asyncio.get_running_loop()

    async def stop(self, timeout_seconds: Duration = STOP_SECONDS) -> None:
        """Stop claiming, let running work finish within the timeout, and hand back the rest uncounted.

        A second call ends what still runs.
        """
        patience = seconds_of("timeout_seconds", timeout_seconds)
        if self._starting is not None:
            await self._starting.wait()
        if self._node is None:
            return
        if self._state == "stopping":
            self._node.hurry()
            return
        self._refuse_inside_a_job()
        self._hooks.leave_out(asyncio.current_task())
        self._state = "stopping"
        node = self._node  # the attribute is cleared before the store is closed
        ending = asyncio.ensure_future(self._end(node, patience))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Half a stop would leave leases behind: end what runs, and finish the stop.
            node.hurry()
            await asyncio.wait([ending])
            raise

    async def _end(self, node: "Node", timeout_seconds: float) -> None:
        try:
            await node.stop(timeout_seconds)
        finally:
            await self._surroundings.leave()
            self._state = "stopped"
            self._node = None
            self.control.portal.loop = None
            self.control.portal.close()
            await self.control.store.close()

    def _refuse_inside_a_job(self) -> None:
        task = asyncio.current_task()
        if any(run.task is task for engine in self._engines() for run in engine.runs.values()):
            message = "a job cannot wait for the stop that waits for it; run stop() in a task of its own instead"
            raise LifecycleError(message)

    async def run(self, *, stop_timeout_seconds: Duration = STOP_SECONDS) -> None:
        """Start, wait for SIGTERM or SIGINT, then stop. A second signal ends what still runs."""
        patience = seconds_of("stop_timeout_seconds", stop_timeout_seconds)
        # Before the start: a signal during the start would leave leases behind.
        with stop_signals(self._hurry, patience=patience) as signalled:
            await self.start()
            await signalled.wait()
            await self.stop(patience)

    def _hurry(self) -> None:
        if self._node is not None:
            self._node.hurry()

    async def close(self) -> None:
        """Close the store, in a process that only asks or enqueues. `stop` closes it in one that runs workers."""
        if self._state != "stopped":
            message = f"the store is in use: the orchestrator is {self._state}; stop it, which closes the store too"
            raise LifecycleError(message)
        await self.control.close()

    def _new_node(
        self, registry: Registry, settings: Settings, setup: "Setup | None" = None, *, hooks: JobListeners | None = None
    ) -> "Node":
        from shiftwork.runtime.node.node import Node

        return Node(
            registry,
            store=self.control.store.store,
            clock=self._clock,
            hooks=hooks or self._hooks,
            states=self._registered.states,
            settings=settings,
            voice=self.control.voice,
            setup=setup,
        )

    def _new_visitor(self, registry: Registry) -> "Node":
        """Return a node for one errand, which never leads."""
        return self._new_node(registry, self._settings.visitor())

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def hooks(self) -> Hooks:
        """Return the hooks of this app."""
        return self._hooks

    @property
    def surroundings(self) -> Surroundings:
        """Return what is around the jobs of this process."""
        return self._surroundings

    def callees(self) -> Mapping[str, Worker[Any, Any]]:
        """Return the workers, ready to run."""
        self._registrations.complete()
        return self._registered.workers

    def definition(self) -> "Definition":
        """Return everything that a node must know about this app in order to run it without importing it."""
        from shiftwork.runtime.processes.messages import Definition

        if self._url is None:
            message = "shiftwork run needs a store that is given as a URL, so that other processes can open it too"
            raise ConfigurationError(message)
        registry = self._registrations.complete()
        return Definition(
            store=self._url,
            namespace=self._namespace,
            tick_interval=self._settings.tick_interval,
            lease_seconds=self._settings.lease_seconds,
            health_checks=self._settings.health_checks,
            workers=[worker.config for worker in registry.workers.values()],
            pools=list(registry.pools.values()),
            gates=dict(registry.gates),
            max_payload_bytes=self._max_payload_bytes,
            schemas={name: worker.schema for name, worker in registry.workers.items() if worker.schema},
            hooks=tuple(sorted(self._hooks.names)),
            encryption_keys=self._keys,
        )

    # ── testing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def testing(self, *, now: float | datetime | None = None) -> "Trial":
        """Stand on an empty store in memory and a clock of its own, until the `with` block ends (docs/testing.md).

        `async with app.testing() as test:`, then `await test.run_pending()`; or `with app.testing() as test:`, then
        `test.blocking.run_pending()`. `now` is what the clock shows at the beginning.
        """
        _refuse_windows()
        from shiftwork.app.bench import Trial, starting_at

        return Trial(self._tested(starting_at(now)))

    @contextmanager
    def _tested(self, clock: "ManualClock") -> "Iterator[Bench]":
        from shiftwork.app.bench import Bench
        from shiftwork.store.memory import MemoryStore

        if self._state != "stopped" or self._bench is not None:
            doing = self._state if self._bench is None else "being tested already"
            message = f"the app is {doing}: it can be tested once at a time, and while it does not run"
            raise LifecycleError(message)
        before = self._clock, self._registered, self._settings, self.control, self._triggering
        self._compose(MemoryStore(), clock, self._registered.with_own_states(), self._settings.driven(), again=None)
        self._bench = Bench(
            clock,
            self.control,
            self._registered,
            hooks=self._hooks,
            surroundings=self._surroundings,
            new_node=self._new_driven_node,
        )
        try:
            yield self._bench
        finally:
            self.control.portal.close()
            self._clock, self._registered, self._settings, self.control, self._triggering = before
            self._bench = None

    def _new_driven_node(self, hooks: JobListeners) -> "Node":
        return self._new_node(self._registrations.complete(), self._settings, hooks=hooks)

    # ── running here ─────────────────────────────────────────────────────────────────────────────────────────────

    async def trigger_worker(self, /, name: str, *, timeout_seconds: Duration | None = None, **payload: Any) -> bool:
        """Run a worker now and return when that run has ended, with its retries.

        False, with the reason in the log: it is unknown, disabled or already running, a dependency of it cannot be met,
        or it has not ended within `timeout_seconds`. A TRIGGERED worker runs beside itself if it is given arguments.
        Where no process serves it, it runs here.
        """
        return await self._triggering.trigger(name, payload, timeout_of(timeout_seconds))

    def get_status(self) -> dict[str, Any]:
        """Return what this process knows, without asking the store."""
        from shiftwork.app.status import status_of

        runs = [(run.job.worker, run.started_at) for engine in self._engines() for run in engine.runs.values()]
        known = () if self._node is None else self._node.reporter.retrying
        retrying = {name for name in self._registered.workers if name in known}
        changes = {} if self._node is None else self._node.rescheduled
        return status_of(
            self._state, self._registered, runs=runs, retrying=retrying, changes=changes, now=self._clock.now()
        )

    def _strays(self) -> Mapping[str, int]:
        return self._node.strays() if self._node is not None else {}

    def _engines(self) -> "Collection[Engine]":
        return self._node.engines if self._node is not None else ()

    async def auto_scale(self) -> dict[str, dict[str, Any]]:
        """Decide now how many slots each pool should have, and write it down; the nodes follow it."""
        from shiftwork.views.pool_entries import scaling_entry

        running = self._node if self._state == "running" else None
        planned = await (self.control.pools.plan() if running is None else running.plan())
        return {name: scaling_entry(decision, seen) for name, (decision, seen) in planned.decisions.items()}

    async def recover_stuck_jobs(self) -> int:
        """Take back the jobs of processes that are gone, without waiting for the leader; return how many."""
        await self.control.store.open()
        if self._node is not None and self._state == "running":
            return await self._node.leader.recover()
        visitor = self._new_visitor(Registry(self._registered.workers, {}, {}))
        await visitor.start()
        try:
            return await visitor.leader.recover()
        finally:
            await visitor.stop(0.0)

    # ── commands and questions, all of them control's ────────────────────────────────────────────────────────────

    async def enqueue_many(self, calls: Sequence[Call[R]]) -> list[Job[R]]:
        """Add many jobs in one step: all of them, or none."""
        return await self.control.submission.submit(calls)

    @overload
    async def enqueue_flow(self, call: Call[R], /) -> Flow[R]: ...

    @overload
    async def enqueue_flow(self, *calls: Call[Any]) -> Flow[tuple[Any, ...]]: ...

    async def enqueue_flow(self, *calls: Call[Any]) -> Flow[Any]:
        """Add these calls and all the calls that they need, in one step: all of them, or none."""
        return await self.control.flows.enqueue(calls)

    async def get_flow(self, flow_id: str) -> Flow[Any]:
        """Return a flow by its id. Raises `FlowError` if it does not exist."""
        return await self.control.flows.get(flow_id)

    async def find_flows(self, *, limit: int = 100) -> list[FlowRecord]:
        """Return the newest flows, each with its id, when it was added, and how many of its jobs have which status."""
        return await self.control.flows.newest(limit=limit)

    async def send(self, job_id: str, name: str, value: Any = None) -> None:
        """Send a value to a job whose function waits for it, or will, with `ctx.wait_for(name)`."""
        await self.control.jobs.send(job_id, name, value)

    async def get_job(self, job_id: str) -> Job[Any]:
        """Return a job by its id, whole. Raises `UnknownJobError`."""
        return await self.control.jobs.get(job_id)

    async def find_jobs(self, **wanted: Unpack[JobSearch]) -> list[Job[Any]]:
        """Return jobs, newest first, by status, worker, pool, key, unique_key, a part of the error, or creation time.

        `created_after` and `created_before` bound the time. `limit` (100) and `after` (the last id of the page before)
        turn pages.
        """
        return await self.control.jobs.find(**wanted)

    async def explain_job(self, job_id: str) -> "Explanation":
        """Return why a job is not running, or how it ended, in words and as data."""
        return await self.control.jobs.explain(job_id)

    async def job_stack(self, job_id: str) -> "JobStack":
        """Return what a running job is doing now: its own stack first, then everything else in its process.

        Raises `JobStateError` if it is not running, and `NodeSilentError` if its node does not reply within 5 seconds.
        """
        return await self.control.jobs.stack(job_id)

    async def cancel_job(self, job_id: str) -> Job[Any]:
        """Cancel a waiting job, or ask a running one to stop."""
        return await self.control.jobs.cancel(job_id)

    async def retry_job(self, job_id: str, *, payload: Mapping[str, Any] | None = None) -> Job[Any]:
        """Queue a dead, cancelled, failed or scheduled job again, its counts at zero; `payload` replaces its own."""
        return await self.control.jobs.retry(job_id, payload=payload)

    async def discard_job(self, job_id: str) -> None:
        """Delete a job that has ended."""
        await self.control.jobs.discard(job_id)

    async def cancel_jobs(self, **wanted: Unpack[JobSelection]) -> int:
        """Cancel all jobs that match (see `find_jobs`), and return how many were."""
        return (await self.control.bulk.change("cancel", **wanted)).count

    async def retry_jobs(self, *, rate: str | None = None, **wanted: Unpack[JobSelection]) -> int:
        """Queue all jobs that match again, dead ones unless a status is given, and return how many were.

        `rate` spreads them over time, such as "10/s" or "600/m"; `group` means dead jobs that failed alike.
        """
        return (await self.control.bulk.change("retry", rate=rate, **wanted)).count

    async def discard_jobs(self, **wanted: Unpack[JobSelection]) -> int:
        """Delete all jobs that match, or a `group`, dead ones unless a status is given, and return how many were."""
        return (await self.control.bulk.change("discard", **wanted)).count

    async def workers(self) -> dict[str, WorkerConfig]:
        """Return every worker that this process or another one registered in this store."""
        return await self.control.workers.all()

    async def enable_worker(self, name: str) -> None:
        """Enable a worker everywhere, and reset its count of failures."""
        await self.control.workers.enable(name)

    async def disable_worker(self, name: str, reason: str = "disabled by hand") -> None:
        """Disable a worker everywhere: it does not start, and its queued jobs wait. Running jobs continue."""
        await self.control.workers.disable(name, reason)

    async def forget_worker(self, name: str) -> None:
        """Delete the definition, state and schedule of a worker that is gone for good. Its ended jobs stay.

        Raises `JobStateError`, with what to do first, while a live node, a stored schedule or a live job needs it.
        """
        await self.control.workers.forget(name)

    async def reschedule_worker(
        self,
        name: str,
        *,
        cron: str | None = None,
        interval_seconds: Duration | None = None,
        timezone: str | None = None,
        reset: bool = False,
    ) -> WorkerConfig:
        """Give a worker another schedule, for all nodes together, and return the worker with it.

        It wins over the one in the code until it is changed again. `reset` restores the one in the code. Without
        `timezone`, a cron expression is in the time zone that the worker was registered with.
        """
        return await self.control.workers.reschedule(
            name, cron=cron, interval_seconds=interval_seconds, timezone=timezone, reset=reset
        )

    async def put_schedule(
        self,
        name: str,
        call: Call[Any],
        *,
        cron: str | None = None,
        interval_seconds: Duration | None = None,
        timezone: str | None = None,
        catch_up: Literal["latest", "none", "all"] = "latest",
        overlap: Literal["skip", "allow"] = "skip",
    ) -> "ScheduleView":
        """Add the job of `call` at every fire time, or change the schedule of this name. It is kept in the store.

        `cron` is in `timezone` (UTC); `interval_seconds` counts from fire time to fire time. `catch_up` decides about
        fire times that were missed, `overlap` about a fire time at which the previous job of the schedule has not
        ended. A schedule that is put again with the same times goes on where it was.
        """
        return await self.control.schedules.put(
            name,
            call,
            cron=cron,
            interval_seconds=interval_seconds,
            timezone=timezone,
            catch_up=catch_up,
            overlap=overlap,
        )

    async def get_schedules(self, *, worker: str | None = None) -> "list[ScheduleView]":
        """Return every stored schedule, or those of one worker, by name, each with its next ten fire times."""
        return await self.control.schedules.all(worker=worker)

    async def pause_schedule(self, name: str) -> "ScheduleView":
        """Fire a schedule no more, until it is resumed. Jobs that it has added continue."""
        return await self.control.schedules.pause(name)

    async def resume_schedule(self, name: str) -> "ScheduleView":
        """Fire a paused schedule again. Its `catch_up` decides about the fire times that it has missed."""
        return await self.control.schedules.resume(name)

    async def delete_schedule(self, name: str) -> None:
        """Delete a schedule. Jobs that it has added continue."""
        await self.control.schedules.delete(name)

    async def run_schedule(self, name: str) -> Job[Any]:
        """Add a job of a schedule now, ahead of others, also while it is paused. Its fire times stay as they are."""
        return await self.control.schedules.run(name)

    def preview_schedule(
        self, *, cron: str | None = None, interval_seconds: Duration | None = None, timezone: str | None = None
    ) -> "SchedulePreview":
        """Return what a schedule means, in words and as the next ten fire times, without storing it."""
        return self.control.schedules.preview(cron=cron, interval_seconds=interval_seconds, timezone=timezone)

    async def pools(self) -> dict[str, PoolConfig]:
        """Return every pool that this process or another one registered in this store."""
        return await self.control.pools.all()

    async def pause_pool(self, name: str, reason: str | None = None) -> None:
        """Start no more jobs of a pool, anywhere. Running jobs continue."""
        await self.control.pools.pause(name, reason)

    async def resume_pool(self, name: str) -> None:
        """Start jobs of a paused pool again."""
        await self.control.pools.resume(name)

    async def scale_pool(
        self, name: str, min_workers: int | None = None, max_workers: int | None = None, *, reset: bool = False
    ) -> PoolConfig:
        """Set a pool's bounds, one or both, for all nodes together, and return the pool with its new bounds.

        They hold until they are changed again. `reset` first restores the bounds that the pool was registered with.
        """
        return await self.control.pools.scale(name, min_workers, max_workers, reset=reset)

    async def get_pool_dashboard(self) -> dict[str, dict[str, Any]]:
        """Return every pool with its instances and its numbers."""
        return await self.control.pools.dashboard()

    async def nodes(self) -> "list[NodeView]":
        """Return every live node: what it has, what it runs, whether it is drained."""
        return await self.control.nodes.all()

    async def drain_node(self, name: str, reason: str | None = None) -> "NodeView":
        """Give a node no more work: its workers finish what they run, and the node stays, empty, until that is undone.

        A prefix of its name is enough, if no other node has it.
        """
        return await self.control.nodes.drain(name, reason)

    async def undrain_node(self, name: str) -> "NodeView":
        """Give a drained node work again."""
        return await self.control.nodes.undrain(name)

    async def get_health(self) -> dict[str, Any]:
        """Return what is wrong now, with the remedy: `{"status": "ok"|"degraded"|"failing", "problems": [...]}`."""
        health: dict[str, Any] = to_builtins(await self.control.system.health())
        return health

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """Return what happened, newest last: the newest events numbered above `after` and below `before`."""
        return await self.control.system.events(after, limit, before=before)

    async def check(self) -> "dict[str, Finding]":
        """Return the store's real settings, its latency, and whether its clock agrees with ours."""
        return await self.control.doctor.check()

    # ── the web ───────────────────────────────────────────────────────────────────────────────────────────────────

    def asgi(self, *, trust_loopback: bool = True, identify: "Identify | None" = None) -> "Api":
        """Return the HTTP API and the dashboard, to mount in your own ASGI application (needs `shiftwork[web]`).

        `identify` takes the ASGI scope and returns the visitor that your application has authenticated, or None. A
        request without a visitor needs a token, unless it comes from localhost (`trust_loopback`).
        """
        try:
            from shiftwork.web.api import Api
            from shiftwork.web.site import Site
        except ModuleNotFoundError as error:
            message = f"app.asgi() needs {error.name}: pip install 'shiftwork[web]'"
            raise ConfigurationError(message) from None
        return Api(Site(self.control, trust_loopback=trust_loopback, identify=identify))


class BlockingOrchestrator(BlockingCalls):
    """The coroutines of an orchestrator as plain calls. Each works from any thread, and in a forked process.

    They run on the orchestrator's event loop while it runs, and otherwise on one in a thread of its own.
    """

    def __init__(self, orchestrator: WorkerOrchestrator) -> None:
        super().__init__(orchestrator)
        self._orchestrator = orchestrator

    start = blocking(WorkerOrchestrator.start)
    trigger_worker = blocking(WorkerOrchestrator.trigger_worker)
    auto_scale = blocking(WorkerOrchestrator.auto_scale)
    recover_stuck_jobs = blocking(WorkerOrchestrator.recover_stuck_jobs)
    get_job = blocking(WorkerOrchestrator.get_job)
    find_jobs = blocking(WorkerOrchestrator.find_jobs)
    explain_job = blocking(WorkerOrchestrator.explain_job)
    job_stack = blocking(WorkerOrchestrator.job_stack)
    cancel_job = blocking(WorkerOrchestrator.cancel_job)
    retry_job = blocking(WorkerOrchestrator.retry_job)
    discard_job = blocking(WorkerOrchestrator.discard_job)
    cancel_jobs = blocking(WorkerOrchestrator.cancel_jobs)
    retry_jobs = blocking(WorkerOrchestrator.retry_jobs)
    discard_jobs = blocking(WorkerOrchestrator.discard_jobs)
    workers = blocking(WorkerOrchestrator.workers)
    enable_worker = blocking(WorkerOrchestrator.enable_worker)
    disable_worker = blocking(WorkerOrchestrator.disable_worker)
    forget_worker = blocking(WorkerOrchestrator.forget_worker)
    reschedule_worker = blocking(WorkerOrchestrator.reschedule_worker)
    put_schedule = blocking(WorkerOrchestrator.put_schedule)
    get_schedules = blocking(WorkerOrchestrator.get_schedules)
    pause_schedule = blocking(WorkerOrchestrator.pause_schedule)
    resume_schedule = blocking(WorkerOrchestrator.resume_schedule)
    delete_schedule = blocking(WorkerOrchestrator.delete_schedule)
    run_schedule = blocking(WorkerOrchestrator.run_schedule)
    pools = blocking(WorkerOrchestrator.pools)
    pause_pool = blocking(WorkerOrchestrator.pause_pool)
    resume_pool = blocking(WorkerOrchestrator.resume_pool)
    scale_pool = blocking(WorkerOrchestrator.scale_pool)
    get_pool_dashboard = blocking(WorkerOrchestrator.get_pool_dashboard)
    nodes = blocking(WorkerOrchestrator.nodes)
    drain_node = blocking(WorkerOrchestrator.drain_node)
    undrain_node = blocking(WorkerOrchestrator.undrain_node)
    get_health = blocking(WorkerOrchestrator.get_health)
    events = blocking(WorkerOrchestrator.events)
    check = blocking(WorkerOrchestrator.check)

    get_flow = blocking(WorkerOrchestrator.get_flow)
    find_flows = blocking(WorkerOrchestrator.find_flows)
    send = blocking(WorkerOrchestrator.send)

    @overload
    def enqueue_flow(self, call: Call[R], /) -> Flow[R]: ...

    @overload
    def enqueue_flow(self, *calls: Call[Any]) -> Flow[tuple[Any, ...]]: ...

    def enqueue_flow(self, *calls: Call[Any]) -> Flow[Any]:
        """Add these calls and all the calls that they need, in one step: all of them, or none."""
        portal = self._orchestrator.control.portal
        return portal.call(lambda: self._orchestrator.control.flows.enqueue(calls), "await app.enqueue_flow(…)")

    def enqueue_many(self, calls: Sequence[Call[R]]) -> list[Job[R]]:
        """Add many jobs in one step: all of them, or none."""
        portal = self._orchestrator.control.portal
        return portal.call(lambda: self._orchestrator.enqueue_many(calls), "await app.enqueue_many(…)")

    def stop(self, timeout_seconds: Duration = STOP_SECONDS) -> None:
        """Stop claiming, let running work finish within the timeout, and hand back the rest uncounted."""
        portal = self._orchestrator.control.portal
        portal.call(lambda: self._orchestrator.stop(timeout_seconds), "await app.stop()")
        portal.close()

    def close(self) -> None:
        """Close the store, in a process that only asks or enqueues, and end the thread that did so."""
        portal = self._orchestrator.control.portal
        portal.call(self._orchestrator.close, "await app.close()")
        portal.close()

    def run(self, *, stop_timeout_seconds: Duration = STOP_SECONDS) -> None:
        """Start, wait for SIGTERM or SIGINT, then stop: in this thread, which must be the main one."""
        refuse_on_a_loop("await app.run()")
        run(self._orchestrator.run(stop_timeout_seconds=stop_timeout_seconds))


def _refuse_windows() -> None:
    if sys.platform == "win32":
        raise LifecycleError("jobs run on Linux and macOS only; a process on Windows can enqueue and control them")
