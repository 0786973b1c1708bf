"""How a node joins the nodes that share its store, in three round trips: read, beat and look around, write.

Nodes join one at a time (`JoinLock`), so that of two that start at the same instant one stays and the other sees it. A
node that held the lock for too long, because the store was slow, may have missed another one that joined meanwhile: it
withdraws its beat and tries again, twice. Then the one that beats second sees the first. A namespace that belongs to
another app is left again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from shiftwork.core.model.doc_types import Plan
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import LIVE
from shiftwork.core.model.workers import PoolConfig
from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.observing.pool_stats import Stats
from shiftwork.core.workers.joining import joining_refusal, other_app
from shiftwork.errors import NamespaceInUseError, StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.duty import together
from shiftwork.runtime.leader.pool_planner import PlanView
from shiftwork.runtime.node.cluster_duties import ClusterDuties
from shiftwork.runtime.node.node_services import NodeServices
from shiftwork.store.protocol import Store

logger: Final = logging.getLogger("shiftwork")


JOIN_LOCK: Final = "namespace guard"
"""The name of the lease: nodes of older versions use it, too."""
JOIN_LOCK_SECONDS: Final = 5.0
"""How long a node that died while it joined keeps others from joining."""
JOIN_RETRY_SECONDS: Final = 0.05
MORE_TRIES: Final = 2
"""How often to try again when the lock was lost before we had looked around: a slow store must not keep us out."""


async def left_pools(
    store: Store, *, registered: Collection[str], workers: Collection[str], stats: Stats
) -> list[PoolConfig]:
    """Return the pools beside the registered ones in which these workers have jobs. Each is served with one slot."""
    left: list[PoolConfig] = []
    for name in stats.pools.keys() - set(registered):
        for worker in workers:
            if await store.find(JobFilter(pool=name, worker=worker, status=LIVE, limit=1)):
                logger.info("pool %s is not registered, but %s has jobs in it; they run one at a time", name, worker)
                left.append(PoolConfig(name=name, max_workers=1))
                break
    return left


class NodeJoin:
    """Publishes the definitions, takes a place in the plan, and leads if no other node does."""

    def __init__(
        self, services: NodeServices, cluster: ClusterDuties, *, beat: Callable[[], Awaitable[object]]
    ) -> None:
        self._services = here = services
        self._cluster = cluster
        self._beat = beat
        """Renews the leases now."""
        self._lock = JoinLock(
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
        here, cluster, lock = self._services, self._cluster, self._lock
        # A store may have to connect before it can claim, which takes as long as all the rest.
        ready_to_claim = asyncio.ensure_future(here.store.claim(here.node, "", 0, here.clock.now(), ()))
        try:
            _, stored = await together(lock.acquire(), here.publication.read())
            seen, living = await self._look_around()
            workers = here.registry.workers.keys()
            left = await left_pools(here.store, registered=pools, workers=workers, stats=seen.stats)
        except BaseException:
            await asyncio.gather(ready_to_claim, return_exceptions=True)
            await cluster.leave(())
            await lock.release()
            raise
        here.reporter.learn(stored.lanes)
        for pool in left:
            serve(pool)
        planned, *_ = await together(
            # Whichever node leads: it may not know us yet, and it may be dead.
            cluster.planner.plan(replace(seen, instances=living)),
            here.publication.begin(stored),
            cluster.succeed(seen.instances),
            lock.release(),
            ready_to_claim,
        )
        plan: Plan = planned.plan
        return plan

    async def _look_around(self) -> tuple[PlanView, list[InstanceRecord]]:
        """Beat for the first time, and return what is there by then, and the instances that are not proven dead."""
        seen: PlanView
        look = self._cluster.planner.look
        _, seen = await together(self._beat(), look())
        for _ in range(MORE_TRIES):
            if not self._lock.lapsed:
                break
            await self._cluster.withdraw()
            await self._lock.acquire()
            _, seen = await together(self._beat(), look())
        if self._lock.lapsed:
            # Our beat is in the store: of two, the one that beats second sees the first. Both may leave.
            seen = await look()
        living = self._cluster.neighbours.living_among(seen.instances)
        self._lock.check(living)
        return seen, living


class JoinLock:
    """Lets one node at a time join."""

    def __init__(self, store: Store, clock: Clock, *, node: str, workers: Collection[str], namespace: str) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._workers = workers
        self._namespace = namespace
        self._ends_at = 0.0

    async def acquire(self) -> None:
        """Wait until we hold the lock."""
        while True:
            now = self._clock.now()
            if await self._store.hold(JOIN_LOCK, self._node, 1, JOIN_LOCK_SECONDS, now):
                self._ends_at = now + JOIN_LOCK_SECONDS
                return
            await asyncio.sleep(JOIN_RETRY_SECONDS)

    @property
    def lapsed(self) -> bool:
        """Whether the lock has expired, so that another node may have joined."""
        return self._clock.now() >= self._ends_at

    def check(self, others: Sequence[InstanceRecord]) -> None:
        """Raise `NamespaceInUseError` if one of these instances is of a live node that shares no worker with us."""
        now = self._clock.now()
        tenant = other_app(self._node, self._workers, others, now)
        if tenant is not None:
            url = self._store.url
            raise NamespaceInUseError(
                joining_refusal(tenant, self._workers, namespace=self._namespace, store=url, now=now)
            )

    async def release(self) -> None:
        """Let the next node join. If the store fails, it can in a few seconds."""
        with suppress(StoreError):
            await self._store.drop(JOIN_LOCK, self._node)
