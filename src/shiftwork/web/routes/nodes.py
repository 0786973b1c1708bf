"""Nodes: what each has and runs, draining it, and what it is doing with a job."""

from msgspec import Struct

from shiftwork.views.shapes.jobs import StackShape, stack_shape
from shiftwork.views.shapes.pools import InstanceShape, NodeShape, instance_shape, node_shape
from shiftwork.web.routes.pools import Reason
from shiftwork.web.routing import Name, get, post
from shiftwork.web.site import Site


class NodesAnswer(Struct, frozen=True):
    """Every live node, the longest there first."""

    nodes: list[NodeShape]
    instances: list[InstanceShape]


@get("/nodes")
async def nodes(site: Site) -> NodesAnswer:
    """Every live node, and the running members of all pools."""
    instances = [instance_shape(one) for one in await site.control.pools.instances()]
    return NodesAnswer([node_shape(node) for node in await site.control.nodes.all()], instances)


@post("/jobs/{id}/stack")
async def job_stack(site: Site, id: Name) -> StackShape:
    """What a running job is doing now: its own stack first, then all else in its process. Its node is asked."""
    return stack_shape(await site.control.jobs.stack(id))


@post("/nodes/{node}/drain")
async def drain_node(site: Site, node: Name, body: Reason) -> NodeShape:
    """Give the node no more work: its workers finish what they run, and go."""
    drained = await site.control.nodes.drain(node, body.reason)
    site.changed()
    return node_shape(drained)


@post("/nodes/{node}/undrain")
async def undrain_node(site: Site, node: Name) -> NodeShape:
    """Let the node take work again."""
    serving = await site.control.nodes.undrain(node)
    site.changed()
    return node_shape(serving)
