"""The orchestrator: what people hold. It registers, starts and stops, and composes the parts that do the work.

Rules are in `core`, running is in `runtime`, commands and questions are in `control`.
"""

import asyncio
import sys
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, Self, TypeVar, Unpack, overload

from shiftwork.app.commands import OrchestratorCommands
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
from shiftwork.control.environment import DEFAULT_NAMESPACE, default_store, namespace_of_app
from shiftwork.control.forking import begin_anew_when_forked, never_free
from shiftwork.control.registry import LocalRegistry
from shiftwork.core.durations import Duration, seconds_of, timeout_of
from shiftwork.core.model import PoolConfig, WorkerConfig
from shiftwork.core.option_types import NamedWorkerOptions, PoolOptions, WorkerOptions
from shiftwork.core.payload_limits import MAX_PAYLOAD_BYTES
from shiftwork.errors import ConfigurationError, LifecycleError
from shiftwork.events import AnyHook, Hooks, JobListeners
from shiftwork.handles.worker import Worker
from shiftwork.runtime.clock import Clock, SystemClock
from shiftwork.runtime.engine.context import Context
from shiftwork.runtime.engine.registry import Registry
from shiftwork.runtime.engine.surroundings import AroundJob, Lifespan, Surroundings
from shiftwork.runtime.node.settings import Settings
from shiftwork.runtime.signals import stop_signals
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.keys import EncryptionKeys, find_keys
from shiftwork.store.urls import opening_again, store_of

if TYPE_CHECKING:
    from shiftwork.app.alerts import AlertFormat
    from shiftwork.app.bench import Bench, Trial
    from shiftwork.app.blocking_orchestrator import BlockingOrchestrator
    from shiftwork.app.decorators import AsyncWorker, AsyncWorkerWithContext, PlainWorker, PlainWorkerWithContext
    from shiftwork.runtime.clock import ManualClock
    from shiftwork.runtime.engine.engine import Engine
    from shiftwork.runtime.node.node import Node
    from shiftwork.runtime.processes.messages import Definition, Setup
    from shiftwork.web.access import Identify
    from shiftwork.web.api import Api

STOP_SECONDS: Final = 30.0
"""How long running work may take to finish when the orchestrator stops."""

P = ParamSpec("P")
R = TypeVar("R")
AnyLifespan = TypeVar("AnyLifespan", bound=Lifespan)
AnyAround = TypeVar("AnyAround", bound=AroundJob)


class WorkerOrchestrator(OrchestratorCommands):
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
        self._url = store if isinstance(store, str) else None
        self._namespace = namespace_of_app(namespace)
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
            namespace="" if self._url is None else self._namespace,
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
        opened = store_of(store, namespace=self._namespace, keys=self._keys)
        again = opening_again(store, opened, namespace=self._namespace, keys=self._keys)
        self._compose(opened, clock or SystemClock(), registered, settings, again=again)
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
        self._triggering = Triggering(
            self.control, registered, complete=self._registrations.complete, new_visitor=self._new_visitor
        )

    def forked(self) -> None:
        """Run nothing, in a process that was just forked: whatever runs does so in the parent."""
        never_free((self._node, self._surroundings.forked()))
        self._node, self._state, self._starting = None, "stopped", None

    @property
    def blocking(self) -> "BlockingOrchestrator":
        """Return the coroutines of this orchestrator as plain calls, for code that has no event loop."""
        from shiftwork.app.blocking_orchestrator import BlockingOrchestrator

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
        from shiftwork.app.alerts import Alert, check_events

        check_events(events)
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

    async def __aenter__(self) -> Self:
        """Open the store, for a program that adds jobs and asks about them. It runs none unless it calls `start`."""
        await self.control.store.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop if it was started, and close the store."""
        await self.stop()
        await self.close()

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

        try:
            await self.control.store.open_to_change()
            setup = setup_of(self, registry, max_payload_bytes=self._max_payload_bytes)
            node = self._new_node(registry, self._settings, setup)
            if self._settings.health_checks:
                node.watch_health(self.control.system.health)
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


def _refuse_windows() -> None:
    if sys.platform == "win32":
        raise LifecycleError("jobs run on Linux and macOS only; a process on Windows can enqueue and control them")
