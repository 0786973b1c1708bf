"""The orchestrator: what people hold in their hands.

It decides nothing itself: rules are in `core`, running is in `runtime`, what needs only the store is in `client`.
"""

import asyncio
import logging
import sys
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Final, Literal, ParamSpec, TypeVar, overload

from msgspec.structs import replace

from shiftwork.app.decorators import TaskDecorator, checked, name_of, nameless
from shiftwork.app.registration import check_in_place, import_name
from shiftwork.control.bulk import Action
from shiftwork.control.client import Client
from shiftwork.control.operations import decision_dict
from shiftwork.core.model import (
    PoolConfig,
    WorkerConfig,
    WorkerState,
)
from shiftwork.errors import ConfigurationError, LifecycleError, nearest
from shiftwork.events import AnyHook, Hooks
from shiftwork.handles.worker import Call, Worker
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.context import Context
from shiftwork.runtime.engine.engine import Engine
from shiftwork.runtime.engine.registry import Registry, publish
from shiftwork.runtime.leader.planner import Planner
from shiftwork.runtime.node.health_monitor import LOOK_SECONDS, HealthMonitor
from shiftwork.runtime.node.node import Node
from shiftwork.runtime.node.settings import Settings
from shiftwork.runtime.processes.messages import Definition, Setup
from shiftwork.runtime.signals import stop_signals
from shiftwork.store.protocol import Store
from shiftwork.transfer.move_record import refuse_to_change

if TYPE_CHECKING:
    from shiftwork.web.access import Identify
    from shiftwork.web.api import Api

logger: Final = logging.getLogger("shiftwork")

STOP_SECONDS: Final = 30.0
"""How long running work may take to finish when the orchestrator stops."""

_DONE: Final[Mapping[Action, str]] = {"cancel": "cancelled", "retry": "retried", "discard": "discarded"}

P = ParamSpec("P")
R = TypeVar("R")


