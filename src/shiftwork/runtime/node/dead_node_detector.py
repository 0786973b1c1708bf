"""The other nodes on this machine: when one is proven dead, its jobs are taken back without waiting for its leases.

Looking costs next to nothing: the processes of known neighbours every second, the store once a beat, and at the start.
Without neighbours there is nothing to look at in between.
"""

from collections.abc import Sequence
from typing import Final

from shiftwork.core.observing.beats import InstanceRecord, ProcessMark
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.processes.host import Host
from shiftwork.store.protocol import Store

WATCH_SECONDS: Final = 1.0
"""How often to look whether the known neighbours live."""
DEAD_NODE_RETRY_SECONDS: Final = 0.05
"""How soon to look again while processes of a dead node are ending; doubled each time, up to `WATCH_SECONDS`."""


class DeadNodeDetector:
    """Proves the death of other nodes on this machine, and has their jobs rescued."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        leader: Leader,
        *,
        mark: ProcessMark | None,
        every: float,
        host: Host,
    ) -> None:
        self._store = store
        self._clock = clock
        self._leader = leader
        self._own = mark
        self._host = host
        self._every = every
        """How often to ask the store who the neighbours are."""
        self._known: set[ProcessMark] = set()
        """The neighbours, and those of the dead whose processes have not ended yet."""
        self._ask_at = 0.0
        self._again = DEAD_NODE_RETRY_SECONDS

    async def poll(self) -> float | None:
        """Look at the neighbours, and ask the store if that is due or if one of them is dead."""
        own = self._own
        if own is None:
            return None
        now = self._clock.now()
        if now < self._ask_at and not any(self._host.is_dead(mark, own) for mark in self._known):
            return self._look_at(now)
        return await self.report_dead(await self._store.instances())

    def dead_among(self, instances: Sequence[InstanceRecord]) -> set[str]:
        """Return the nodes, of those that these instances belong to, that are proven dead."""
        own = self._own
        if own is None:
            return set()
        return {node for node, mark in _marks(instances).items() if self._host.is_dead(mark, own)}

    def living_among(self, instances: Sequence[InstanceRecord]) -> list[InstanceRecord]:
        """Return those of these instances whose node is not proven dead."""
        dead = self.dead_among(instances)
        return [known for known in instances if known.beat.node not in dead]

    async def report_dead(self, instances: Sequence[InstanceRecord]) -> float | None:
        """Have the jobs of dead neighbours among these taken back; returns when to look again."""
        own, now = self._own, self._clock.now()
        if own is None:
            return None
        self._ask_at = now + self._every
        self._leader.note(instances)
        marks, dead = _marks(instances), self.dead_among(instances)
        children = {known.beat.node: known.beat.children for known in instances if known.beat.process is not None}
        ended = {node for node in dead if self._host.end_groups(children[node], marks[node])}
        self._known = {mark for node, mark in marks.items() if node not in ended and mark != own}
        if dead:
            await self._leader.depose(dead)
        if ended:
            await self._leader.rescue_from(ended, instances)
        if dead == ended:
            self._again = DEAD_NODE_RETRY_SECONDS
            return self._look_at(now)
        again, self._again = self._again, min(2 * self._again, WATCH_SECONDS)
        return now + again  # processes of a dead node are ending

    def _look_at(self, now: float) -> float:
        """Return when to look again; without neighbours, only when the store is asked."""
        return now + WATCH_SECONDS if self._known else self._ask_at


def _marks(instances: Sequence[InstanceRecord]) -> dict[str, ProcessMark]:
    """Return the mark of each node that has one."""
    return {known.beat.node: known.beat.process for known in instances if known.beat.process is not None}
