"""A glance at what runs, cheap enough for once a second: pools, instances and running jobs.

Each glance asks the store four questions, whose cost does not depend on how much it holds: numbers, instances, the
survey, and a bounded page of running jobs. What rarely changes is read every few seconds.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.registry import LocalRegistry
from shiftwork.core.doc_kinds import PLAN, PLAN_NAME, POOL_CONFIG
from shiftwork.core.model.doc_types import Plan
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobStatus
from shiftwork.store.docs import read, read_all
from shiftwork.store.protocol import Store
from shiftwork.views.instances import Glance, held, instance_of, place
from shiftwork.views.overview import node_views, pool_views
from shiftwork.views.snapshot import leader_of

if TYPE_CHECKING:
    from shiftwork.core.model.workers import PoolConfig

MOST_GLANCED_JOBS: Final = 200
"""How many of the running jobs are read, the newest first."""
GLANCE_KEPT_SECONDS: Final = 5.0
"""How long the plan and the pools' definitions are reused."""


class Glances:
    """Takes glances, and keeps what rarely changes between them."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], registry: LocalRegistry) -> None:
        self._access = access
        self._now = now
        self._registry = registry
        self._plan = Plan()
        self._pools: dict[str, PoolConfig] = {}
        self._read_again_at: float | None = None

    async def take(self) -> Glance:
        """Return what runs now."""
        store, now = await self._access.open(), self._now()
        if self._read_again_at is None or not now < self._read_again_at <= now + GLANCE_KEPT_SECONDS:
            await self._read_definitions(store)
            self._read_again_at = now + GLANCE_KEPT_SECONDS
        stats = await store.stats(now)
        facts = await store.survey(None, now)
        records = await store.instances()
        jobs = await store.find(JobFilter(status=(JobStatus.PROCESSING,), limit=MOST_GLANCED_JOBS))
        running = held(jobs)
        live = [record for record in records if record.expires_at > now]
        pools = self._pools | self._registry.pool_configs()
        instances = [instance_of(one, running.get(one.beat.instance, []), now) for one in records if one.beat.pool]
        ahead = {id for one in instances for id in running.get(one["id"], [])[len(one["current_jobs"]) :]}
        return Glance(
            at=now,
            store=store.url,
            leader=leader_of(live, now),
            nodes=node_views(live, self._plan, now),
            pools=pool_views(pools, stats=stats, facts=facts, live=live, plan=self._plan, now=now),
            instances=sorted(instances, key=place),
            jobs=sorted((job for job in jobs if job.id not in ahead), key=lambda job: (job.started_at or now, job.id)),
            more=len(jobs) == MOST_GLANCED_JOBS,
        )

    async def _read_definitions(self, store: Store) -> None:
        self._plan = await read(store, PLAN, PLAN_NAME) or Plan()
        self._pools |= await read_all(store, POOL_CONFIG)
