"""What the node that leads does for all: it promotes due jobs, rescues lost ones, fires schedules, and prunes.

How many slots each pool gets: `pool_planner`. What the charts show: `stats_recorder`. Which node leads: the one that
holds the lease "leader". `Leadership` is one node's part in that:

                     the store grants the lease
    FOLLOWING ───────────────────────────────────────▶ LEADING ──┐ the store grants it again: asked for
        │    ◀───────────────────────────────────────    │   ▲   │ when a third of the lease has passed
        │            the store refuses to renew it       │   └───┘
        │                                                │
        └──────────▶ RESIGNED, for good ◀────────────────┘
                     `resign`: the node stops; a lease it holds is given back, so another node leads at once

`_held_until` is when the lease ends unless it is renewed. A leader that cannot reach the store stays LEADING in its own
eyes even after that, because it has heard nothing else; by then another node may lead as well. Two leaders at once do
no harm: a fire time is one job by its id, the plan is changed by compare-and-set, and promoting, reaping and pruning
are single steps of the store. The lease only saves the nodes doing the same work.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto
from typing import Final

from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.runtime.claiming.instance_services import InstanceServices
from shiftwork.runtime.duty import together
from shiftwork.runtime.leader.job_rescuer import JobRescuer
from shiftwork.runtime.leader.worker_schedules import WorkerSchedules
from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.sentences import sentence
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

LEADER_LEASE: Final = "leader"

LEADER_BATCH: Final = 1_000

PRUNE_SECONDS: Final = 30.0


class Leader:
    """Leads if it can, and then does what a leader does."""

    def __init__(self, services: InstanceServices, *, ttl: float) -> None:
        here = services
        self._store = here.store
        self._reporter = here.reporter
        self._clock = here.clock
        self._ttl = ttl
        self._prune_at = 0.0
        self._leadership = Leadership(here.store, here.reporter, node=here.node, ttl=ttl)
        self._schedules = WorkerSchedules(here.registry, here.store, here.reporter)
        self._rescuer = JobRescuer(services, ttl=ttl)

    @property
    def leading(self) -> bool:
        """Whether this node leads, as far as it knows."""
        return self._leadership.state is LeaderState.LEADING

    @property
    def holder(self) -> str:
        """The instance that holds lost jobs until they are settled."""
        return self._rescuer.holder

    async def stand(self) -> bool:
        """Take or keep the lead; return whether this node leads."""
        now = self._clock.now()
        self._rescuer.note_poll(now)
        return await self._leadership.keep(now)

    async def poll(self) -> float | None:
        """Keep the lead, and do what is due; return when something will be due next."""
        now = self._clock.now()
        if not await self.stand():
            self._schedules.forget()
            return now + self._ttl / 3
        duties = self.promote(), self._rescuer.poll(now), self._schedules.poll(now), self._prune(now)
        due: list[float | None] = [self._leadership.renew_at, *await together(*duties)]
        return min(at for at in due if at is not None)

    async def fire(self, *, without: Collection[str] = ()) -> float | None:
        """Queue what is due and fire schedules, but those of these workers, as if this node led; return when more is.

        Only where a test drives the node: nothing is recovered or pruned.
        """
        due = await together(self.promote(), self._schedules.poll(self._clock.now(), without=without))
        return min((at for at in due if at is not None), default=None)

    async def promote(self) -> float | None:
        """Queue what is due; return when more will be. A visiting process does this too, in case no node leads."""
        now = self._clock.now()
        promoted = await self._store.promote(LEADER_BATCH, now)
        if promoted.expired:
            self._reporter.expired(promoted.expired)
        return now if promoted.moved == LEADER_BATCH else promoted.next_at

    async def recover(self) -> int:
        """Take over the jobs of instances that are gone; return how many there were."""
        return await self._rescuer.recover()

    def adopt(self) -> None:
        """Lead the workers too that were registered after the start."""
        self._schedules.adopt()

    async def depose(self, nodes: Collection[str]) -> None:
        """Let another node lead at once if one of these dead ones has led."""
        await self._leadership.depose(nodes)

    def note(self, instances: Sequence[InstanceRecord]) -> None:
        """Take note of who is there, leading or not."""
        self._rescuer.note(instances)

    async def rescue_from(self, nodes: Collection[str], instances: Sequence[InstanceRecord]) -> None:
        """Take over the jobs of these instances, which nodes that are proven dead have left."""
        await self._rescuer.rescue_from(nodes, instances)

    def rename(self) -> None:
        """Continue under a new name: another leader has taken over what this one held."""
        self._rescuer.rename()

    async def resign(self) -> None:
        """Let another node lead at once, and never lead again."""
        await self._leadership.resign()

    async def _prune(self, now: float) -> float:
        if not now < self._prune_at <= now + PRUNE_SECONDS:
            pruned = await self._store.prune(LEADER_BATCH, now)
            self._prune_at = now if pruned >= LEADER_BATCH else now + PRUNE_SECONDS
        return self._prune_at


class LeaderState(Enum):
    """Whether a node leads; see the drawing above."""

    FOLLOWING = auto()
    LEADING = auto()
    RESIGNED = auto()


class Leadership:
    """Takes the leader's lease if it can, renews it, and gives it back."""

    def __init__(self, store: Store, reporter: Reporter, *, node: str, ttl: float) -> None:
        self.state: LeaderState = LeaderState.FOLLOWING
        self._store = store
        self._reporter = reporter
        self._node = node
        self._ttl = ttl
        self._held_until = 0.0

    @property
    def renew_at(self) -> float:
        """When a leader asks for the lease again."""
        return self._held_until - self._ttl * 2 / 3

    async def keep(self, now: float) -> bool:
        """Take or renew the lease if that is due; return whether this node leads."""
        leading = self.state is LeaderState.LEADING
        # A lease that ends later than a new one would was taken before the clock was set back.
        fresh = self._held_until - self._ttl <= now < self.renew_at
        if self._resigned() or (leading and fresh):
            return leading
        granted = await self._store.hold(LEADER_LEASE, self._node, 1, self._ttl, now)
        if self._resigned():  # while the store was asked
            await self._store.drop(LEADER_LEASE, self._node)
            return False
        if granted:
            self._held_until = now + self._ttl
        self._become(LeaderState.LEADING if granted else LeaderState.FOLLOWING)
        return granted

    def _resigned(self) -> bool:
        return self.state is LeaderState.RESIGNED

    async def resign(self) -> None:
        """Let another node lead at once."""
        before, self.state = self.state, LeaderState.RESIGNED
        if before is LeaderState.LEADING:
            await self._store.drop(LEADER_LEASE, self._node)

    async def depose(self, nodes: Iterable[str]) -> None:
        """Take the lease from nodes that are proven dead."""
        await asyncio.gather(*(self._store.drop(LEADER_LEASE, node) for node in nodes))

    def _become(self, state: LeaderState) -> None:
        before, self.state = self.state, state
        if (before, state) == (LeaderState.FOLLOWING, LeaderState.LEADING):
            self._reporter.emit("leader.elected", self._node, sentence("node {node} leads", node=self._node))
        elif (before, state) == (LeaderState.LEADING, LeaderState.FOLLOWING):
            logger.warning("node %s no longer leads: another node holds the lease", self._node)
