"""What people change about pools and nodes while they run: pause, bounds, draining.

Each change is a record in the store, written by compare-and-set, kept until somebody changes it, and told as an event
that says who did it and why. What runs follows by itself.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from shiftwork.control.operations import Operations
from shiftwork.core.docs import PLAN, PLAN_NAME, POOL
from shiftwork.core.model import Event, Plan, PoolConfig, PoolDoc
from shiftwork.core.options import check_bounds
from shiftwork.core.plan import bounded
from shiftwork.errors import ConfigurationError, UnknownNodeError, UnknownPoolError, nearest
from shiftwork.store.docs import change, read
from shiftwork.store.protocol import Store
from shiftwork.views.overview import NodeView, node_views

_LISTED: Final = 5


class Steering:
    """Changes that hold for every process."""

    def __init__(self, store: Store, operations: Operations, now: Callable[[], float]) -> None:
        self._store = store
        self._operations = operations
        self._now = now

    # ── pools ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def pause(self, name: str, *, paused: bool, reason: str | None, known: Mapping[str, PoolConfig]) -> Event:
        """Pause or resume a pool. `known`: the pools that are registered here."""
        await self._pool(name, known)
        since = self._now() if paused else None
        await self._change(
            name, lambda before: replace(before, paused=paused, reason=reason if paused else None, since=since)
        )
        words = f"pool {name} is " + ("paused" + (f": {reason}" if reason else "") if paused else "resumed")
        return await self._told("pool.paused" if paused else "pool.resumed", name, words, reason=reason)

    async def scale(
        self, name: str, low: int | None, high: int | None, *, reset: bool, known: Mapping[str, PoolConfig]
    ) -> tuple[PoolConfig, Event]:
        """Set a pool's bounds, one or both; `reset` forgets what was set before. Answers with the pool as it is now."""
        if low is None and high is None and not reset:
            message = f"pool {name!r}: nothing to change; give min_workers, max_workers or reset"
            raise ConfigurationError(message)
        pool = await self._pool(name, known)

        def set_bounds(before: PoolDoc) -> PoolDoc:
            if reset:
                before = replace(before, min_workers=None, max_workers=None)
            after = replace(
                before,
                min_workers=before.min_workers if low is None else low,
                max_workers=before.max_workers if high is None else high,
            )
            if low is not None or high is not None:
                check_bounds(pool, after)
            return after

        before, after = await self._change(name, set_bounds)
        old, new = bounded(pool, before), bounded(pool, after)
        how = "as registered" if after.min_workers is None and after.max_workers is None else "by hand"
        words = f"pool {name} may have {new.min_workers} to {new.max_workers} workers, {how}"
        words += f"; it was {old.min_workers} to {old.max_workers}"
        data = {"min_workers": after.min_workers, "max_workers": after.max_workers}
        return new, await self._told("pool.bounds", name, words, **data)

    async def _pool(self, name: str, known: Mapping[str, PoolConfig]) -> PoolConfig:
        pools = await self._operations.pools() | dict(known)
        if name not in pools:
            message = f"there is no pool {name!r}: {nearest(name, pools)}"
            raise UnknownPoolError(message)
        return pools[name]

    async def _change(self, name: str, new: Callable[[PoolDoc], PoolDoc]) -> tuple[PoolDoc, PoolDoc]:
        before, after = await change(self._store, POOL, name, lambda found: new(found or PoolDoc()))
        return before or PoolDoc(), after

    # ── nodes ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def nodes(self) -> list[NodeView]:
        """Every live node."""
        plan = await read(self._store, PLAN, PLAN_NAME) or Plan()
        return node_views(await self._store.instances(), plan, self._now())

    async def node(self, name: str) -> NodeView:
        """A live node by its name, or by a beginning that no other one has."""
        nodes = {node.name: node for node in await self.nodes()}
        if name in nodes:
            return nodes[name]
        meant = [known for known in nodes if name and known.startswith(name)]
        if len(meant) == 1:
            return nodes[meant[0]]
        if meant:
            shown = ", ".join(meant[:_LISTED]) + (", …" if len(meant) > _LISTED else "")
            message = f"{len(meant)} nodes begin with {name!r}: {shown}; write more of the name"
            raise UnknownNodeError(message)
        message = f"there is no live node {name!r}: {nearest(name, nodes)}"
        raise UnknownNodeError(message)

    async def drain(self, name: str, *, reason: str | None) -> tuple[str, Event | None]:
        """Give a node nothing more to do; its workers finish what they run, and go.

        Answers with the node's whole name, and with what happened: nothing if it was so already.
        """
        node = (await self.node(name)).name
        since = self._now()
        if not await self._mark(lambda drained: {node: since, **drained}):
            return node, None
        words = f"node {node} is drained" + (f": {reason}" if reason else "")
        return node, await self._told("node.drained", node, words, drained=True, reason=reason)

    async def undrain(self, name: str) -> tuple[str, Event | None]:
        """Take that back."""
        node = (await self.node(name)).name
        if not await self._mark(lambda drained: {known: since for known, since in drained.items() if known != node}):
            return node, None
        return node, await self._told("node.drained", node, f"node {node} takes work again", drained=False)

    async def _mark(self, new: Callable[[dict[str, float]], dict[str, float]]) -> bool:
        """Record which nodes are drained; return False if that is recorded already."""

        def drained(found: Plan | None) -> Plan:
            plan = found or Plan()
            return replace(plan, drained=new(plan.drained))

        before, after = await change(self._store, PLAN, PLAN_NAME, drained)
        return after != (before or Plan())

    async def _told(self, name: str, subject: str, message: str, **data: Any) -> Event:
        return await self._operations.record(name, subject, message, **data)
