"""The way into a namespace: beat for the first time, and go again if it belongs to another app.

Nodes come in one at a time, so that of two that start at the same instant one stays and the other sees it. Should the
place at the door be lost because the store was slow, nobody is admitted beside a stranger all the same: whoever beats
second sees the first. Then it can be that both go.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

from shiftwork.core.namespaces import refusal, stranger
from shiftwork.errors import NamespaceInUseError
from shiftwork.runtime.clock import Clock
from shiftwork.store.protocol import Store

NAME: Final = "door"
HELD_SECONDS: Final = 5.0
"""How long a node that died at the door keeps others out."""
LOOK_AGAIN_SECONDS: Final = 0.05


async def enter(
    store: Store,
    clock: Clock,
    *,
    node: str,
    workers: Collection[str],
    namespace: str,
    beat: Callable[[], Awaitable[object]],
    leave: Callable[[], Awaitable[object]],
) -> None:
    """Beat, unless a live node here shares no worker with these: then leave, and raise `NamespaceInUseError`."""
    while not await store.hold(NAME, node, 1, HELD_SECONDS, clock.now()):  # noqa: ASYNC110 - no bell tells of places
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    try:
        await beat()
        now = clock.now()
        tenant = stranger(node, workers, await store.instances(), now)
        if tenant is not None:
            await leave()
            raise NamespaceInUseError(refusal(tenant, workers, namespace=namespace, store=store.url, now=now))
    finally:
        await store.drop(NAME, node)
