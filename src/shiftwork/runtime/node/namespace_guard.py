"""Joining a namespace: beat for the first time, and leave again if the namespace belongs to another app.

Nodes join one at a time, so that of two that start at the same instant one stays and the other sees it. If the turn is
lost because the store was slow, two apps still never share a namespace: the one that beats second sees the first. Then
it can happen that both leave.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

from shiftwork.core.model import InstanceRecord
from shiftwork.core.namespaces import refusal, stranger
from shiftwork.errors import NamespaceInUseError
from shiftwork.runtime.clock import Clock
from shiftwork.store.protocol import Store

NAME: Final = "namespace guard"
HELD_SECONDS: Final = 5.0
"""How long a node that died while it joined keeps others from joining."""
LOOK_AGAIN_SECONDS: Final = 0.05


async def enter(
    store: Store,
    clock: Clock,
    *,
    node: str,
    workers: Collection[str],
    namespace: str,
    dead: Callable[[Sequence[InstanceRecord]], Collection[str]],
    beat: Callable[[], Awaitable[object]],
    leave: Callable[[], Awaitable[object]],
) -> None:
    """Beat, unless a live node here shares no worker with these: then leave, and raise `NamespaceInUseError`.

    `dead` returns the nodes that are proven dead, whatever their leases say.
    """
    while not await store.hold(NAME, node, 1, HELD_SECONDS, clock.now()):  # noqa: ASYNC110 - no bell rings when it is free
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    try:
        await beat()
        now = clock.now()
        instances = await store.instances()
        gone = dead(instances)
        tenant = stranger(node, workers, [known for known in instances if known.beat.node not in gone], now)
        if tenant is not None:
            await leave()
            raise NamespaceInUseError(refusal(tenant, workers, namespace=namespace, store=store.url, now=now))
    finally:
        await store.drop(NAME, node)
