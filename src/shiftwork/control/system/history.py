"""The last day of the system, from which a day can be planned."""

import asyncio
from collections.abc import Callable

from shiftwork.control.access.store_access import StoreAccess
from shiftwork.control.definitions import Definitions
from shiftwork.control.system.pools import Pools
from shiftwork.core.doc_kinds import HISTORY, POOL
from shiftwork.core.observing.pool_history import Hour
from shiftwork.core.scaling.system_record import SystemRecord
from shiftwork.store.docs import read_all
from shiftwork.store.protocol import Store


class History:
    """Reads what the leader has recorded, with the configuration and the machines of now."""

    def __init__(self, access: StoreAccess, now: Callable[[], float], pools: Pools, definitions: Definitions) -> None:
        self._access = access
        self._now = now
        self._pools = pools
        self._definitions = definitions

    async def read(self) -> SystemRecord:
        """Return the history, the pools and workers as registered, what people changed, and the live nodes."""
        store, now = await self._access.open(), self._now()
        beats = [known.beat for known in await store.instances() if known.expires_at > now]
        return SystemRecord(
            now=now,
            hours=await _hours(store),
            pools=await self._pools.all(),
            changes=await read_all(store, POOL),
            workers=await self._definitions.workers(),
            machines=[beat.machine for beat in beats if beat.machine is not None],
        )


async def _hours(store: Store) -> list[Hour]:
    docs = await store.docs(HISTORY.name)
    decoded = await asyncio.to_thread(lambda: [HISTORY.decode(doc.body) for doc in docs])
    return sorted((hour for hour in decoded if hour is not None), key=lambda hour: hour.number)
