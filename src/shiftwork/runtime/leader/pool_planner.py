"""Plans how many slots each pool has on each node: gathers the facts, writes what `core.scaling.plan` makes of them.

`PlannerDuty` decides when, `PoolPlanner` does it, and `LoadForecast` looks ahead. Any process may plan: the plan is
changed by compare-and-set, so a process that comes second decides again, from the plan that is there by then.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from heapq import nlargest
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from shiftwork.core.doc_kinds import PLAN, PLAN_NAME, POOL, POOL_CONFIG, WORKER
from shiftwork.core.model.doc_types import Doc, Plan, PoolDoc
from shiftwork.core.model.event import Event
from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import Beat, InstanceRecord
from shiftwork.core.observing.pool_history import MINUTE, Hour
from shiftwork.core.observing.pool_stats import Stats
from shiftwork.core.scaling.forecast import floors_ahead
from shiftwork.core.scaling.plan import (
    PLAN_SECONDS,
    REST_SECONDS,
    SOON_SECONDS,
    PlanFacts,
    PlanMemory,
    Planned,
    is_at_rest,
    next_plan,
)
from shiftwork.core.scaling.size import Floor
from shiftwork.core.workers.admission import Facts, Gates
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import Duty
from shiftwork.runtime.registry import WorkerDefinition
from shiftwork.store.docs import change, read_all
from shiftwork.store.protocol import Store

if TYPE_CHECKING:
    from shiftwork.runtime.clock import Timer

MOST_SURVEYED: Final = 100
"""Of how many workers, those with the most queued jobs, the gates are looked at for a plan."""
REREAD_SECONDS: Final = 60.0
"""How often the definitions of workers that this app does not have are read again."""


class PlanView(Struct, frozen=True):
    """What the plan is made of; its parts are read side by side."""

    now: float
    instances: Sequence[InstanceRecord]
    stats: Stats
    changes: Mapping[str, PoolDoc]
    """What people have changed about pools."""
    plan: Doc
    """The plan as it is stored, or an empty doc."""


class LoadForecast:
    """Computes the floors from the hours that the stats recorder has in memory: the store is not asked."""

    def __init__(self, hours: Callable[[], Sequence[Hour]]) -> None:
        self._hours = hours
        self._made_of: object = None
        self._floors: Mapping[str, Floor] = {}

    def floors(self, pools: Mapping[str, PoolConfig], now: float) -> Mapping[str, Floor]:
        """Return the floor of each pool that yesterday's curve raises now."""
        hours = self._hours()
        made_of = int(now // MINUTE), hours[-1].number if hours else None, frozenset(pools)
        if made_of != self._made_of:
            moments = sorted((moment for hour in hours for moment in hour.moments), key=lambda one: one.at)
            self._floors, self._made_of = floors_ahead(pools, moments, now), made_of
        return self._floors


class PoolPlanner:
    """Looks at the queues and the nodes, and writes the plan."""

    def __init__(
        self,
        pools: Mapping[str, PoolConfig],
        workers: Mapping[str, WorkerDefinition],
        store: Store,
        clock: Clock,
        *,
        forecast: LoadForecast | None = None,
        gates: Callable[[], Mapping[str, Gates]] = dict,
    ) -> None:
        self._pools = pools
        self._gates = gates
        """Returns the gates of this app's workers: at its first start the store has none yet."""
        self._store = store
        self._clock = clock
        self._workers = workers
        self._forecast = forecast or LoadForecast(list)
        self._memory = PlanMemory()
        self._elsewhere: dict[str, str | None] = {}
        """The pools of workers that this app does not have; None for one that no app has any longer."""
        self._reread_at = 0.0
        self.unknown: frozenset[str] = frozenset()
        """The workers that have queued jobs and that no live node has, as of the last plan."""
        self.resting: bool = False
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
            floors=self._forecast.floors(pools, seen.now),
            stats=seen.stats.pools,
            workers=workers,
            pool_of=await self._pool_of(workers, seen.now),
            admission=await self._survey(surveyed, seen.now) if surveyed else Facts(),
            unknown=self.unknown - self._workers.keys() if there else (),
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


class PlannerDuty:
    """Makes the plan when this node leads: every second, soon after a pool has no free slot left, seldom at rest."""

    def __init__(
        self,
        planner: "PoolPlanner",
        clock: Clock,
        *,
        leads: Callable[[], bool],
        publish: Callable[[Event], None],
        make_duty: Callable[[str, Callable[[], Awaitable[float | None]], str], Duty],
    ) -> None:
        self._clock = clock
        self._leads = leads
        self._publish = publish
        self._planner = planner
        self._planned_at = 0.0
        self._urgent = False
        """Whether a pool has no free slot left."""
        self._resting = False
        self._waking: Timer | None = None
        self.duty: Duty = make_duty("planner", self._poll, "state")
        self.on_unknown_workers: Callable[[], None] = lambda: None
        """Called when there are jobs of a worker that no live node has, or no longer are."""
        self._unknown: frozenset[str] = frozenset()

    def soon(self) -> None:
        """Plan soon: a pool has no free slot left, for instance. Safe from any thread."""
        self._urgent = True
        self.duty.ring()

    def wake(self) -> None:
        """End the rest: jobs may have come. They start first."""
        if self._resting:
            self._resting = False
            self._waking = self._clock.call_in(SOON_SECONDS, self.duty.ring)

    async def look(self) -> PlanView:
        """Read what the plan is made of."""
        return await self._planner.look()

    async def plan(self, seen: PlanView | None = None) -> Planned:
        """Decide how many slots each pool has, here and elsewhere, by what was seen just now if that is given."""
        planned = await self._planner.plan(seen)
        for event in planned.events:
            self._publish(event)
        if self._planner.unknown != self._unknown:
            self._unknown = self._planner.unknown
            self.on_unknown_workers()
        return planned

    async def _poll(self) -> float | None:
        now = self._clock.now()
        due_at = self._planned_at + (SOON_SECONDS if self._urgent or self._resting else PLAN_SECONDS)
        if self._planned_at <= now < due_at:
            return due_at
        self._urgent = False
        if self._waking is not None:
            self._waking.cancel()
        leads = self._leads()
        if leads:
            await self.plan()
        self._planned_at = now  # not if it failed: coming too early would count as having worked
        self._resting = self._planner.resting or not leads
        return now + (REST_SECONDS if self._resting else PLAN_SECONDS)


def slots_in(plan: Plan, node: str) -> Mapping[str, int] | None:
    """Return how many slots of each pool a node has in a plan; None if the plan does not know it."""
    # Drained is drained, even before the leader has planned without the node.
    return {} if node in plan.drained else plan.nodes.get(node)
