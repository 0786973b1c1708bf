"""What a node does for all nodes: it leads if it can, plans and keeps the history while it leads, and watches others.

A visitor, which comes for one errand, only queues what is due.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.pool_history import MINUTE
from shiftwork.errors import StoreError
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.leader.pool_planner import LoadForecast, PlannerDuty, PoolPlanner
from shiftwork.runtime.leader.stats_recorder import StatsRecorder
from shiftwork.runtime.node.dead_node_detector import DeadNodeDetector
from shiftwork.runtime.node.lease_renewer import BEATS_A_LEASE, RenewSoon
from shiftwork.runtime.node.node_services import NodeServices

logger: Final = logging.getLogger("shiftwork")


class ClusterDuties:
    """Holds the leader, the planner, the stats recorder and the dead node detector, and returns their duties."""

    def __init__(self, services: NodeServices, pools: Mapping[str, PoolConfig], renew_soon: RenewSoon) -> None:
        here = services
        lease = here.settings.lease_seconds
        leader = Leader(here, ttl=lease)
        self.leader: Leader = leader
        self.neighbours: DeadNodeDetector = DeadNodeDetector(
            here.store, here.clock, leader, mark=here.mark, every=lease / BEATS_A_LEASE, host=here.host
        )
        self._recorder = recorder = StatsRecorder(here.store, here.clock, lambda: leader.leading)
        registry = here.registry
        planner = PoolPlanner(
            pools,
            registry.workers,
            here.store,
            here.clock,
            forecast=LoadForecast(lambda: recorder.hours),
            gates=lambda: registry.gates,
        )
        self.planner: PlannerDuty = PlannerDuty(
            planner, here.clock, leads=lambda: leader.leading, publish=here.reporter.publish, make_duty=here.duty
        )
        self._services = services
        self._renew_soon = renew_soon
        self._leading: Duty | None = None

    def duties(self) -> list[Duty]:
        """Return the duties that go on from now on."""
        here = self._services
        if not here.settings.leads:
            return [here.duty("promoter", self.leader.promote, "leader")]
        self._leading = here.duty("leader", self._lead, "leader")
        return [
            self._leading,
            here.duty("neighbours", self.neighbours.poll, every=here.settings.lease_seconds / BEATS_A_LEASE),
            here.duty("stats recorder", self._recorder.poll, every=MINUTE),
            self.planner.duty,
        ]

    async def _lead(self) -> float | None:
        led = self.leader.leading
        next_at = await self.leader.poll()
        if self.leader.leading != led:
            self._renew_soon()  # the beat says who leads, and others read it there
            self.planner.soon()
        return next_at

    async def succeed(self, instances: Sequence[InstanceRecord]) -> None:
        """Take over from dead neighbours, one of which may have led, and lead if no other node does."""
        await self.neighbours.report_dead(instances)
        await self.leader.stand()

    def look_again(self) -> None:
        """Plan, and see what is due, soon: there are new workers or pools."""
        self.planner.soon()
        if self._leading is not None:
            self._leading.ring()

    async def withdraw(self) -> None:
        """Take back the beat of the node itself, which is about to join once more. It may still lead after that."""
        await self._services.store.leave([self.leader.holder], self._services.clock.now())

    async def leave(self, instances: Sequence[str]) -> None:
        """Let another node lead, and give up the leases of these instances and of the node itself."""
        here = self._services
        try:
            await self.leader.resign()
            await here.store.leave([*instances, self.leader.holder], here.clock.now())
            await here.reporter.refresh()
        except StoreError as error:
            logger.warning("cannot give up the leases: %s; they will run out by themselves", error)
