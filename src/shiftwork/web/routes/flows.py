"""Flows: finding, drawing and changing them; and signals to jobs that wait for one."""

from typing import Annotated, Any

from msgspec import Meta, Struct

from shiftwork.control.jobs.flow_search import FlowFilter, FlowPlace, FlowState
from shiftwork.views.shapes.flows import FlowShape, WholeFlowShape, flow_shape, whole_flow_shape
from shiftwork.web.job_search import ENOUGH_SECONDS
from shiftwork.web.routes.jobs import Tag
from shiftwork.web.routes.pools import Reason
from shiftwork.web.routing import Body, Id, Name, Query, get, post
from shiftwork.web.site import Site

Place = Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)? [^\x00\n]{1,200}$")]
"""A place in the list of flows: when one was created, and its id."""


class FlowsQuery(Query, frozen=True, kw_only=True):
    """Which flows are meant, and which page of them: all given conditions must match."""

    state: FlowState | None = None
    worker: Name | None = None
    """What they are for: the worker of the last job of the call that began them."""
    tag: Tag | None = None
    """A tag of that job."""
    after: Place | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 50


class FlowsAnswer(Struct, frozen=True, kw_only=True):
    """A page of flows, newest first. `next_after` is the `after` of the next page, and null at the end.

    A search takes a moment, no longer: fewer flows than `limit` does not mean that there are no more.
    """

    flows: list[FlowShape]
    next_after: str | None


class FlowChanged(Struct, frozen=True, kw_only=True):
    """How many jobs of the flow were changed."""

    id: str
    changed: int


class SignalBody(Body, frozen=True, kw_only=True):
    """A value for a job whose function waits for it, or will."""

    name: Id
    value: Any = None


class SignalSent(Struct, frozen=True, kw_only=True):
    """The job that has got the signal."""

    id: str


@get("/flows")
async def flows(site: Site, query: FlowsQuery) -> FlowsAnswer:
    """List flows, newest first, each with what it is for and how many of its jobs have which status."""
    wanted = FlowFilter(state=query.state, worker=query.worker, tag=query.tag)
    page = await site.control.flows.newest(_place(query.after), query.limit, wanted, seconds=ENOUGH_SECONDS)
    if not page.flows:
        await site.control.refuse_unknown(worker=query.worker)
    last = None if page.behind is None else f"{page.behind[0]!r} {page.behind[1]}"
    return FlowsAnswer(flows=[flow_shape(one) for one in page.flows], next_after=last)


@get("/flows/{id}")
async def flow(site: Site, id: Name) -> WholeFlowShape:
    """Return a flow: its jobs by depth, those of one worker folded into one box, and its critical path."""
    return whole_flow_shape(*await site.flow(id))


@post("/flows/{id}/cancel")
async def cancel_flow(site: Site, id: Name, body: Reason) -> FlowChanged:
    """Cancel all jobs of a flow that have not ended."""
    changed = await site.control.flows.cancel(id, reason=body.reason)
    site.jobs_changed()
    return FlowChanged(id=id, changed=changed)


@post("/flows/{id}/retry")
async def retry_flow(site: Site, id: Name, body: Reason) -> FlowChanged:
    """Queue the dead and cancelled jobs of a flow again: it goes on from where it broke."""
    changed = await site.control.flows.retry(id, reason=body.reason)
    site.jobs_changed()
    return FlowChanged(id=id, changed=changed)


@post("/jobs/{id}/signals")
async def send_signal(site: Site, id: Name, body: SignalBody) -> SignalSent:
    """Send a value to a job whose function waits for it, or will, with `ctx.wait_for`."""
    await site.control.jobs.send(id, body.name, body.value)
    site.jobs_changed()
    return SignalSent(id=id)


def _place(after: str | None) -> FlowPlace | None:
    if after is None:
        return None
    at, _, id = after.partition(" ")
    return float(at), id
