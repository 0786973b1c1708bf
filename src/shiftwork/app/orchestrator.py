"""The orchestrator: what people hold. It registers, starts and stops, and composes the parts that do the work.

Rules are in `core`, running is in `runtime`, commands and questions are in `control`.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from shiftwork.app.commands import OrchestratorCommands
from shiftwork.app.composition import Composition
from shiftwork.app.declarations import OrchestratorDeclarations
from shiftwork.app.deployment import Deployment
from shiftwork.app.lifecycle import Lifecycle, refuse_windows
from shiftwork.app.registration import Registrations, default_pool
from shiftwork.control.definitions import LocalRegistry
from shiftwork.control.environment import DEFAULT_NAMESPACE, default_store, namespace_of_app
from shiftwork.core.model.option_structs import option_hint
from shiftwork.core.values.job_limits import MAX_PAYLOAD_BYTES
from shiftwork.core.words import Duration, seconds_of, timeout_of
from shiftwork.errors import ConfigurationError, LifecycleError, UnknownOptionError
from shiftwork.events import Hooks
from shiftwork.handles.unawaited import report_forgotten
from shiftwork.history.opening import opening_again, store_of
from shiftwork.runtime.clock import Clock, SystemClock
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.node.node_settings import NodeSettings
from shiftwork.runtime.node.stopping import stop_signals
from shiftwork.runtime.registry import Registry
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import EncryptionKeys, find_keys

if TYPE_CHECKING:
    from shiftwork.app.blocking import BlockingOrchestrator
    from shiftwork.app.served_app import ServedApp
    from shiftwork.app.testing import Bench, Trial
    from shiftwork.control.control import Control
    from shiftwork.runtime.clock import ManualClock
    from shiftwork.runtime.node.node import Node
    from shiftwork.web.access import Identify
    from shiftwork.web.api import Api

Init = TypeVar("Init", bound=Callable[..., None])

BY_PLACE: Final = ("tick_interval", "max_concurrent", "enable_health_checks")
"""The arguments that the pattern passes by position."""
APP_STOP_SECONDS: Final = 30.0
"""How long running work may take to finish when the orchestrator stops."""


def explained(init: Init) -> Init:
    """Raise a `ConfigurationError` that names the remedy where Python would raise a `TypeError`."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: object, *args: Any, **kwargs: Any) -> None:
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            hint = option_hint(unknown[0], kwargs[unknown[0]], known)
            message = f"WorkerOrchestrator has no option {unknown[0]!r}: {hint}"
            raise UnknownOptionError(message)
        if args and isinstance(args[0], Mapping):
            message = "WorkerOrchestrator takes its options by name, not as a dict: WorkerOrchestrator(**options)"
            raise ConfigurationError(message)
        if len(args) > 1:
            message = f"WorkerOrchestrator takes its options by name: {_by_name(args)}"
            raise ConfigurationError(message)
        init(self, *args, **kwargs)

    return cast("Init", checked)


def _by_name(args: tuple[Any, ...]) -> str:
    """Return the call as it should be written."""
    numbers_first = isinstance(args[0], int | float)
    store, options = ([], args) if numbers_first else ([f'"{args[0]}"' if isinstance(args[0], str) else "…"], args[1:])
    one = None if numbers_first or len(options) > 1 else options[0]
    names = ("namespace",) if isinstance(one, str) else ("max_concurrent",) if isinstance(one, int) else BY_PLACE
    written = [f"{name}={value!r}" for name, value in zip(names, options, strict=False)]
    return f"WorkerOrchestrator({', '.join([*store, *written])})"


