"""The leader's part in the plan: it gathers the facts, and writes the plan that `core.scaling.plan` makes of them.

Any process may do this. The plan is changed by compare-and-set, so a process that comes second decides again, from the
plan that is there by then.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from heapq import nlargest
from typing import Final

from msgspec import Struct

from shiftwork.core.docs import PLAN, PLAN_NAME, POOL, POOL_CONFIG, WORKER
from shiftwork.core.model.doc import Doc, Plan, PoolDoc
from shiftwork.core.model.job import JobPriority
from shiftwork.core.model.outcome import Lost
from shiftwork.core.model.worker import PoolConfig
from shiftwork.core.observing.beats import Beat, InstanceRecord
from shiftwork.core.observing.stats import Stats
from shiftwork.core.scaling.plan import PlanFacts, PlanMemory, Planned, is_at_rest, next_plan, with_lost
from shiftwork.core.workers.admission import Facts, Gates
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.leader.outlook import Outlook
from shiftwork.runtime.registry import WorkerDefinition
from shiftwork.store.docs import change, read_all
from shiftwork.store.protocol import Store

MOST_SURVEYED: Final = 100
"""Of how many workers, those with the most queued jobs, the gates are looked at for a plan."""
REREAD_SECONDS: Final = 60.0
"""How often the definitions of workers that this app does not have are read again."""


class PlanView(Struct, frozen=True):
    """What the plan is made of, as it was at one moment."""

    now: float
    instances: Sequence[InstanceRecord]
    stats: Stats
    changes: Mapping[str, PoolDoc]
    """What people have changed about pools."""
    plan: Doc
    """The plan as it is stored, or an empty doc."""


class Planner:
    """Looks at the queues and the nodes, and writes the plan."""

    def __init__(
        self,
        pools: Mapping[str, PoolConfig],
        workers: Mapping[str, WorkerDefinition],
        store: Store,
        clock: Clock,
        *,
        outlook: Outlook | None = None,
        gates: Callable[[], Mapping[str, Gates]] = dict,
    ) -> None:
        self._pools = pools
        self._gates = gates
        """Returns the gates of this app's workers: at its first start the store has none yet."""
        self._store = store
        self._clock = clock
        self._workers = workers
        self._outlook = outlook or Outlook(list)
        self._memory = PlanMemory()
        self._elsewhere: dict[str, str | None] = {}
        """The pools of workers that this app does not have; None for one that no app has any longer."""
        self._reread_at = 0.0
        self.unknown: frozenset[str] = frozenset()
        """The workers that have queued jobs and that no live node has, as of the last plan."""
        self.resting = False
        """Whether the next plan can wait until something happens to a pool of this app."""

    async def plan(self, seen: PlanView | None = None) -> Planned:
        """Plan once, by what was seen just now if that is given, and write the plan if it has changed."""
        seen = seen or await self.look()
        facts = await self._facts(seen)
        made: list[Planned] = []

        def planned(before: Plan | None) -> Plan:
            made.append(next_plan(before or Plan(), facts, self._memory))
            return made[-1].plan

        await change(self._store, PLAN, PLAN_NAME, planned, known=seen.plan)
        latest, before = made[-1], self._memory
        self._memory = latest.memory
        self.resting = facts.pools.keys() <= self._pools.keys() and is_at_rest(latest, facts, before)
        return latest

    async def look(self) -> PlanView:
        """Read what the plan is made of, in one round trip."""
        now, store = self._clock.now(), self._store
        instances, stats, docs = await asyncio.gather(
            store.instances(), store.stats(now), store.docs(POOL.name, PLAN.name)
        )
        changes = {doc.name: read for doc in docs if doc.kind == POOL.name and (read := POOL.decode(doc.body))}
        plans = (doc for doc in docs if (doc.kind, doc.name) == (PLAN.name, PLAN_NAME))
        return PlanView(now, instances, stats, changes, next(plans, Doc(PLAN.name, PLAN_NAME, b"")))

    async def _facts(self, seen: PlanView) -> PlanFacts:
        beats = [known.beat for known in seen.instances if known.expires_at > seen.now]
        there = {worker for beat in beats if beat.machine for worker in beat.workers}
        workers = seen.stats.workers
        self.unknown = frozenset(name for name, one in workers.items() if one.queued and name not in there)
        pools = await self._hosted_pools(beats)
        waiting = {name: one.queued for name, one in workers.items() if one.queued}
        surveyed = nlargest(MOST_SURVEYED, waiting, waiting.__getitem__)
        return PlanFacts(
            now=seen.now,
            pools=pools,
            changes=seen.changes,
            floors=self._outlook.floors(pools, seen.now),
            stats=seen.stats.pools,
            workers=workers,
            pool_of=await self._pool_of(workers, seen.now),
            admission=await self._survey(surveyed, seen.now) if surveyed else Facts(),
            beats=beats,
            priorities=_priorities(self._workers),
        )

    async def _survey(self, workers: Sequence[str], now: float) -> Facts:
        facts, own = await self._store.survey(workers, now), self._gates()
        for name in workers:
            if name in own:
                facts.gates.setdefault(name, own[name])
        return facts

    async def _hosted_pools(self, beats: Sequence[Beat]) -> dict[str, PoolConfig]:
        """Return every pool that a live node can host: those of this app, and those that only other nodes know."""
        hosted = {pool for beat in beats if beat.machine for pool in beat.machine.pools}
        found = {name: pool for name, pool in self._pools.items() if name in hosted or not hosted}
        missing = hosted - found.keys()
        stored = await read_all(self._store, POOL_CONFIG) if missing else {}
        return found | {name: pool for name, pool in stored.items() if name in missing}

    async def _pool_of(self, names: Collection[str], now: float) -> dict[str, str]:
        """Return the pool of each of these workers: those of this app, and those that only other nodes know."""
        missing = {*names} - self._workers.keys()
        if missing - self._elsewhere.keys() or (missing and now >= self._reread_at):
            stored = await read_all(self._store, WORKER)
            self._elsewhere = {name: stored[name].pool if name in stored else None for name in missing}
            self._reread_at = now + REREAD_SECONDS
        own = {name: self._workers[name].config.pool for name in names if name in self._workers}
        return own | {name: pool for name in missing if (pool := self._elsewhere[name]) is not None}


def _priorities(workers: Mapping[str, WorkerDefinition]) -> dict[str, JobPriority]:
    """Return the highest priority among the workers of each pool."""
    highest: dict[str, JobPriority] = {}
    for worker in workers.values():
        pool, priority = worker.config.pool, worker.config.priority
        highest[pool] = max(priority, highest.get(pool, priority))
    return highest


async def record_lost(store: Store, lost: Mapping[str, Lost]) -> None:
    """Record in the plan that these nodes have vanished."""
    await change(store, PLAN, PLAN_NAME, lambda plan: with_lost(plan or Plan(), lost))
