"""Nodes: what each has and runs, and draining it."""

from msgspec import Struct

from windlass.shapes import InstanceShape, NodeShape, instance_shape, node_shape
from windlass.web.routes.pools import Reason
from windlass.web.routing import Name, get, post
from windlass.web.site import Site


class NodesAnswer(Struct, frozen=True):
    """Every live node, the longest there first."""

    nodes: list[NodeShape]
    instances: list[InstanceShape]


@get("/nodes")
async def nodes(site: Site) -> NodesAnswer:
    """Every live node, and the running members of all pools."""
    instances = [instance_shape(one) for one in await site.desk.instances()]
    return NodesAnswer([node_shape(node) for node in await site.desk.nodes()], instances)


@post("/nodes/{node}/drain")
async def drain_node(site: Site, node: Name, body: Reason) -> NodeShape:
    """Give the node no more work: its workers finish what they run, and go."""
    drained = await site.desk.drain_node(node, body.reason)
    site.changed()
    return node_shape(drained)


@post("/nodes/{node}/undrain")
async def undrain_node(site: Site, node: Name) -> NodeShape:
    """Let the node take work again."""
    serving = await site.desk.undrain_node(node)
    site.changed()
    return node_shape(serving)
