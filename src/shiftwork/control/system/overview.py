"""The system as a whole: the overview, health, and a glance that is cheap enough for once a second."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.definitions import CommandFamily, ControlServices, LocalRegistry
from shiftwork.core.doc_kinds import (
    EDITION,
    EDITION_NAME,
    EXPIRED_LATELY,
    NOTICED,
    NOTICED_NAME,
    PLAN,
    PLAN_NAME,
    POOL_CONFIG,
    RESCHEDULED,
    SCHEDULE,
    WORKER,
)
from shiftwork.core.health.health_values import Health, Noticed, Strays, WriteFault
from shiftwork.core.model.doc_types import Plan
from shiftwork.core.model.job_changes import JobFilter
from shiftwork.core.model.jobs import JobStatus
from shiftwork.core.schedules.timing import rescheduled
from shiftwork.errors import StoreError
from shiftwork.runtime.outage_log import TEST, OutageLog
from shiftwork.store.abilities import try_room
from shiftwork.store.docs import decoded, read, read_all
from shiftwork.store.flow_failures import stranded_flows
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_ring import keys_in_use
from shiftwork.views.instances import Glance, held, instance_of, place
from shiftwork.views.overview import Overview, node_views, overview_of, pool_views
from shiftwork.views.snapshot import Snapshot, judged, leader_of

if TYPE_CHECKING:
    from shiftwork.core.model.workers import PoolConfig


FindStrays = Callable[[], Mapping[str, Strays]]
"""Returns, by instance of this process, which runs go on although they were told to stop."""
StoreFault = Callable[[], str | None]
"""Returns which write of another process fails now, if one does; the node's, for the process of its dashboard."""

FOUND_SECONDS: Final = 1.0
"""A write that has failed for less than this was just found to fail; it may have failed for longer."""


SNAPSHOT_KINDS: Final = (WORKER, POOL_CONFIG, RESCHEDULED, SCHEDULE, PLAN, EDITION, EXPIRED_LATELY)
"""The records that a snapshot is made of."""
TRIED_PLACE: Final = "doctor"
NO_LIMIT: Final = 1_000_000
"""A limit on holders that is never reached."""


MOST_GLANCED_JOBS: Final = 200
"""How many of the running jobs are read, the newest first."""
GLANCE_KEPT_SECONDS: Final = 5.0
"""How long the plan and the pools' definitions are reused."""


class System(CommandFamily):
    """Answers questions about everything at once."""

    def __init__(
        self,
        services: ControlServices,
        *,
        lease_seconds: float,
        strays: FindStrays,
        outages: OutageLog,
        store_fault: StoreFault,
    ) -> None:
        super().__init__(services)
        self._lease_seconds = lease_seconds
        self._strays = strays
        self._outages = outages
        self._store_fault = store_fault
        self._glances = Glances(services.access, services.now, services.registry)

    async def overview(self, *, try_write: bool = False) -> Overview:
        """Return every worker, every pool, the leader and what is wrong, from one snapshot.

        `try_write` writes to the store too: one that can only be read is a problem.
        """
        if try_write:
            await self._try_write()
        seen = await self._snapshot()
        ours, pools = self._registry.worker_configs(), self._registry.pool_configs()
        workers = {name: rescheduled(config, seen.rescheduled.get(name)) for name, config in ours.items()}
        with_ours = replace(seen, workers=seen.workers | workers, pools=seen.pools | pools)
        return overview_of(with_ours, await self._judged(seen), store=self._access.url)

    async def glance(self) -> Glance:
        """Return pools, instances and running jobs; cheap enough for once a second."""
        return await self._glances.take()

    async def health(self, *, with_room: bool = False) -> Health:
        """Return what is wrong now, with the remedy. A store that has no room for more is found if asked for."""
        if with_room:
            await self._try_room()
        return await self._judged(await self._snapshot())

    async def _try_write(self) -> None:
        """Write to the store; how that went is in the outage log."""
        store = await self._access.open()
        with suppress(StoreError):
            await self._outages.track(TEST, try_write(store, self._now()))

    async def _try_room(self) -> None:
        """Find out whether the store has room for more jobs; how that went is in the outage log."""
        store = await self._access.open()
        with suppress(StoreError):
            await self._outages.track(TEST, try_room(store))

    async def _judged(self, seen: Snapshot) -> Health:
        fault = None
        if ours := self._outages.fault:
            lasting = self._outages.fault_seconds
            fault = WriteFault(ours, None if lasting < FOUND_SECONDS else seen.at - lasting)
        elif theirs := self._store_fault():
            fault = WriteFault(theirs)
        health = judged(seen, self._strays(), lease_seconds=self._lease_seconds, store_fault=fault)
        if all(problem.since is not None for problem in health.problems):
            return health
        noticed = await read(await self._access.open(), NOTICED, NOTICED_NAME) or Noticed()
        return noticed.dated(health)

    async def _snapshot(self) -> Snapshot:
        """Ask the store five questions at once, and more if jobs wait for others; what they cost does not depend on how
        many jobs there are.
        """
        store, now = await self._access.open(), self._now()
        docs, stats, facts, instances, in_use = await asyncio.gather(
            store.docs(*(kind.name for kind in SNAPSHOT_KINDS)),
            store.stats(now),
            store.survey(None, now),
            store.instances(),
            keys_in_use(store),
        )
        changes = decoded(docs, RESCHEDULED)
        waiting = any(pool.waiting for pool in stats.pools.values())
        return Snapshot(
            at=now,
            facts=facts,
            stats=stats,
            instances=instances,
            workers={name: rescheduled(one, changes.get(name)) for name, one in decoded(docs, WORKER).items()},
            rescheduled=changes,
            pools=decoded(docs, POOL_CONFIG),
            cursors=decoded(docs, SCHEDULE),
            plan=decoded(docs, PLAN).get(PLAN_NAME, Plan()),
            keys_in_use=in_use,
            edition=decoded(docs, EDITION).get(EDITION_NAME),
            expired=decoded(docs, EXPIRED_LATELY),
            stranded=await stranded_flows(store) if waiting else [],
        )


class Glances:
    """Takes glances, and keeps what rarely changes between them.

    Each glance asks the store four questions at once, whose cost does not depend on how much it holds: numbers,
    instances, the survey, and a bounded page of running jobs. What rarely changes is read every few seconds.
    """

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
        stats, facts, records, jobs = await asyncio.gather(
            store.stats(now),
            store.survey(None, now),
            store.instances(),
            store.find(JobFilter(status=(JobStatus.PROCESSING,), limit=MOST_GLANCED_JOBS)),
        )
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


async def try_write(store: Store, now: float) -> None:
    """Take and return a place that has no limit, and find out whether there is room for more. Raises what fails."""
    holder = f"{TRIED_PLACE} {token_hex(4)}"
    await store.hold(TRIED_PLACE, holder, NO_LIMIT, 60.0, now)
    await store.drop(TRIED_PLACE, holder)
    await try_room(store)
