"""The other nodes on this machine: when one is proven dead, its jobs are taken back without waiting for its leases.

Looking costs next to nothing: the processes of known neighbours every second, the store once a beat, and at the start.
"""

from typing import Final

from shiftwork.core.model import ProcessMark
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.leader.leader import Leader
from shiftwork.runtime.local_processes import end_groups, is_dead
from shiftwork.store.protocol import Store

WATCH_SECONDS: Final = 1.0
"""How often to look whether the known neighbours live."""
AGAIN_SECONDS: Final = 0.05
"""How soon to look again while processes of a dead node are ending; doubled each time, up to `WATCH_SECONDS`."""


class Neighbours:
    """Notices the death of nodes on this machine."""

    def __init__(self, store: Store, clock: Clock, leader: Leader, *, mark: ProcessMark | None, every: float) -> None:
        self._store = store
        self._clock = clock
        self._leader = leader
        self._own = mark
        self._every = every
        """How often to ask the store who the neighbours are."""
        self._known: set[ProcessMark] = set()
        """The neighbours, and those of the dead whose processes have not ended yet."""
        self._ask_at = 0.0
        self._again = AGAIN_SECONDS

    async def poll(self) -> float | None:
        """Look at the neighbours, and ask the store if that is due or if one of them is dead."""
        own = self._own
        if own is None:
            return None
        now = self._clock.now()
        if now < self._ask_at and not any(is_dead(mark, own) for mark in self._known):
            return now + WATCH_SECONDS
        self._ask_at = now + self._every
        if await self._bury(own):
            self._again = AGAIN_SECONDS
            return now + WATCH_SECONDS
        again, self._again = self._again, min(2 * self._again, WATCH_SECONDS)
        return now + again

    async def _bury(self, own: ProcessMark) -> bool:
        """Have the jobs of dead neighbours taken back; returns whether none is left whose processes have not ended."""
        instances = await self._store.instances()
        nodes = {it.beat.node: it.beat for it in instances if it.beat.process and it.beat.process.place == own.place}
        marks = {name: beat.process for name, beat in nodes.items() if beat.process is not None}
        dead = {name for name, mark in marks.items() if is_dead(mark, own)}
        ended = {name for name in dead if end_groups(nodes[name].children, marks[name])}
        self._known = {mark for name, mark in marks.items() if name not in ended and mark != own}
        if dead:
            await self._leader.depose(dead)
        if ended:
            await self._leader.bury(ended, instances)
        return dead == ended
