"""Whether an app runs in this process: its start, its stop, and the node in between."""

import asyncio
import logging
import sys
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, Literal

from shiftwork.app.registration import check_in_place, warn_in_place
from shiftwork.control.calling import begin_anew_when_forked, never_free
from shiftwork.control.control import Control
from shiftwork.core.health.health_values import Strays
from shiftwork.core.observing.beats import Beat
from shiftwork.errors import LifecycleError
from shiftwork.events import Hooks
from shiftwork.runtime.context.middleware import Middleware
from shiftwork.runtime.registry import Registry

if TYPE_CHECKING:
    from shiftwork.runtime.claiming.pool_instance import PoolInstance
    from shiftwork.runtime.node.node import Node


logger: Final = logging.getLogger("shiftwork")

_REMEDY: Final = (
    "Keep start() and stop() inside one asyncio.run(…); await app.run(), which runs until Ctrl-C; or call "
    "app.blocking.start(), which has a loop of its own"
)


class Lifecycle:
    """Starts and stops the node of an app in this process, once at a time."""

    def __init__(self, middleware: Middleware, hooks: Hooks) -> None:
        self.state: Literal["stopped", "running", "stopping"] = "stopped"
        self.node: Node | None = None
        """The node, from the end of the start to the end of the stop."""
        self._middleware = middleware
        self._hooks = hooks
        self._starting: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop that the node runs on."""
        self._watch: asyncio.Future[None] | None = None
        begin_anew_when_forked(self)

    def forked(self) -> None:
        """Run nothing, in a process that was just forked: whatever runs does so in the parent."""
        never_free((self.node, self._middleware.forked(), self._watch, self._loop))
        self.node, self.state, self._starting = None, "stopped", None
        self._loop = self._watch = None

    @property
    def pool_instances(self) -> "Collection[PoolInstance]":
        """The instances that run here."""
        return self.node.instances if self.node is not None else ()

    def strays(self) -> Mapping[str, Strays]:
        """By instance, how many runs were given up on but have not stopped."""
        return self.node.strays() if self.node is not None else {}

    def instances(self) -> dict[str, tuple[Beat, list[str]]]:
        """The instances that run here: what each would beat now, and its jobs."""
        return {instance.name: (instance.beat(), list(instance.runs.active)) for instance in self.pool_instances}

    def serving(self, what: str) -> "Node | None":
        """Return the running node, if there is one, to serve what is registered now."""
        if self.state == "stopped" or (self.state == "running" and self.node is not None):
            return self.node
        doing = "starting" if self.state == "running" else "stopping"
        message = f"{what} cannot be registered while the orchestrator is {doing}; register it before, or afterwards"
        raise LifecycleError(message)

    # ── start ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def start(
        self, control: Control, complete: Callable[[], Registry], new_node: "Callable[[Registry], Node]"
    ) -> None:
        """Run everything that is registered, on this event loop. If it runs already, nothing changes."""
        while self._starting is not None:  # after a start that failed, another caller may try first
            await self._starting.wait()
        if self.state == "running":
            self._refuse_closed_loop()
            return
        if self.state == "stopping":
            raise LifecycleError("the orchestrator is stopping: await that stop(), then start() again")
        refuse_windows()
        registry = complete()
        check_in_place(registry.pools.values())
        warn_in_place(registry.pools.values())
        self.state = "running"  # from here on a second start waits for this one
        self._starting = asyncio.Event()
        try:
            await self._start(control, lambda: new_node(registry))
        finally:
            self._starting.set()
            self._starting = None

    async def _start(self, control: Control, new_node: "Callable[[], Node]") -> None:
        try:
            await control.store.open_to_change()
            node = new_node()
            await self._middleware.enter()
            try:
                await node.start()
            except BaseException:
                await self._middleware.leave()
                raise
        except BaseException:
            self.state = "stopped"
            await control.store.close()
            raise
        self.node = node
        self._loop = control.portal.loop = asyncio.get_running_loop()
        self._watch = asyncio.ensure_future(self._report_end_of_loop())

    async def _report_end_of_loop(self) -> None:
        """Wait until this task is cancelled. If that happens while the node runs, its event loop is being closed."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            if self.state == "running":
                logger.error("the event loop ends while the orchestrator runs, so everything stops. %s", _REMEDY)

    def _refuse_closed_loop(self) -> None:
        if self._loop is not None and self._loop.is_closed():
            problem = "the event loop of the orchestrator is closed, so nothing runs; await app.stop() first"
            message = f"{problem}. {_REMEDY}"
            raise LifecycleError(message)

    # ── stop ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def stop(self, control: Control, timeout_seconds: float) -> None:
        """Stop, once the start has ended if it is under way; a second call ends what still runs."""
        if self._starting is not None:
            await self._starting.wait()
        if self.node is None:
            return
        if self.state == "stopping":
            self.node.hurry()
            return
        self._refuse_inside_a_job()
        self._hooks.leave_out(asyncio.current_task())
        self.state = "stopping"
        node = self.node  # the attribute is cleared before the store is closed
        ending = asyncio.ensure_future(self._end(node, control, timeout_seconds))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            # Half a stop would leave leases behind: end what runs, and finish the stop.
            node.hurry()
            await asyncio.wait([ending])
            raise

    async def _end(self, node: "Node", control: Control, timeout_seconds: float) -> None:
        try:
            await node.stop(timeout_seconds)
        finally:
            await self._middleware.leave()
            self.state = "stopped"
            self.node = self._loop = None
            if self._watch is not None and not self._watch.get_loop().is_closed():
                self._watch.cancel()
            control.portal.loop = None
            control.portal.close()
            await control.store.close()

    def _refuse_inside_a_job(self) -> None:
        task = asyncio.current_task()
        if any(run.task is task for instance in self.pool_instances for run in instance.runs.active.values()):
            message = "stop() inside a job would deadlock; use asyncio.create_task(app.stop())"
            raise LifecycleError(message)

    def hurry(self) -> None:
        """Stop waiting for running work: a second signal came."""
        if self.node is not None:
            self.node.hurry()


def refuse_windows() -> None:
    """Refuse to run jobs where that cannot work."""
    if sys.platform == "win32":
        raise LifecycleError("jobs run on Linux and macOS only; a process on Windows can enqueue and control them")
