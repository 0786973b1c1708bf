"""Which node leads: the one that holds the lease "leader". This module owns one node's part in that.

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
from collections.abc import Iterable
from enum import Enum, auto
from typing import Final

from shiftwork.runtime.outcomes.reporter import Reporter
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")

LEASE: Final = "leader"


class LeaderState(Enum):
    """What a node is; see the drawing above."""

    FOLLOWING = auto()
    LEADING = auto()
    RESIGNED = auto()


class Leadership:
    """Takes the lease if it can, renews it, and gives it back."""

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
        granted = await self._store.hold(LEASE, self._node, 1, self._ttl, now)
        if self._resigned():  # while the store was asked
            await self._store.drop(LEASE, self._node)
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
            await self._store.drop(LEASE, self._node)

    async def depose(self, nodes: Iterable[str]) -> None:
        """Take the lease from nodes that are proven dead."""
        await asyncio.gather(*(self._store.drop(LEASE, node) for node in nodes))

    def _become(self, state: LeaderState) -> None:
        before, self.state = self.state, state
        if (before, state) == (LeaderState.FOLLOWING, LeaderState.LEADING):
            self._reporter.emit("leader.elected", self._node, f"node {self._node} leads")
        elif (before, state) == (LeaderState.LEADING, LeaderState.FOLLOWING):
            logger.warning("node %s no longer leads: another node holds the lease", self._node)
