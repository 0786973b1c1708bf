"""The plan, as far as a node has a part in it: when it is made, and how many slots of each pool are on this node."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from shiftwork.core.model.doc import Plan
from shiftwork.core.model.worker import PoolConfig
from shiftwork.core.scaling.plan import LOOK_SECONDS, REST_SECONDS, SOON_SECONDS, Planned
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.leader.outlook import Outlook
from shiftwork.runtime.leader.planner import Planner, PlanView
from shiftwork.runtime.node.environment import NodeEnvironment

if TYPE_CHECKING:
    from shiftwork.runtime.clock import Timer


class Planning:
    """Makes the plan when this node leads: every second, soon after a pool has no free slot left, seldom at rest."""

    def __init__(
        self,
        pools: Mapping[str, PoolConfig],
        environment: NodeEnvironment,
        leader: Leader,
        outlook: Outlook,
    ) -> None:
        here = environment
        self._clock = here.clock
        self._leader = leader
        self._reporter = here.reporter
        registry = here.registry
        self._planner = Planner(
            pools, registry.workers, here.store, here.clock, outlook=outlook, gates=lambda: registry.gates
        )
        self._planned_at = 0.0
        self._urgent = False
        """Whether a pool has no free slot left."""
        self._resting = False
        self._stirring: Timer | None = None
        self.duty = here.duty("planner", self._poll, "state")
        self.alarm: Callable[[], None] = lambda: None
        """Called when there are jobs of a worker that no live node has, or no longer are."""
        self._unknown: frozenset[str] = frozenset()

    def soon(self) -> None:
        """Plan soon: a pool has no free slot left, for instance. Safe from any thread."""
        self._urgent = True
        self.duty.ring()

    def stir(self) -> None:
        """End the rest: jobs may have come. They start first."""
        if self._resting:
            self._resting = False
            self._stirring = self._clock.call_in(SOON_SECONDS, self.duty.ring)

    async def look(self) -> PlanView:
        """Read what the plan is made of."""
        return await self._planner.look()

    async def plan(self, seen: PlanView | None = None) -> Planned:
        """Decide how many slots each pool has, here and elsewhere, by what was seen just now if that is given."""
        planned = await self._planner.plan(seen)
        for event in planned.events:
            self._reporter.publish(event)
        if self._planner.unknown != self._unknown:
            self._unknown = self._planner.unknown
            self.alarm()
        return planned

    async def _poll(self) -> float | None:
        now = self._clock.now()
        due_at = self._planned_at + (SOON_SECONDS if self._urgent or self._resting else LOOK_SECONDS)
        if self._planned_at <= now < due_at:
            return due_at
        self._urgent = False
        if self._stirring is not None:
            self._stirring.cancel()
        if self._leader.leading:
            await self.plan()
        self._planned_at = now  # not if it failed: coming too early would count as having worked
        self._resting = self._planner.resting or not self._leader.leading
        return now + (REST_SECONDS if self._resting else LOOK_SECONDS)


def slots_in(plan: Plan, node: str) -> Mapping[str, int] | None:
    """How many slots of each pool a node has in a plan; None if the plan does not know it."""
    # Drained is drained, even before the leader has planned without the node.
    return {} if node in plan.drained else plan.nodes.get(node)
