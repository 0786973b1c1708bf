"""Control and node factory for one store and one clock; `app.testing()` swaps it."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shiftwork.app.triggering import Triggering
from shiftwork.control.control import Control
from shiftwork.control.definitions import LocalRegistry
from shiftwork.core.health.health_values import Strays
from shiftwork.core.observing.beats import Beat
from shiftwork.events import Hooks, JobListeners
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.node.node_settings import NodeSettings
from shiftwork.runtime.registry import Registry
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from shiftwork.runtime.node.node import Node
    from shiftwork.runtime.processes.host import Host
    from shiftwork.runtime.processes.messages import Setup


class Composition:
    """The commands and questions of an orchestrator, and the nodes that it starts."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        registered: LocalRegistry,
        settings: NodeSettings,
        *,
        hooks: Hooks,
        complete: Callable[[], Registry],
        strays: Callable[[], Mapping[str, Strays]],
        here: Callable[[], Mapping[str, tuple[Beat, list[str]]]],
        again: Callable[[], Store] | None = None,
    ) -> None:
        self.clock = clock
        self.registered = registered
        self.settings = settings
        self._hooks = hooks
        self.control: Control = Control(
            store,
            clock,
            registered,
            hooks=hooks,
            strays=strays,
            here=here,
            lease_seconds=settings.lease_seconds,
            again=again,  # see `StoreAccess`
        )
        self.triggering: Triggering = Triggering(
            self.control, registered, complete=complete, new_visitor=self.new_visitor
        )

    def new_node(
        self,
        registry: Registry,
        setup: "Setup | None" = None,
        *,
        hooks: JobListeners | None = None,
        host: "Host | None" = None,
    ) -> "Node":
        """Return a node that serves all this, and is not started. A simulation has a host of its own."""
        return self._new_node(registry, self.settings, setup, hooks or self._hooks, host)

    def new_visitor(self, registry: Registry) -> "Node":
        """Return a node that serves one triggered run, and never leads."""
        return self._new_node(registry, self.settings.visitor(), None, self._hooks)

    def _new_node(
        self,
        registry: Registry,
        settings: NodeSettings,
        setup: "Setup | None",
        hooks: JobListeners,
        host: "Host | None" = None,
    ) -> "Node":
        from shiftwork.runtime.node.node import Node
        from shiftwork.runtime.processes.host import THIS_HOST

        return Node(
            registry,
            store=self.control.store.store,
            clock=self.clock,
            hooks=hooks,
            states=self.registered.states,
            settings=settings,
            outages=self.control.outages,
            setup=setup,
            host=host or THIS_HOST,
        )
