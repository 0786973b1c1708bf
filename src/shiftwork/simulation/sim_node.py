"""A simulated node: a process with the app in it, which is started again whenever it has ended."""

from typing import Final

from shiftwork.errors import ShiftworkError
from shiftwork.simulation.episode import Episode, NodePlan
from shiftwork.simulation.ground.network import Connection, Posted
from shiftwork.simulation.ground.sim_machine import SimMachine, SimProcess
from shiftwork.simulation.ground.world import World
from shiftwork.simulation.sim_app import SimulatedApp
from shiftwork.simulation.sim_child import LiveApp
from shiftwork.simulation.sim_host import host_of

KILLED: Final = -9
TICK: Final = frozenset(("promote", "reap", "prune", "hold"))
"""Calls of a leader's tick."""
RESTART_SECONDS: Final = 1.0
"""How soon a node is started again, at least."""


class SimNode:
    """A place for a node, and the process that is there now."""

    def __init__(self, world: World, episode: Episode, plan: NodePlan, machine: SimMachine, name: str) -> None:
        self.name = name
        self.machine = machine
        self.process: SimProcess | None = None
        self.app: SimulatedApp | None = None
        """The app of the process, once it has started."""
        self.version: int = 1
        """The version of the app from the next start on."""
        self._replaced_with = 0.0
        """How much grace a node of another version gets."""
        self._leaving = False
        self.starts: int = 0
        self.refusals: list[str] = []
        """Why it could not start, each time."""
        self._world = world
        self._episode = episode
        self._plan = plan
        self._dies_at: str | None = None
        self._connection: Connection
        """The way to the store of the process that is there now."""
        self._children: list[SimProcess] = []
        world.later(world.home, plan.at, self.start)

    @property
    def children(self) -> list[SimProcess]:
        """The processes that it has started and that live."""
        self._children = [child for child in self._children if child.alive]
        return self._children

    def start(self) -> None:
        """Start the node."""
        self.starts += 1
        process = self.process = self._world.start(self.machine, f"{self.name}.{self.starts}")
        process.on_death(self._died)
        self._world.later(process, 0.0, self._main, process, self.version)

    def _died(self, status: int) -> None:
        if status == KILLED and self.app is not None and self.app.leads:
            asked = {call.method for call in self._connection.under_way}
            self._world.met["leader dies"] += 1
            self._world.met["leader dies in mid-tick"] += bool(asked & TICK)
        self.app = None
        self._world.serving.pop(self.name, None)
        self._world.later(self._world.home, RESTART_SECONDS * (1.0 + 1000 * self._world.soon()), self.start)

    def die_at(self, call: str | None) -> None:
        """Let this call be its last: it dies when that has taken effect, before it hears of it."""
        watchers = self._world.network.watchers
        if self._dies_at is not None:
            watchers.remove(self._watch)
        if call is not None:
            watchers.append(self._watch)
        self._dies_at = call

    def _watch(self, call: Posted) -> None:
        process = call.source.process
        if call.method == self._dies_at and process is self.process:
            self.die_at(None)
            self._world.met["kill at call"] += 1
            process.die(KILLED)

    def deploy(self, version: int, grace: float) -> None:
        """Replace the node by one of this version: at once, or when it has started if it is just doing that."""
        if self.version != version:
            self.version, self._replaced_with = version, grace
        self.stop(grace)

    def stop(self, grace: float) -> None:
        """Let the node stop, as a signal does; a second time it stops at once."""
        if self.process is not None and self.process.alive and self.app is not None:
            self._world.later(self.process, 0.0, self._stop, self.process, self.app, grace)

    # ── inside the process ───────────────────────────────────────────────────────────────────────────────────────

    def _main(self, process: SimProcess, version: int) -> None:
        self._world.live(self._live(process, version))

    async def _live(self, process: SimProcess, version: int) -> None:
        world, episode = self._world, self._episode
        store, self._connection = world.connect(process)

        def live_app(child: SimProcess) -> LiveApp:
            return SimulatedApp(episode, world, world.connect(child)[0], version=version).live()

        app = SimulatedApp(
            episode,
            world,
            store,
            version=version,
            apart=self._plan.apart,
            host=host_of(world, process, live_app, self._children),
        )
        try:
            await app.begin()
        except ShiftworkError as error:
            self.refusals.append(str(error))
            process.die(1)
            return
        self.app, self._leaving = app, False
        if version != self.version:  # it was replaced while it started
            self.stop(self._replaced_with)
        world.serving[self.name] = version
        world.met["two versions at once"] += len({*world.serving.values()}) > 1

    def _stop(self, process: SimProcess, app: SimulatedApp, grace: float) -> None:
        self._world.live(self._leave(process, app, grace))

    async def _leave(self, process: SimProcess, app: SimulatedApp, grace: float) -> None:
        first = not self._leaving
        self._leaving = True
        await app.end(grace)
        if first:
            process.die(0)
