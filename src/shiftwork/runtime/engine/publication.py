"""The definitions of this process in the store: published when it starts, and again if the store has lost them."""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from shiftwork.core import edition
from shiftwork.core.docs import EDITION, EDITION_NAME
from shiftwork.core.edition import Edition
from shiftwork.core.model import Doc
from shiftwork.core.plurals import counted
from shiftwork.events import Emit
from shiftwork.runtime.clock import Clock
from shiftwork.runtime.engine.definitions import StoredDefinitions, publish, read_definitions
from shiftwork.runtime.engine.registry import Registry
from shiftwork.store.docs import change
from shiftwork.store.protocol import Store
from shiftwork.store.sealed.key_use import agree_on_keys, keys_in_use

logger: Final = logging.getLogger("shiftwork")

FENCES_AHEAD: Final = 1_000_000
"""By how much other nodes may be ahead of the fences seen here, when the fences of an emptied store begin again."""


class Publication:
    """Publishes the definitions, and knows the edition that claims must name."""

    def __init__(
        self, registry: Registry, *, store: Store, clock: Clock, emit: Emit, beat: Callable[[], Awaitable[object]]
    ) -> None:
        self.edition: str | None = None
        """What claims rely on; None in a process that publishes nothing."""
        self.fence = 0
        """The highest fence seen here."""
        self._registry = registry
        self._store = store
        self._clock = clock
        self._emit = emit
        self._beat = beat
        self._lock = asyncio.Lock()

    async def read(self) -> StoredDefinitions:
        """Read what the store has already."""
        return await read_definitions(self._registry, self._store, self._clock.now())

    async def begin(self, over: StoredDefinitions) -> None:
        """Publish the definitions over those that the store has, and learn the edition."""
        there = over.doc(EDITION.name, EDITION_NAME)
        first = partial(edition.first, token=secrets.token_hex(8))
        before = EDITION.decode(there.body)
        known = first(before)
        new = [] if before == known else [Doc(EDITION.name, EDITION_NAME, EDITION.encode(known), there.version)]
        written = await publish(self._registry, self._store, self._clock.now(), over=over, beside=new)
        if not all(written):  # another process was faster
            _, known = await change(self._store, EDITION, EDITION_NAME, first)
        self.edition = known.token

    async def renew(self, lost: str) -> None:
        """Publish again: the store does not have the edition `lost`, on which a claim relied."""
        async with self._lock:
            if self.edition != lost:
                return  # another claim has seen to it
            # The leases are gone, too. Without one, jobs that are claimed would be taken back at once.
            await self._beat()
            await agree_on_keys(self._store, await keys_in_use(self._store))
            await publish(self._registry, self._store, self._clock.now(), over=await self.read())
            # Where fences begin again, a stale run from before must not be mistaken for one of the new runs.
            await self._store.take_over([], {}, self.fence + FENCES_AHEAD)
            before, after = await self._change(lost)
            self.edition = after.token
            self._report(after, known=before is not None and before.lost_at == after.lost_at)

    async def _change(self, lost: str) -> tuple[Edition | None, Edition]:
        token, now = secrets.token_hex(8), self._clock.now()
        renewed = partial(edition.renewed, known=lost, token=token, lost=self._words(), now=now)
        return await change(self._store, EDITION, EDITION_NAME, renewed)

    def _words(self) -> str:
        workers, pools = counted(len(self._registry.workers), "worker"), counted(len(self._registry.pools), "pool")
        return (
            f"the store was emptied or replaced: {workers} and {pools} were published again; "
            "jobs, pauses and disabled workers from before are gone unless the new store has them"
        )

    def _report(self, after: Edition, *, known: bool) -> None:
        if known:
            logger.warning("the store was emptied or replaced: the definitions of this node were published again")
        else:
            self._emit("store.emptied", "store", after.lost)
