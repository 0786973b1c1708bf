"""Nodes: what each of them runs, and draining one. A drained node stays drained until that is undone."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from shiftwork.control.access.audit import because
from shiftwork.control.definitions import CommandFamily
from shiftwork.core.doc_kinds import PLAN, PLAN_NAME
from shiftwork.core.model.doc_types import Plan
from shiftwork.errors import UnknownNodeError, nearest
from shiftwork.sentences import sentence
from shiftwork.store.docs import change, read
from shiftwork.views.overview import NodeView, node_views

_LISTED: Final = 5


class Nodes(CommandFamily):
    """Reads nodes, and drains them."""

    async def all(self) -> list[NodeView]:
        """Return every live node: what it has, what it runs, whether it is drained."""
        store = await self._access.open()
        plan = await read(store, PLAN, PLAN_NAME) or Plan()
        return node_views(await store.instances(), plan, self._now())

    async def get(self, name: str) -> NodeView:
        """Return a live node by its name, or by a prefix that no other node has. Raises `UnknownNodeError`."""
        nodes = {node.name: node for node in await self.all()}
        if name in nodes:
            return nodes[name]
        matching = [known for known in nodes if name and known.startswith(name)]
        if len(matching) == 1:
            return nodes[matching[0]]
        if matching:
            shown = ", ".join(matching[:_LISTED]) + (", …" if len(matching) > _LISTED else "")
            message = sentence(
                "{n} nodes begin with {what}: {names}; write more of the name",
                n=len(matching),
                what=f"{name!r}",
                names=shown,
            )
            raise UnknownNodeError(message)
        message = sentence("there is no live node {what}: {hint}", what=f"{name!r}", hint=nearest(name, nodes))
        raise UnknownNodeError(message)

    async def drain(self, name: str, reason: str | None = None) -> NodeView:
        """Give a node no more work, and return it. It finishes what it runs, and stays, empty."""
        await self._access.open_to_change()
        node, since = (await self.get(name)).name, self._now()
        if await self._set_drained(lambda drained: {node: since, **drained}):
            message = because(sentence("node {node} is drained", node=node), reason)
            await self._audit.record("node.drained", node, message, drained=True, reason=reason)
        return await self.get(node)

    async def undrain(self, name: str) -> NodeView:
        """Give a drained node work again, and return it."""
        await self._access.open_to_change()
        node = (await self.get(name)).name
        if await self._set_drained(lambda drained: {known: at for known, at in drained.items() if known != node}):
            await self._audit.record(
                "node.drained", node, sentence("node {node} takes work again", node=node), drained=False
            )
        return await self.get(node)

    async def _set_drained(self, new: Callable[[dict[str, float]], dict[str, float]]) -> bool:
        """Change which nodes are drained; return False if that changes nothing."""

        def changed(plan: Plan | None) -> Plan:
            plan = plan or Plan()
            return replace(plan, drained=new(plan.drained))

        before, after = await change(await self._access.open(), PLAN, PLAN_NAME, changed)
        return (before or Plan()).drained != after.drained