@report_forgotten("app", "app.blocking.{name}(…)")
class WorkerOrchestrator(OrchestratorDeclarations, OrchestratorCommands):
    """Registers workers and pools, runs them here, and controls them from any process that reaches the store.

    `store` is a URL (`sqlite:///relative.db`, `sqlite:////absolute.db`, `memory://`) or a store. Without
    one it is `SHIFTWORK_STORE` of the environment, or else `sqlite:///shiftwork.db`; the default namespace is likewise
    `SHIFTWORK_NAMESPACE`, or else "default".
    `max_concurrent` is the size of the default pool. `tick_interval` is the longest sleep, not the resolution.
    `lease_seconds` is how long the jobs of a process that vanished stay its own. `encryption_keys` are the keys that
    encrypt what jobs carry (docs/encryption.md); by default those of the environment, and with () none.
    """

    @explained
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
        self._middleware = Middleware()
        self._lifecycle = Lifecycle(self._middleware, self._hooks)
        self._deployment = Deployment()
        self._bench: Bench | None = None
        settings = NodeSettings(
            tick_interval=seconds_of("tick_interval", tick_interval),
            lease_seconds=seconds_of("lease_seconds", lease_seconds),
            health_checks=enable_health_checks,
            pulse_in_thread=clock is None,
            namespace="" if self._url is None else self._namespace,
        )
        registered = LocalRegistry(default_pool(max_concurrent), max_payload_bytes)
        self._max_payload_bytes = max_payload_bytes
        self._registrations = Registrations(
            registered,
            self,
            self._middleware,
            serving=self._lifecycle.serving,
            max_payload_bytes=max_payload_bytes,
        )
        opened = store_of(store, namespace=self._namespace, keys=self._keys)
        again = opening_again(store, namespace=self._namespace, keys=self._keys)
        self._stand_on(self._composed(opened, clock or SystemClock(), registered, settings, again=again))

    def _composed(
        self,
        store: Store,
        clock: Clock,
        registered: LocalRegistry,
        settings: NodeSettings,
        *,
        again: Callable[[], Store] | None = None,
    ) -> Composition:
        return Composition(
            store,
            clock,
            registered,
            settings,
            hooks=self._hooks,
            complete=self._registrations.complete,
            strays=self._lifecycle.strays,
            here=self._lifecycle.instances,
            again=again,
        )

    def _stand_on(self, composition: Composition) -> None:
        self._composition = composition
        self.control: Control = composition.control

    @property
    def blocking(self) -> "BlockingOrchestrator":
        """Return the coroutines of this orchestrator as plain calls, for code that has no event loop."""
        from shiftwork.app.blocking import BlockingOrchestrator

        return BlockingOrchestrator(self)

    # ── lifecycle ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        """Open the store, for a program that adds jobs and asks about them. It runs none unless it calls `start`."""
        await self.control.store.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop if it was started, and close the store."""
        await self.stop()
        await self.close()

    async def start(self) -> None:
        """Run all registered workers in this process, on this event loop. If they run already, nothing changes."""
        if self._bench is not None:
            raise LifecycleError("the app is being tested: instead of start(), await test.run_pending()")
        await self._lifecycle.start(self.control, self._registrations.complete, self._new_node)

    def _new_node(self, registry: Registry) -> "Node":
        from shiftwork.app.served_app import setup_of

        setup = setup_of(self, registry, max_payload_bytes=self._max_payload_bytes)
        node = self._composition.new_node(registry, setup)
        if self._composition.settings.health_checks:
            node.watch_health(self.control.system.health)
        return node

    async def stop(self, timeout_seconds: Duration = APP_STOP_SECONDS) -> None:
        """Stop claiming, let running work finish within the timeout, and hand back the rest uncounted.

        A second call ends what still runs.
        """
        await self._lifecycle.stop(self.control, seconds_of("timeout_seconds", timeout_seconds))

    async def run(self, *, stop_timeout_seconds: Duration = APP_STOP_SECONDS) -> None:
        """Start, wait for SIGTERM or SIGINT, then stop. A second signal ends what still runs."""
        patience = seconds_of("stop_timeout_seconds", stop_timeout_seconds)
        # Before the start: a signal during the start would leave leases behind.
        with stop_signals(self._lifecycle.hurry, patience=patience) as signalled:
            await self.start()
            await signalled.wait()
            await self.stop(patience)

    async def close(self) -> None:
        """Close the store, in a process that only asks or enqueues. `stop` closes it in one that runs workers."""
        if self._lifecycle.state != "stopped":
            message = (
                f"the store is in use: the orchestrator is {self._lifecycle.state}; stop it, which closes the store too"
            )
            raise LifecycleError(message)
        await self.control.close()

    async def deploy(self) -> list[str]:
        """Run the functions of `@app.on_deploy`, and return their names. It waits for other processes that deploy."""
        return await self._deployment.run(self.control)

    @property
    def served(self) -> "ServedApp":
        """Return what `shiftwork run` needs of this app, in the processes that import it."""
        from shiftwork.app.served_app import ServedApp

        return ServedApp(
            self._registrations.complete,
            self._hooks,
            self._middleware,
            self._composition.settings,
            url=self._url,
            namespace=self._namespace,
            max_payload_bytes=self._max_payload_bytes,
            encryption_keys=self._keys,
        )

    # ── testing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def testing(self, *, now: float | datetime | None = None) -> "Trial":
        """Use an empty store in memory and a manual clock until the `with` block ends (docs/testing.md).

        `async with app.testing() as test:`, then `await test.run_pending()`; or `with app.testing() as test:`, then
        `test.blocking.run_pending()`. `now` is what the clock shows at the beginning.
        """
        refuse_windows()
        from shiftwork.app.testing import Trial, starting_at

        return Trial(self._tested(starting_at(now)))

    @contextmanager
    def _tested(self, clock: "ManualClock") -> "Iterator[Bench]":
        from shiftwork.app.testing import Bench
        from shiftwork.store.memory import MemoryStore

        life = self._lifecycle.state
        if life != "stopped" or self._bench is not None:
            doing = life if self._bench is None else "being tested already"
            message = f"the app is {doing}: it can be tested once at a time, and while it does not run"
            raise LifecycleError(message)
        before = self._composition
        registered, settings = before.registered.with_own_states(), before.settings.driven()
        composition = self._composed(MemoryStore(), clock, registered, settings)
        self._stand_on(composition)
        self._bench = Bench(
            clock,
            composition.control,
            registered,
            hooks=self._hooks,
            middleware=self._middleware,
            new_node=lambda hooks: composition.new_node(self._registrations.complete(), hooks=hooks),
        )
        try:
            yield self._bench
        finally:
            composition.control.portal.close()
            self._stand_on(before)
            self._bench = None

    # ── running here ─────────────────────────────────────────────────────────────────────────────────────────────

    async def trigger_worker(self, /, name: str, *, timeout_seconds: Duration | None = None, **payload: Any) -> bool:
        """Run a worker now and return when that run has ended. If it failed, retries follow as its policy says.

        False, with the reason in the log: it is unknown, disabled or already running, a dependency of it cannot be met,
        or it has not ended within `timeout_seconds`. A TRIGGERED worker runs beside itself if it is given arguments.
        Where no process serves it, it runs here.
        """
        return await self._composition.triggering.trigger(name, payload, timeout_of(timeout_seconds))

    def get_status(self) -> dict[str, Any]:
        """Return what this process knows, without asking the store.

        `enabled` of a worker is None while that is unknown: before the start, no state has been read.
        """
        from shiftwork.app.local_status import status_of

        here, life = self._composition, self._lifecycle
        runs = [
            (run.job.worker, run.started_at)
            for instance in life.pool_instances
            for run in instance.runs.active.values()
        ]
        known = () if life.node is None else life.node.reporter.retrying
        retrying = {name for name in here.registered.workers if name in known}
        changes = {} if life.node is None else life.node.rescheduled
        return status_of(
            life.state, here.registered, runs=runs, retrying=retrying, changes=changes, now=here.clock.now()
        )

    async def auto_scale(self) -> dict[str, dict[str, Any]]:
        """Decide now how many slots each pool should have, and write it down; the nodes follow it."""
        from shiftwork.views.instances import scaling_entry

        node = self._running_node()
        planned = await (self.control.pools.plan() if node is None else node.plan())
        return {name: scaling_entry(decision, seen) for name, (decision, seen) in planned.decisions.items()}

    async def recover_stuck_jobs(self) -> int:
        """Take back the jobs of processes that are gone, without waiting for the leader; return how many."""
        await self.control.store.open()
        node = self._running_node()
        if node is not None:
            return await node.leader.recover()
        visitor = self._composition.new_visitor(Registry(self._composition.registered.workers, {}, {}))
        await visitor.start()
        try:
            return await visitor.leader.recover()
        finally:
            await visitor.stop(0.0)

    def _running_node(self) -> "Node | None":
        return self._lifecycle.node if self._lifecycle.state == "running" else None

    # ── the web ───────────────────────────────────────────────────────────────────────────────────────────────────

    def asgi(self, *, trust_loopback: bool = False, identify: "Identify | None" = None) -> "Api":
        """Return the HTTP API and the dashboard, to mount in your own ASGI application (needs `shiftwork[web]`).

        `identify` takes the ASGI scope and returns the visitor that your application has authenticated, or None. A
        request without a visitor needs a token. With `trust_loopback`, requests of the user who runs the server, and
        of root, from this machine need none: set it only where no proxy or forwarder is in front.
        """
        try:
            from shiftwork.web.api import Api
            from shiftwork.web.site import Site
        except ModuleNotFoundError as error:
            message = f"app.asgi() needs {error.name}: pip install 'shiftwork[web]'"
            raise ConfigurationError(message) from None
        return Api(Site(self.control, trust_loopback=trust_loopback, identify=identify))
