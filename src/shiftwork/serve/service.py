"""What `shiftwork run` runs: a node that never imports the app. The processes it starts do."""

import logging
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.control.control import Control
from shiftwork.core.health.health_values import Strays
from shiftwork.core.model.workers import WorkerConfig, WorkerState
from shiftwork.errors import ConfigurationError
from shiftwork.history.opening import open_store
from shiftwork.runtime.clock import SystemClock
from shiftwork.runtime.node.node import Node
from shiftwork.runtime.node.node_settings import NodeCondition, NodeSettings
from shiftwork.runtime.node.stopping import stop_signals
from shiftwork.runtime.processes.hook_process import HookProcess
from shiftwork.runtime.processes.messages import Definition, Setup
from shiftwork.runtime.registry import Registry
from shiftwork.serve.notify import Announcer, Notifier
from shiftwork.serve.process import end_in_time
from shiftwork.serve.web_messages import NodeReport, WebSetup
from shiftwork.serve.web_process import WebProcess
from shiftwork.store.protocol import Store
from shiftwork.web.listening import Listener, listen

if TYPE_CHECKING:
    from threading import Timer

__all__ = ["Definition", "Service", "Web", "shown"]

logger: Final = logging.getLogger("shiftwork")

HURRY_SECONDS: Final = 5.0
"""How long a node may take to end after a second signal; mostly it takes a moment."""
WEB_PACKAGES: Final = ("starlette", "uvicorn")
"""What the process that serves the dashboard imports, and the node never does."""


class Web(Struct, frozen=True, kw_only=True):
    """Where and how the dashboard is served."""

    host: str = "127.0.0.1"
    port: int = 8421
    demanded: bool = False
    """True if it was asked for; otherwise it is served only if it can be."""
    trust_loopback: bool = True
    """True if requests of our own user and of root, on this machine, need no token."""


class KnownWorker(Struct, gc=False):
    """A worker whose function runs in other processes."""

    config: WorkerConfig
    schema: bytes | None = None


