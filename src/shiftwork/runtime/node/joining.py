"""How a node joins the nodes that share its store, in three round trips: read, beat and look around, write."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.change import JobFilter
from shiftwork.core.model.doc import Plan
from shiftwork.core.model.job import LIVE, JobStatus
from shiftwork.core.model.worker import PoolConfig
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.stats import Stats
from shiftwork.runtime.duty import together
from shiftwork.runtime.leader.planner import PlanView
from shiftwork.runtime.node.cluster_duties import ClusterDuties
from shiftwork.runtime.node.environment import NodeEnvironment
from shiftwork.runtime.node.namespace_guard import NamespaceGuard
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")


async def left_pools(
    store: Store, *, registered: Collection[str], workers: Collection[str], stats: Stats
) -> list[PoolConfig]:
    """The pools beside the registered ones in which these workers have jobs. Each is served with one slot."""
    left: list[PoolConfig] = []
    live = tuple(JobStatus(status) for status in LIVE)
    for name in stats.pools.keys() - set(registered):
        for worker in workers:
            if await store.find(JobFilter(pool=name, worker=worker, status=live, limit=1)):
                logger.info("pool %s is not registered, but %s has jobs in it; they run one at a time", name, worker)
                left.append(PoolConfig(name=name, max_workers=1))
                break
    return left


MORE_TURNS: Final = 2
"""How often to try again when a turn has ended before we had looked around: a slow store must not keep us out."""


class Joining:
    """Publishes the definitions, takes a place in the plan, and leads if no other node does."""

    def __init__(
        self, environment: NodeEnvironment, cluster: ClusterDuties, *, beat: Callable[[], Awaitable[object]]
    ) -> None:
        self._environment = here = environment
        self._cluster = cluster
        self._beat = beat
        """Renews the leases now."""
        self._guard = NamespaceGuard(
            here.store,
            here.clock,
            node=here.node,
            workers=here.registry.workers.keys(),
            namespace=here.settings.namespace,
        )

    async def join(self, pools: Collection[str], serve: Callable[[PoolConfig], object]) -> Plan:
        """Join with these pools, and return the plan. `serve` gets the pools in which jobs were left besides.

        Raises `NamespaceInUseError`.
        """
        here, cluster, guard = self._environment, self._cluster, self._guard
        # A store may have to connect before it can claim, which takes as long as all the rest.
        ready_to_claim = asyncio.ensure_future(here.store.claim(here.node, "", 0, here.clock.now(), ()))
        try:
            _, stored = await together(guard.enter(), here.publication.read())
            seen, living = await self._look_around()
        except BaseException:
            await asyncio.wait([ready_to_claim])
            await cluster.leave(())
            await guard.leave()
            raise
        here.reporter.learn(stored.lanes)
        workers = here.registry.workers.keys()
        for pool in await left_pools(here.store, registered=pools, workers=workers, stats=seen.stats):
            serve(pool)
        planned, *_ = await together(
            # Whichever node leads: it may not know us yet, and it may be dead.
            cluster.planning.plan(replace(seen, instances=living)),
            here.publication.begin(stored),
            cluster.succeed(seen.instances),
            guard.leave(),
            ready_to_claim,
        )
        plan: Plan = planned.plan
        return plan

    async def _look_around(self) -> tuple[PlanView, list[InstanceRecord]]:
        """Beat for the first time, and return what is there by then, and the instances that are not proven dead."""
        seen: PlanView
        look = self._cluster.planning.look
        _, seen = await together(self._beat(), look())
        for _ in range(MORE_TURNS):
            if not self._guard.lapsed:
                break
            await self._cluster.leave(())
            await self._guard.enter()
            _, seen = await together(self._beat(), look())
        if self._guard.lapsed:
            # Our beat is in the store: of two, the one that beats second sees the first. Both may leave.
            seen = await look()
        living = self._cluster.neighbours.living_among(seen.instances)
        self._guard.check(living)
        return seen, living
