"""The system as a whole: overview and health."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.definitions import Definitions
from shiftwork.control.registry import LocalRegistry
from shiftwork.control.system.glances import Glances
from shiftwork.control.system.latency import try_write
from shiftwork.core.doc_kinds import (
    EDITION,
    EDITION_NAME,
    EXPIRED_LATELY,
    NOTICED,
    NOTICED_NAME,
    PLAN,
    PLAN_NAME,
    RESCHEDULED,
    SCHEDULE,
)
from shiftwork.core.health.health_values import Health, Noticed, Strays, WriteFault
from shiftwork.core.model.doc_types import Plan
from shiftwork.core.schedules.timing import rescheduled
from shiftwork.errors import StoreError
from shiftwork.runtime.store_voice import TEST, StoreVoice
from shiftwork.store.abilities import try_room
from shiftwork.store.docs import read, read_all
from shiftwork.store.flow_failures import stranded_flows
from shiftwork.store.sealed.key_use import keys_in_use
from shiftwork.views.instances import Glance
from shiftwork.views.overview import Overview, overview_of
from shiftwork.views.snapshot import Snapshot, judged

FindStrays = Callable[[], Mapping[str, Strays]]
"""Returns, by instance of this process, which runs go on although they were told to stop."""
StoreFault = Callable[[], str | None]
"""Returns which write of another process fails now, if one does; the node's, for the process of its dashboard."""

FOUND_SECONDS: Final = 1.0
"""A write that has failed for less was found to fail just now: it may have failed for longer."""


class System:
    """Answers questions about everything at once."""

    def __init__(
        self,
        access: StoreAccess,
        now: Callable[[], float],
        registry: LocalRegistry,
        *,
        definitions: Definitions,
        lease_seconds: float,
        strays: FindStrays,
        voice: StoreVoice,
        store_fault: StoreFault,
    ) -> None:
        self._access = access
        self._now = now
        self._registry = registry
        self._definitions = definitions
        self._lease_seconds = lease_seconds
        self._strays = strays
        self._voice = voice
        self._store_fault = store_fault
        self._glances = Glances(access, now, registry)

    async def overview(self, *, try_write: bool = False) -> Overview:
        """Return every worker, every pool, the leader and what is wrong, from a single snapshot.

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
        """Write to the store; how that went is known to the voice."""
        store = await self._access.open()
        with suppress(StoreError):
            await self._voice.hear(TEST, try_write(store, self._now()))

    async def _try_room(self) -> None:
        """Find out whether the store has room for more jobs; how that went is known to the voice."""
        store = await self._access.open()
        with suppress(StoreError):
            await self._voice.hear(TEST, try_room(store))

    async def _judged(self, seen: Snapshot) -> Health:
        fault = None
        if ours := self._voice.fault:
            lasting = self._voice.fault_seconds
            fault = WriteFault(ours, None if lasting < FOUND_SECONDS else seen.at - lasting)
        elif theirs := self._store_fault():
            fault = WriteFault(theirs)
        health = judged(seen, self._strays(), lease_seconds=self._lease_seconds, store_fault=fault)
        if all(problem.since is not None for problem in health.problems):
            return health
        noticed = await read(await self._access.open(), NOTICED, NOTICED_NAME) or Noticed()
        return noticed.dated(health)

    async def _snapshot(self) -> Snapshot:
        """Ask the store ten questions, more if jobs wait; what they cost does not depend on how many jobs there are."""
        store, now = await self._access.open(), self._now()
        edition = await read(store, EDITION, EDITION_NAME)
        changes = await read_all(store, RESCHEDULED)
        workers = await self._definitions.workers()
        stats = await store.stats(now)
        waiting = any(pool.waiting for pool in stats.pools.values())
        return Snapshot(
            at=now,
            facts=await store.survey(None, now),
            stats=stats,
            instances=await store.instances(),
            workers={name: rescheduled(config, changes.get(name)) for name, config in workers.items()},
            rescheduled=changes,
            pools=await self._definitions.pools(),
            cursors=await read_all(store, SCHEDULE),
            plan=await read(store, PLAN, PLAN_NAME) or Plan(),
            keys_in_use=await keys_in_use(store),
            edition=edition,
            expired=await read_all(store, EXPIRED_LATELY),
            stranded=await stranded_flows(store) if waiting else [],
        )
