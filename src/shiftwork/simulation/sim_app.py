"""The app that an episode describes, as one simulated process has it: the real orchestrator, on simulated ground."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgspec.structs import replace

from shiftwork.app.composition import Composition
from shiftwork.app.orchestrator import WorkerOrchestrator
from shiftwork.history.recorded_store import RecordedStore
from shiftwork.runtime.clock import SystemClock
from shiftwork.runtime.context.context import Context
from shiftwork.runtime.node.node import Node
from shiftwork.runtime.processes.host import THIS_HOST, Host
from shiftwork.runtime.processes.messages import Setup
from shiftwork.runtime.registry import Registry
from shiftwork.simulation.acts import Stage, act, act_plainly, tick, tick_plainly
from shiftwork.simulation.episode import Episode, WorkerPlan
from shiftwork.simulation.ground.world import World
from shiftwork.simulation.sim_child import LiveApp

SETUP = Setup(app="simulated:app", role="alone")


class SimulatedApp(WorkerOrchestrator):
    """An orchestrator with the pools and workers of an episode."""

    def __init__(
        self,
        episode: Episode,
        world: World,
        store: RecordedStore,
        *,
        version: int = 1,
        apart: Any = "process",
        host: Host = THIS_HOST,
    ) -> None:
        self._apart = apart
        self._host = host
        self._node: Node | None = None
        self._ending = False
        self.simulated_store = store
        super().__init__(
            store,
            clock=SystemClock(),
            tick_interval=episode.tick_interval,
            lease_seconds=episode.lease_seconds,
            enable_health_checks=episode.health_checks,
        )
        stage = Stage(world, {plan.name: plan.script for plan in episode.workers}, self._call)
        self.lifespan(_lifespan(stage))
        for pool in episode.pools:
            self.register_pool(pool.name, pool.options)
        for plan in episode.workers:
            if plan.version <= version:
                self.register_worker(plan.name, _function(plan, version), plan.options)

    def _call(self, worker: str) -> Any:
        return self.task_of(worker).call(script="0.01", key="")

    def task_of(self, worker: str) -> Any:
        """Return a worker by its name."""
        return self._composition.registered.workers[worker]

    def _composed(self, *args: Any, **kwargs: Any) -> Composition:
        composition = super()._composed(*args, **kwargs)
        composition.settings = replace(composition.settings, apart=self._apart, pulse_in_thread=True)
        return composition

    def _new_node(self, registry: Registry) -> Node:
        self._node = node = self._composition.new_node(registry, SETUP, host=self._host)
        if self._composition.settings.health_checks:
            node.watch_health(self.control.system.health)
        return node

    async def begin(self) -> None:
        """Start a node in this process, as `shiftwork run` or as `start` does."""
        if self._apart == "process":
            await self.start()
            return
        await self.control.store.open_to_change()
        await self._new_node(self._registrations.complete()).start()

    async def end(self, grace: float) -> None:
        """Stop it; a second time, at once."""
        if self._apart == "process":
            await self.stop(grace)
        elif self._node is not None and self._ending:
            self._node.hurry()
        elif self._node is not None:
            self._ending = True
            await self._node.stop(grace)

    @property
    def leads(self) -> bool:
        """Whether its node leads, as far as it knows."""
        return self._node is not None and self._node.leader.leading

    def live(self) -> LiveApp:
        """Return what a process for jobs needs of it."""
        return LiveApp(
            self._registrations.complete().callees,
            self._middleware,
            self.control.store.open,
            self.simulated_store.recorder,
        )


def _lifespan(stage: Stage) -> Any:
    @contextmanager
    def lifespan() -> Iterator[Stage]:
        yield stage

    return lifespan


def _function(plan: WorkerPlan, version: int) -> Any:
    if plan.act == "timed":
        return tick
    if plan.act == "plain timed":
        return tick_plainly
    if version == 1 or plan.version > 1:
        return act_plainly if plan.act == "plain task" else act
    return act_plainly_2 if plan.act == "plain task" else act_2


async def act_2(ctx: Context, script: str, key: str, given: int = 0, more: int = 0) -> int:
    """Do what the script says, as the second version of the app has it, with another parameter."""
    return await act(ctx, script, key, given) + more


def act_plainly_2(ctx: Context, script: str, key: str, given: int = 0, more: int = 0) -> int:
    """Do the same as a plain function."""
    return act_plainly(ctx, script, key, given) + more