class WorkerOrchestrator(Client):
    """Registers workers and pools, runs them here, and answers for them from any process that reaches the store.

    `store` is a URL (`sqlite:///relative.db`, `sqlite:////absolute.db`, `memory://`) or a store.
    `max_concurrent` is the size of the default pool. `tick_interval` is the longest sleep, not the resolution.
    `lease_seconds` is how long the jobs of a process that vanished stay its own.
    """

    def __init__(
        self,
        store: str | Store = "sqlite:///shiftwork.db",
        *,
        namespace: str = "default",
        tick_interval: float = 5.0,
        max_concurrent: int = 5,
        enable_health_checks: bool = True,
        lease_seconds: float = 15.0,
        max_payload_bytes: int = 1_048_576,
        clock: Clock | None = None,
    ) -> None:
        super().__init__(
            store,
            namespace=namespace,
            max_concurrent=max_concurrent,
            lease_seconds=lease_seconds,
            max_payload_bytes=max_payload_bytes,
            clock=clock,
        )
        self._settings = Settings(
            tick_interval=tick_interval,
            lease_seconds=lease_seconds,
            health_checks=enable_health_checks,
            pulse_in_thread=clock is None,
            namespace=namespace if isinstance(store, str) else "",
        )
        self._starting: asyncio.Event | None = None
        self._triggering: set[str] = set()
        self._node: Node | None = None
        self._state: Literal["stopped", "running", "stopping"] = "stopped"

    # ── registration ─────────────────────────────────────────────────────────────────────────────────────────────

    def register_worker(self, name: str, function: Callable[..., Any], **options: Any) -> Worker[..., Any]:
        """Register a function under a name. Without a schedule it is SCHEDULED, every 300 seconds."""
        self._refuse_while_running(f"worker {name}")
        return self._registered.add_worker(name, function, options, {})

    @overload
    def worker(self, function: Callable[..., Any], /) -> Worker[..., Any]: ...

    @overload
    def worker(self, /, **options: Any) -> Callable[[Callable[..., Any]], Worker[..., Any]]: ...

    def worker(
        self, function: Callable[..., Any] | None = None, /, **options: Any
    ) -> Worker[..., Any] | Callable[[Callable[..., Any]], Worker[..., Any]]:
        """Register the decorated function, SCHEDULED unless it says otherwise. `name` is the function's by default.

        Without options the parentheses may be left out.
        """

        def decorate(function: Callable[..., Any]) -> Worker[..., Any]:
            return self.register_worker(name_of(function, options), function, **nameless(options))

        return decorate if function is None else decorate(checked("worker", function))

    @overload
    def task(self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /) -> Worker[P, R]: ...

    @overload
    def task(self, function: Callable[Concatenate[Context, P], R], /) -> Worker[P, R]: ...

    @overload
    def task(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> Worker[P, R]: ...

    @overload
    def task(self, function: Callable[P, R], /) -> Worker[P, R]: ...

    @overload
    def task(self, /, **options: Any) -> TaskDecorator: ...

    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> TaskDecorator | Worker[Any, Any]:
        """Register the decorated function as a TRIGGERED worker, whose parameters are its payload.

        Without options the parentheses may be left out.
        """
        decorator = TaskDecorator(self._add_task, options)
        return decorator if function is None else decorator(checked("task", function))

    def _add_task(self, function: Callable[..., Any], options: Mapping[str, Any]) -> Worker[Any, Any]:
        name = name_of(function, options)
        self._refuse_while_running(f"worker {name}")
        defaults = {"execution_mode": "triggered", "max_consecutive_failures": None}
        return self._registered.add_worker(name, function, nameless(options), defaults)

    def register_pool(self, name: str, **options: Any) -> PoolConfig:
        """Register a pool. Workers name it in their `pool` option."""
        self._refuse_while_running(f"pool {name}")
        return self._registered.add_pool(name, options)

    @overload
    def on(self, event: str) -> Callable[[AnyHook], AnyHook]: ...

    @overload
    def on(self, event: str, hook: AnyHook) -> AnyHook: ...

    def on(self, event: str, hook: AnyHook | None = None) -> AnyHook | Callable[[AnyHook], AnyHook]:
        """Call a function, plain or async, on every event of this name that happens in this process ("*": any)."""
        if callable(event):
            raise ConfigurationError('@app.on names an event: @app.on("job.dead"), or @app.on("*") for all of them')
        if hook is not None:
            self._hooks.add(event, hook)
            return hook

        def decorate(hook: AnyHook) -> AnyHook:
            self._hooks.add(event, hook)
            return hook

        return decorate

    def alert(self, url: str, *, events: Sequence[str], secret: str) -> None:
        """Post these events ("*": all) as JSON to an address, signed with the secret, again until it is accepted.

        It takes about a minute until an address that does not answer is given up on. Nothing waits for it.
        """
        from shiftwork.app.alerts import Alert  # noqa: PLC0415 - it brings an HTTP client

        if isinstance(events, str) or not events:
            message = f'app.alert wants a list of events: events=["job.dead", "health.problem"], not {events!r}'
            raise ConfigurationError(message)
        told = Alert(url, secret)
        for event in dict.fromkeys(events):
            self._hooks.add(event, told)

    def registered(self) -> tuple[dict[str, WorkerConfig], dict[str, PoolConfig]]:
        """The workers and pools registered here, checked all together as `start` does; the store is not asked."""
        registry = self._registered.complete()
        return {name: worker.config for name, worker in self._registered.workers.items()}, dict(registry.pools)

    def _refuse_while_running(self, what: str) -> None:
        if self._state != "stopped":
            message = f"{what} cannot be registered while the orchestrator is {self._state}; stop it first"
            raise LifecycleError(message)

    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Run everything that is registered, in this process, on this event loop."""
        if self._state != "stopped":
            message = f"the orchestrator is {self._state} already"
            raise LifecycleError(message)
        registry = self._registered.complete()
        check_in_place(registry.pools.values())
        self._state = "running"  # from here on a second start is refused
        self._starting = asyncio.Event()
        try:
            await self._start(registry)
        finally:
            self._starting.set()
            self._starting = None

    async def _start(self, registry: Registry) -> None:
        try:
            await self._store.open()
            await refuse_to_change(self._store)
            node = self._new_node(registry, self._settings, self._setup(registry))
            if self._settings.health_checks:
                monitor = HealthMonitor(self._judge_health, node.reporter.emit, self.now, lambda: node.leader.leading)
                node.add_duty("health", monitor.poll, every=LOOK_SECONDS)
            await node.start()
        except BaseException:
            self._state = "stopped"
            await self._close_store()
            raise
        self._node = node
        self._loop = asyncio.get_running_loop()

    async def stop(self, timeout_seconds: float = STOP_SECONDS) -> None:
        """Stop claiming, let running work finish for so long, hand back the rest uncounted. A second call hurries."""
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
        node = self._node  # ours is forgotten before the store is closed
        ending = asyncio.ensure_future(self._end(node, timeout_seconds))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Half a stop would leave leases that nobody lets go of: end what runs, and see it through.
            node.hurry()
            await asyncio.wait([ending])
            raise

    async def _end(self, node: Node, timeout_seconds: float) -> None:
        try:
            await node.stop(timeout_seconds)
        finally:
            self._state = "stopped"
            self._node = None
            self._loop = None
            self._portal.close()
            await self._close_store()

    def _refuse_inside_a_job(self) -> None:
        task = asyncio.current_task()
        if any(run.task is task for engine in self._engines() for run in engine.runs.values()):
            message = "a job cannot wait for the stop that waits for it; start the stop as a task of its own instead"
            raise LifecycleError(message)

    async def run(self, *, stop_timeout_seconds: float = STOP_SECONDS) -> None:
        """Start, go on until SIGTERM or SIGINT, stop. A second signal means now."""
        # Before the start: a signal that came during it would leave leases behind.
        with stop_signals(self._hurry, patience=stop_timeout_seconds) as signalled:
            await self.start()
            await signalled.wait()
            await self.stop(stop_timeout_seconds)

    def _hurry(self) -> None:
        if self._node is not None:
            self._node.hurry()

    async def close(self) -> None:
        """Let go of the store, in a process that only asks or enqueues. `stop` does it for one that runs workers."""
        if self._state != "stopped":
            message = f"the store is in use: the orchestrator is {self._state}; stop it, which closes the store too"
            raise LifecycleError(message)
        await self._hooks.drain()
        self._portal.close()
        await self._close_store()

    def _new_node(self, registry: Registry, settings: Settings, setup: Setup | None = None) -> Node:
        return Node(
            registry,
            store=self._store,
            clock=self._clock,
            hooks=self._hooks,
            states=self._states,
            settings=settings,
            setup=setup,
        )

    # ── processes ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def hooks(self) -> Hooks:
        """Who wants to hear of events."""
        return self._hooks

    def callees(self) -> Mapping[str, Worker[Any, Any]]:
        """The workers, ready to be run."""
        self._registered.complete()
        return self._registered.workers

    def definition(self) -> Definition:
        """All that a node must know of this app in order to run it without importing it."""
        if self._url is None:
            message = (
                "shiftwork run needs an orchestrator whose store is given as a URL, so that others can open it too"
            )
            raise ConfigurationError(message)
        registry = self._registered.complete()
        return Definition(
            store=self._url,
            namespace=self._namespace,
            tick_interval=self._settings.tick_interval,
            lease_seconds=self._settings.lease_seconds,
            health_checks=self._settings.health_checks,
            workers=[worker.config for worker in registry.workers.values()],
            pools=list(registry.pools.values()),
            gates=dict(registry.gates),
            schemas={name: worker.schema for name, worker in registry.workers.items() if worker.schema},
            hooks=bool(self._hooks),
        )

    def _setup(self, registry: Registry) -> Setup | None:
        """What the processes of process pools are told; None if there are none."""
        apart = [pool.name for pool in registry.pools.values() if pool.kind == "process"]
        if not apart:
            return None
        return Setup(
            app=import_name(self, apart[0]),
            role="alone",
            now=self.now(),
            path=sys.path,
            log_level=logging.getLevelName(logging.getLogger().level).lower() if logging.getLogger().handlers else None,
        )

    # ── running here ─────────────────────────────────────────────────────────────────────────────────────────────

    async def trigger_worker(self, name: str, **payload: Any) -> bool:
        """Run a worker now and return when that run has ended. False if it is unknown, disabled or already running.

        Where no process serves it, it is run here.
        """
        worker = self._registered.workers.get(name)
        if worker is None:
            logger.warning("there is no worker %r to trigger: %s", name, nearest(name, self._registered.workers))
            return False
        if name in self._triggering:
            logger.warning("worker %s is not triggered: it has just been", name)
            return False
        self._triggering.add(name)
        try:
            return await self._trigger(worker, payload)
        finally:
            self._triggering.discard(name)

    async def _trigger(self, worker: Worker[Any, Any], payload: Mapping[str, Any]) -> bool:
        store, name = await self.store(), worker.name
        facts = await store.survey([name], self.now())
        lane = facts.lanes.get(name)
        if lane is not None and (lane.running or not lane.state.enabled):
            why = "already running" if lane.running else f"disabled: {lane.state.reason}"
            logger.warning("worker %s is not triggered: it is %s", name, why)
            return False
        call = worker.triggered().call(**payload)
        if not await self._operations.is_served(name, worker.config.pool):
            return await self._run_here(worker, call)
        await (await self.submit([call]))[0].ended()
        await self._refresh()
        return True

    async def _run_here(self, worker: Worker[Any, Any], call: Call[Any]) -> bool:
        everything = self._registered.complete()
        await self._store_to_change()
        await publish(everything, self._store)
        why = await self._operations.stuck(worker.name)
        if why is not None:
            logger.warning("worker %s is not triggered: %s", worker.name, why)
            return False
        pool = worker.config.pool
        one = replace(everything.pools[pool], min_workers=1, max_workers=1)
        visitor = self._new_node(
            Registry({worker.name: worker}, {pool: one}, everything.gates, {worker.name: worker}),
            self._settings.visitor(),
        )
        job = (await self.submit([call]))[0]
        await visitor.start()
        try:
            await job.ended()
        finally:
            # Should it have gone on to the worker's next job meanwhile, that one may finish.
            await visitor.stop(STOP_SECONDS)
        await self._refresh()
        return True

    def get_status(self) -> dict[str, Any]:
        """What this process knows, without asking the store."""
        started = [(run.job.worker, run.started_at) for engine in self._engines() for run in engine.runs.values()]
        for name, at in started:
            state = self._states.setdefault(name, WorkerState(worker=name))
            state.last_started = max(state.last_started or 0.0, at)
        running = Counter(name for name, _ in started)
        return {
            "state": self._state,
            "workers": len(self._registered.workers),
            "running": running.total(),
            "worker_states": {name: self._worker_status(name, running[name]) for name in self._registered.workers},
        }

    def _worker_status(self, name: str, running: int) -> dict[str, Any]:
        state = self._states.get(name) or WorkerState(worker=name)
        return {
            "enabled": state.enabled,
            "running": running > 0,
            "failures": state.failures,
            "last_run": state.last_started,
            "last_success": state.last_success,
            "last_error": state.last_error,
        }

    def _strays(self) -> Mapping[str, int]:
        return self._node.strays() if self._node is not None else {}

    def _engines(self) -> Collection[Engine]:
        return self._node.engines if self._node is not None else ()

    async def auto_scale(self) -> dict[str, dict[str, Any]]:
        """Decide now how many workers each pool should have, and write it down; the nodes keep to it."""
        await self.store()
        if self._node is not None and self._state == "running":
            planned = await self._node.plan()
        else:
            planned = await Planner(await self.pools(), self._registered.workers, self._store, self._clock).plan()
            for event in planned.events:
                self._hooks.fire(event)
            await self._store.record(planned.events)
        return {name: decision_dict(decision, seen) for name, (decision, seen) in planned.decisions.items()}

    async def recover_stuck_jobs(self) -> int:
        """Take back the jobs of processes that are gone, not waiting for the leader's next look. Answers how many."""
        await self.store()
        if self._node is not None and self._state == "running":
            return await self._node.leader.recover()
        visitor = self._new_node(Registry(self._registered.workers, {}, {}), self._settings.visitor())
        await visitor.start()
        try:
            return await visitor.leader.recover()
        finally:
            await visitor.stop(0.0)

    def asgi(self, *, trust_loopback: bool = True, identify: "Identify | None" = None) -> "Api":
        """The HTTP API and the dashboard, to be mounted in an ASGI application of your own (needs `shiftwork[web]`).

        `identify` says, from the ASGI scope, who asks: whom your application has let in already. None is a stranger,
        who needs a token, unless at this very machine (`trust_loopback`).
        """
        try:
            from shiftwork.web.api import Api  # noqa: PLC0415 - an extra
            from shiftwork.web.site import Site  # noqa: PLC0415
        except ModuleNotFoundError as error:
            message = f"app.asgi() needs {error.name}: pip install 'shiftwork[web]'"
            raise ConfigurationError(message) from None
        return Api(Site(self, trust_loopback=trust_loopback, identify=identify))
