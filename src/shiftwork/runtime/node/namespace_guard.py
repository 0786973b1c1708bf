"""Joining a namespace: beat for the first time, and leave again if the namespace belongs to another app.

Nodes join one at a time, so that of two that start at the same instant one stays and the other sees it. A node whose
turn has ended before it had beaten and looked around, because the store was slow, may have missed another one that
joined meanwhile: it withdraws its beat and tries again, twice. Then the one that beats second sees the first.
"""

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Final

from shiftwork.core.observing.beats import InstanceRecord
from shiftwork.core.workers.starting import refusal, stranger
from shiftwork.errors import NamespaceInUseError, StoreError
from shiftwork.runtime.clock import Clock
from shiftwork.store.protocol import Store

NAME: Final = "namespace guard"
HELD_SECONDS: Final = 5.0
"""How long a node that died while it joined keeps others from joining."""
LOOK_AGAIN_SECONDS: Final = 0.05


class NamespaceGuard:
    """Lets one node at a time join."""

    def __init__(self, store: Store, clock: Clock, *, node: str, workers: Collection[str], namespace: str) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._workers = workers
        self._namespace = namespace
        self._ends_at = 0.0

    async def enter(self) -> None:
        """Wait for our turn."""
        while True:
            now = self._clock.now()
            if await self._store.hold(NAME, self._node, 1, HELD_SECONDS, now):
                self._ends_at = now + HELD_SECONDS
                return
            await asyncio.sleep(LOOK_AGAIN_SECONDS)

    @property
    def lapsed(self) -> bool:
        """Whether our turn has ended by itself, so that another node may have joined in it."""
        return self._clock.now() >= self._ends_at

    def check(self, others: Sequence[InstanceRecord]) -> None:
        """Raise `NamespaceInUseError` if one of these instances is of a live node that shares no worker with us."""
        now = self._clock.now()
        tenant = stranger(self._node, self._workers, others, now)
        if tenant is not None:
            url = self._store.url
            raise NamespaceInUseError(refusal(tenant, self._workers, namespace=self._namespace, store=url, now=now))

    async def leave(self) -> None:
        """Let the next node join. If the store fails, it can in a few seconds."""
        with suppress(StoreError):
            await self._store.drop(NAME, self._node)
