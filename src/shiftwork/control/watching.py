"""A look at what runs, cheap enough for once a second: pools, instances and the jobs in their hands.

Each look is four questions to the store, whose cost does not depend on how much it holds: numbers, instances, the
survey, and a bounded page of running jobs. What seldom changes is asked for seldom.
"""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from shiftwork.control.operations import member
from shiftwork.core.docs import PLAN, PLAN_NAME, POOL_CONFIG
from shiftwork.core.model import JobFilter, JobRecord, JobStatus, Plan, PoolConfig, WorkerInstance
from shiftwork.store.docs import read, read_all
from shiftwork.store.protocol import Store
from shiftwork.views.overview import NodeView, PoolView, node_views, pool_views
from shiftwork.views.snapshot import leader_of

MOST_JOBS: Final = 200
"""How many of the running jobs are fetched, the newest first."""
SELDOM_SECONDS: Final = 5.0
"""How old the plan and the pools' definitions may be."""


class Glance(Struct, frozen=True, kw_only=True):
    """What runs, at one moment."""

    at: float
    store: str
    leader: str | None
    nodes: list[NodeView]
    pools: list[PoolView]
    instances: list[WorkerInstance]
    """`current_jobs` holds those that are in `jobs`."""
    jobs: list[JobRecord]
    """Running ones, the longest running first; of very many, the newest."""


class Watch:
    """Looks again and again."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store = store
        self._now = now
        self._plan = Plan()
        self._pools: dict[str, PoolConfig] = {}
        self._again_at: float | None = None

    async def look(self, here: Mapping[str, PoolConfig]) -> Glance:
        """Look once. `here`: the pools that are registered in this process."""
        now = self._now()
        if self._again_at is None or not now < self._again_at <= now + SELDOM_SECONDS:
            await self._look_closely()
            self._again_at = now + SELDOM_SECONDS
        stats = await self._store.stats(now)
        facts = await self._store.survey(None, now)
        instances = await self._store.instances()
        jobs = await self._store.find(JobFilter(status=(JobStatus.PROCESSING,), limit=MOST_JOBS))
        held: dict[str, list[str]] = {}
        for record in jobs:
            held.setdefault(record.instance or "", []).append(record.id)
        live = [known for known in instances if known.expires_at > now]
        members = (member(known, held.get(known.beat.instance, []), now) for known in instances if known.beat.pool)
        return Glance(
            at=now,
            store=self._store.url,
            leader=leader_of(live, now),
            nodes=node_views(live, self._plan, now),
            pools=pool_views(self._pools | dict(here), stats=stats, facts=facts, live=live, plan=self._plan, now=now),
            instances=sorted(members, key=lambda one: (one.pool, one.started_at, one.id)),
            jobs=sorted(jobs, key=lambda record: (record.started_at or now, record.id)),
        )

    async def _look_closely(self) -> None:
        self._plan = await read(self._store, PLAN, PLAN_NAME) or Plan()
        self._pools |= await read_all(self._store, POOL_CONFIG)
