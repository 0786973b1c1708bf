"""A simulated process for jobs: what a node starts instead of a real one, and what runs in it.

Inside is the real `ChildProcess`. What `serve.spawned` and the guard do around it is simulated: the process ends when
its node has ended, when its lease has not been renewed in time, and by signals.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct

from shiftwork.runtime.processes.child_process import ChildProcess
from shiftwork.runtime.processes.handover import NodeEnd, ProcessEnd
from shiftwork.runtime.processes.messages import Ready
from shiftwork.serve.process import LEFT_ALONE
from shiftwork.simulation.ground.links import SimSocket
from shiftwork.simulation.ground.sim_machine import SimProcess
from shiftwork.simulation.ground.strands import SimThreads
from shiftwork.simulation.ground.world import World

if TYPE_CHECKING:
    import socket
    from asyncio import TimerHandle

    from shiftwork.history.recorder import HistoryRecorder
    from shiftwork.runtime.context.middleware import Middleware
    from shiftwork.runtime.registry import Callee
    from shiftwork.store.protocol import Store

START_SECONDS = 0.15
"""How long a process takes to begin, at least."""


class LiveApp(Struct, frozen=True):
    """What a process for jobs needs of the app that it has imported."""

    callees: "Mapping[str, Callee]"
    middleware: "Middleware"
    open_store: "Callable[[], Awaitable[Store]]"
    recorder: "HistoryRecorder"


class SimSpawned:
    """The node's ends of a simulated process, and the process itself as the operating system sees it."""

    def __init__(
        self, world: World, node: SimProcess, on_failure: ExitStack, make_app: Callable[[SimProcess], LiveApp]
    ) -> None:
        self._world = world
        self._node = node
        self._make_app = make_app
        self.process: SimProcess = world.start(node.machine, f"{node.name} child")
        self.pid: int = self.process.pid
        self.stacks: SimStacks = SimStacks()
        self.runs: NodeEnd = world.handover.node_end(world.interrupt)
        self._ours = SimSocket(self._wakes(node))
        self._theirs = SimSocket(self._wakes(self.process))
        self._ours.other, self._theirs.other = self._theirs, self._ours
        self._until: float | None = None
        self._lapse: TimerHandle | None = None
        ends = world.handover.process_end(self.runs.tokens, self.runs.page, world.interrupt)
        self.runs.close_page()
        world.at_end(self.runs.close)
        self.process.on_death(lambda _status: self._theirs.close())
        on_failure.callback(self.end_group)
        node.on_death(self._orphaned)
        world.later(self.process, START_SECONDS + 100 * world.soon(), self._begin, ends)

    @property
    def socket(self) -> "socket.socket":
        """Our end of the connection."""
        return cast("Any", self._ours)  # type: ignore[no-any-return]

    def _wakes(self, process: SimProcess) -> Callable[[Callable[[], object]], None]:
        return lambda callback: self._world.later(process, self._world.soon(), callback)

    # ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, ends: ProcessEnd) -> None:
        self._world.live(self._live(ends), "shiftwork instance")

    async def _live(self, ends: ProcessEnd) -> None:
        instance = ChildProcess(cast("Any", self._theirs), ends)
        setup = await instance.setup
        app = self._make_app(self.process)
        await app.middleware.enter()
        instance.serve(
            app.callees,
            app.open_store,
            app.middleware,
            alone=setup.role == "alone",
            threads=SimThreads(self._world.strands, self._world.time, self._world.soon),
            watched=False,
            recorder=app.recorder,
        )
        instance.send(Ready())
        await instance.over.wait()
        await app.middleware.leave()
        await instance.finish()
        self._world.later(self._world.home, 0.0, self.process.die, 0)

    # ── as the operating system sees it ──────────────────────────────────────────────────────────────────────────

    def watch(self, on_death: Callable[[], None]) -> None:
        """Call this when the process has died, and that was noticed."""
        self.process.on_death(lambda _status: self._world.later(self._node, self._world.soon(), on_death))

    def renew(self, until: float) -> None:
        """Let it live until then."""
        self._until = until
        if self._lapse is None:
            self._watch_lapse()

    def _watch_lapse(self) -> None:
        assert self._until is not None  # noqa: S101 - it was renewed
        left = self._until - (self._world.time.now + self.process.machine.up)
        if left <= 0:
            self.process.die(LEFT_ALONE)
        else:
            self._lapse = self._world.time.later(self.process, left, self._watch_lapse)

    def send_signal(self, number: signal.Signals) -> None:
        """Kill it, if that is a signal that does."""
        if number == signal.SIGKILL:
            self.process.die(-number)
        elif number == signal.SIGTERM:
            self._world.later(self.process, self._world.soon(), self.process.die, -number)

    def end_group(self) -> None:
        """Kill it, even if it is frozen."""
        self.process.die(-signal.SIGKILL)

    def reap(self) -> int:
        """Return how it ended."""
        return self.process.status or 0

    def close(self) -> None:
        """Do nothing: a dead process is renewed no more."""

    def _orphaned(self, _status: int) -> None:
        """End it with its node, unless it is frozen: its guard sees to that."""
        self._ours.close()
        self._world.later(self.process, self._world.soon(), self.end_group)


class SimStacks:
    """The stacks of a simulated process, which writes none."""

    async def ask(self, signal: Callable[[], None], patience: float) -> str:
        """Wait as long as it would take, and return nothing."""
        signal()
        await asyncio.sleep(patience)
        return ""

    def unread(self) -> str:
        """Return nothing."""
        return ""

    def close(self) -> None:
        """Do nothing."""
