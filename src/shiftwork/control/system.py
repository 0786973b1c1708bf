"""The system as a whole: overview, health, and what happened."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from shiftwork.control.definitions import Definitions
from shiftwork.control.glances import Glances
from shiftwork.control.registry import LocalRegistry
from shiftwork.control.store_access import StoreAccess
from shiftwork.core.docs import PLAN, PLAN_NAME, SCHEDULE
from shiftwork.core.health import Health
from shiftwork.core.model import Event, Plan
from shiftwork.store.docs import read, read_all
from shiftwork.store.sealed.key_use import keys_in_use
from shiftwork.views.glance import Glance
from shiftwork.views.overview import Overview, overview_of
from shiftwork.views.snapshot import Snapshot, judged

Strays = Callable[[], Mapping[str, int]]
"""Returns, by instance of this process, how many jobs keep running although they were told to stop."""


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
        strays: Strays,
    ) -> None:
        self._access = access
        self._now = now
        self._registry = registry
        self._definitions = definitions
        self._lease_seconds = lease_seconds
        self._strays = strays
        self._glances = Glances(access, now, registry)

    async def overview(self) -> Overview:
        """Return every worker, every pool, the leader and what is wrong, from a single snapshot."""
        seen = await self._snapshot()
        workers, pools = self._registry.worker_configs(), self._registry.pool_configs()
        with_ours = replace(seen, workers=seen.workers | workers, pools=seen.pools | pools)
        return overview_of(with_ours, self._judged(seen), store=self._access.url)

    async def glance(self) -> Glance:
        """Return pools, instances and running jobs; cheap enough for once a second."""
        return await self._glances.take()

    async def health(self) -> Health:
        """Return what is wrong now, with the remedy."""
        return self._judged(await self._snapshot())

    async def events(self, after: int = 0, limit: int = 100, *, before: int | None = None) -> list[Event]:
        """Return what happened, newest last: the newest events numbered above `after` and below `before`."""
        store = await self._access.open()
        return await store.events(after, limit, before=before)

    def _judged(self, seen: Snapshot) -> Health:
        return judged(seen, self._strays(), lease_seconds=self._lease_seconds)

    async def _snapshot(self) -> Snapshot:
        """Ask the store eight questions, whose cost does not depend on how many jobs there are."""
        store, now = await self._access.open(), self._now()
        return Snapshot(
            at=now,
            facts=await store.survey(None, now),
            stats=await store.stats(now),
            instances=await store.instances(),
            workers=await self._definitions.workers(),
            pools=await self._definitions.pools(),
            cursors={name: cursor.at for name, cursor in (await read_all(store, SCHEDULE)).items()},
            plan=await read(store, PLAN, PLAN_NAME) or Plan(),
            keys_in_use=await keys_in_use(store),
        )