class Service:
    """A node, from its start to its stop."""

    def __init__(
        self,
        app: str,
        *,
        log_level: str,
        log_format: str,
        log_runs: bool = False,
        labels: tuple[str, ...] = (),
        probe_file: Path | None = None,
        web: Web | None = None,
    ) -> None:
        self._setup = Setup(
            app=app,
            role="hooks",
            path=[str(Path.cwd()), *sys.path],
            log_level=log_level,
            log_format=log_format,
        )
        self._labels = labels
        self._log_runs = log_runs
        self._web = web
        self._started = False
        self._clock = SystemClock()
        self._hook_process = HookProcess(self._setup, self._clock)
        self._node: Node | None = None
        self._end: Timer | None = None
        """Ends the process, whatever hangs, some time after a second signal."""
        self._announcer = Announcer(Notifier.from_environment(), probe_file, self._condition)

    async def describe(self) -> Definition:
        """Return the definition of the app. Raises `AppImportError`."""
        definition = await self._hook_process.describe()
        if definition.store.startswith("memory:"):
            message = (
                f"{self._setup.app} keeps its state in {definition.store}, which other processes cannot see: "
                "shiftwork run needs sqlite:///…, redis://… or postgresql://…; in one process, await app.start()"
            )
            raise ConfigurationError(message)
        return definition

    async def run(self, definition: Definition, *, stop_timeout_seconds: float) -> None:
        """Run until SIGTERM or SIGINT, then stop. A second signal ends what still runs."""
        store = open_store(definition.store, namespace=definition.namespace, keys=definition.encryption_keys)
        control = Control(store, self._clock, strays=self._strays, lease_seconds=definition.lease_seconds)
        # Before the start: a signal during the start would leave leases behind.
        with stop_signals(self._hurry, patience=stop_timeout_seconds) as signalled:
            async with self._announcer as announcer:
                try:
                    await control.store.open_to_change()
                    node = self._node = self._compose(definition, store, control)
                    async with self._served(definition, control):
                        await node.start()
                        announcer.started()
                        self._started = True
                        await signalled.wait()
                        self._started = False
                        announcer.stopping()
                        await node.stop(stop_timeout_seconds)
                finally:
                    await self._hook_process.drain()
                    await control.close()
                    if self._end is not None:
                        self._end.cancel()

    @asynccontextmanager
    async def _served(self, definition: Definition, control: Control) -> AsyncIterator[None]:
        """Serve the web beside the node, if it is wanted and possible, until the node has stopped."""
        listener = None if self._web is None else await _listener(self._web)
        if listener is None or self._web is None:
            yield
            return
        others = "; other users and machines need a token: shiftwork token create"
        if not self._web.trust_loopback:
            others = "; every request needs a token: shiftwork token create"
        logger.info("the dashboard is at %s%s", listener.address(), others)
        setup = WebSetup(
            store=definition.store,
            namespace=definition.namespace,
            lease_seconds=definition.lease_seconds,
            host=listener.host,
            trust_loopback=self._web.trust_loopback,
            log_level=self._setup.log_level or "info",
            log_format=self._setup.log_format,
            encryption_keys=definition.encryption_keys,
        )

        def report() -> NodeReport:
            return NodeReport(
                not_ready=self._why_not_ready(), store_fault=control.outages.fault, strays=dict(self._strays())
            )

        process = WebProcess(listener, setup, report=report, publish=self._hook_process.fire)
        try:
            yield
        finally:
            await process.stop()

    def _hurry(self) -> None:
        if self._node is not None:
            self._node.hurry()
        if self._end is None:
            why = "the node cannot stop: ending without it; its leases will run out, and its jobs run again"
            self._end = end_in_time(1, HURRY_SECONDS, why)

    def _why_not_ready(self) -> str | None:
        condition = self._condition()
        return None if self._started and condition.leased else condition.words

    def _condition(self) -> NodeCondition:
        return NodeCondition(leased=False, words="starting") if self._node is None else self._node.condition()

    def _strays(self) -> Mapping[str, Strays]:
        return {} if self._node is None else self._node.strays()

    def _compose(self, definition: Definition, store: Store, control: Control) -> Node:
        settings = NodeSettings(
            namespace=definition.namespace,
            tick_interval=definition.tick_interval,
            lease_seconds=definition.lease_seconds,
            apart="all",
            labels=self._labels,
            health_checks=definition.health_checks,
            every_run=self._log_runs,
        )
        registry = Registry(
            {config.name: KnownWorker(config, definition.schemas.get(config.name)) for config in definition.workers},
            {pool.name: pool for pool in definition.pools},
            definition.gates,
        )
        states: dict[str, WorkerState] = {}
        node = Node(
            registry,
            store=store,
            clock=self._clock,
            hooks=self._hook_process,
            states=states,
            settings=settings,
            outages=control.outages,
            setup=replace(self._setup, max_payload_bytes=definition.max_payload_bytes),
        )
        if definition.health_checks:
            node.watch_health(control.system.health)
        return node


async def _listener(web: Web) -> Listener | None:
    """Return the socket for the dashboard; None, with a line in the log, if it cannot be served."""
    missing = next((name for name in WEB_PACKAGES if find_spec(name) is None), None)
    if missing is not None:
        remedy = f"{missing} is not installed: pip install 'shiftwork[web]'"
        if web.demanded:
            message = f"the dashboard cannot be served: {remedy}"
            raise ConfigurationError(message)
        logger.info("no dashboard: %s", remedy)
        return None
    try:
        return await listen(web.host, web.port)
    except ConfigurationError as error:
        logger.warning("no dashboard: %s", error)
        return None


def shown(definition: Definition) -> str:
    """Return the URL of the store, without its password."""
    return open_store(definition.store, namespace=definition.namespace).url
