"""What a node does for all nodes: it leads if it can, plans and keeps the history while it leads, and watches others.

A visitor, which comes for one errand, only queues what is due.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Final

from shiftwork.core.model.worker import PoolConfig
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.history import MINUTE
from shiftwork.errors import StoreError
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.leader.historian import Historian
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.leader.outlook import Outlook
from shiftwork.runtime.node.environment import NodeEnvironment
from shiftwork.runtime.node.neighbours import Neighbours
from shiftwork.runtime.node.planning import Planning
from shiftwork.runtime.node.pulse import BEATS_A_LEASE, Poke

logger: Final = logging.getLogger("shiftwork")


class ClusterDuties:
    """Has the leader, the planner, the historian and the watch over the neighbours."""

    def __init__(self, environment: NodeEnvironment, pools: Mapping[str, PoolConfig], poke: Poke) -> None:
        here = environment
        lease = here.settings.lease_seconds
        self.leader = leader = Leader(here, ttl=lease)
        self.neighbours = Neighbours(here.store, here.clock, leader, mark=here.mark, every=lease / BEATS_A_LEASE)
        self._historian = historian = Historian(here.store, here.clock, lambda: leader.leading)
        self.planning = Planning(pools, here, leader, Outlook(lambda: historian.hours))
        self._environment = environment
        self._poke = poke
        self._leading: Duty | None = None

    def duties(self) -> list[Duty]:
        """What it does over and over, from now on."""
        here = self._environment
        if not here.settings.leads:
            return [here.duty("promoter", self.leader.promote, "leader")]
        self._leading = here.duty("leader", self._lead, "leader")
        return [
            self._leading,
            here.duty("neighbours", self.neighbours.poll, every=here.settings.lease_seconds / BEATS_A_LEASE),
            here.duty("historian", self._historian.poll, every=MINUTE),
            self.planning.duty,
        ]

    async def _lead(self) -> float | None:
        led = self.leader.leading
        next_at = await self.leader.poll()
        if self.leader.leading != led:
            self._poke()  # the beat says who leads, and others read it there
            self.planning.soon()
        return next_at

    async def succeed(self, instances: Sequence[InstanceRecord]) -> None:
        """Take over from dead neighbours, one of which may have led, and lead if no other node does."""
        await self.neighbours.bury(instances)
        await self.leader.stand()

    def look_again(self) -> None:
        """Plan, and see what is due, soon: there are new workers or pools."""
        self.planning.soon()
        if self._leading is not None:
            self._leading.ring()

    async def leave(self, instances: Sequence[str]) -> None:
        """Let another node lead, and give up the leases of these instances and of the node itself."""
        here = self._environment
        try:
            await self.leader.resign()
            await here.store.leave([*instances, self.leader.holder], here.clock.now())
            await here.reporter.refresh()
        except StoreError as error:
            logger.warning("cannot give up the leases: %s; they will run out by themselves", error)
