"""The last day of the system, from which a day can be planned."""

import asyncio

from shiftwork.control.definitions import CommandFamily, ControlServices
from shiftwork.control.system.pools import Pools
from shiftwork.core.doc_kinds import HISTORY, POOL
from shiftwork.core.observing.pool_history import Hour
from shiftwork.core.scaling.system_record import SystemRecord
from shiftwork.store.docs import read_all
from shiftwork.store.protocol import Store


class History(CommandFamily):
    """Reads what the leader has recorded, with the configuration and the machines of now."""

    def __init__(self, services: ControlServices, pools: Pools) -> None:
        super().__init__(services)
        self._pools = pools

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
