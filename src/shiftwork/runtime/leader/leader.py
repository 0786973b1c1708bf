"""What the node that leads does for all: it promotes due jobs, recovers lost ones, fires schedules, and prunes.

Which node that is: `leadership`. How many slots each pool gets: `pool_planner`. What the charts show: `stats_recorder`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.runtime.claiming.instance_services import InstanceServices
from shiftwork.runtime.duty import together
from shiftwork.runtime.leader.job_rescuer import JobRescuer
from shiftwork.runtime.leader.leadership import Leadership, LeaderState
from shiftwork.runtime.leader.schedules import Schedules

BATCH: Final = 1_000
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
        self._schedules = Schedules(here.registry, here.store, here.reporter)
        self._recovery = JobRescuer(services, ttl=ttl)

    @property
    def leading(self) -> bool:
        """Whether this node leads, as far as it knows."""
        return self._leadership.state is LeaderState.LEADING

    @property
    def holder(self) -> str:
        """The instance that holds lost jobs until they are settled."""
        return self._recovery.holder

    async def stand(self) -> bool:
        """Take or keep the lead; return whether this node leads."""
        now = self._clock.now()
        self._recovery.note_poll(now)
        return await self._leadership.keep(now)

    async def poll(self) -> float | None:
        """Keep the lead, and do what is due; return when something will be due next."""
        now = self._clock.now()
        if not await self.stand():
            self._schedules.forget()
            return now + self._ttl / 3
        duties = self.promote(), self._recovery.poll(now), self._schedules.poll(now), self._prune(now)
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
        promoted = await self._store.promote(BATCH, now)
        if promoted.expired:
            self._reporter.expired(promoted.expired)
        return now if promoted.moved == BATCH else promoted.next_at

    async def recover(self) -> int:
        """Take over the jobs of instances that are gone; return how many there were."""
        return await self._recovery.recover()

    def adopt(self) -> None:
        """Lead the workers too that were registered after the start."""
        self._schedules.adopt()

    async def depose(self, nodes: Collection[str]) -> None:
        """Let another node lead at once if one of these dead ones has led."""
        await self._leadership.depose(nodes)

    def note(self, instances: Sequence[InstanceRecord]) -> None:
        """Take note of who is there, leading or not."""
        self._recovery.note(instances)

    async def bury(self, nodes: Collection[str], instances: Sequence[InstanceRecord]) -> None:
        """Take over the jobs of nodes that are proven dead, of which these instances are left."""
        await self._recovery.bury(nodes, instances)

    def rename(self) -> None:
        """Continue under a new name: another leader has taken over what this one held."""
        self._recovery.rename()

    async def resign(self) -> None:
        """Let another node lead at once, and never lead again."""
        await self._leadership.resign()

    async def _prune(self, now: float) -> float:
        if not now < self._prune_at <= now + PRUNE_SECONDS:
            pruned = await self._store.prune(BATCH, now)
            self._prune_at = now if pruned >= BATCH else now + PRUNE_SECONDS
        return self._prune_at
