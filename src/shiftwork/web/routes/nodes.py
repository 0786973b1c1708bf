"""Nodes: what each of them has and runs, draining one, and the stack of a running job."""

from msgspec import Struct

from shiftwork.views.shapes.jobs import StackShape, stack_shape
from shiftwork.views.shapes.pools import InstanceShape, NodeShape, instance_shape, node_shape
from shiftwork.web.routes.pools import Reason
from shiftwork.web.routing import Name, get, post
from shiftwork.web.site import Site


class NodesAnswer(Struct, frozen=True):
    """Every live node, oldest first, and the instances of all pools."""

    nodes: list[NodeShape]
    instances: list[InstanceShape]


@get("/nodes")
async def nodes(site: Site) -> NodesAnswer:
    """Return every live node, and the running instances of all pools."""
    instances = [instance_shape(one) for one in await site.control.pools.instances()]
    return NodesAnswer([node_shape(node) for node in await site.control.nodes.all()], instances)


@post("/jobs/{id}/stack")
async def job_stack(site: Site, id: Name) -> StackShape:
    """Return what a running job is doing now: its own stack first, then everything else in its process."""
    return stack_shape(await site.control.jobs.stack(id))


@post("/nodes/{node}/drain")
async def drain_node(site: Site, node: Name, body: Reason) -> NodeShape:
    """Give the node no more work: its workers finish what they run, and end."""
    drained = await site.control.nodes.drain(node, body.reason)
    site.changed()
    return node_shape(drained)


@post("/nodes/{node}/undrain")
async def undrain_node(site: Site, node: Name) -> NodeShape:
    """Give a drained node work again."""
    serving = await site.control.nodes.undrain(node)
    site.changed()
    return node_shape(serving)
