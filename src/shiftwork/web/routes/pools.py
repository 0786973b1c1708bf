"""Pools, nodes and breakers: reading them, and steering what runs where."""

from typing import Annotated, Final

from msgspec import Meta, Struct, structs

from shiftwork.errors import UnknownPoolError, nearest
from shiftwork.sentences import sentence
from shiftwork.views.overview import PoolView
from shiftwork.views.shapes.pools import InstanceShape, NodeShape, PoolShape, instance_shape, node_shape, pool_shape
from shiftwork.views.shapes.system import BreakerViewShape, EventShape, breaker_shape, event_shape
from shiftwork.web.routing import Body, Name, Query, Text, get, post
from shiftwork.web.site import Site
from shiftwork.web.what_if import WhatIfAnswer

RECENT: Final = 1_000
"""How many of the newest events are searched for those of a pool."""
MOST_TRIED: Final = 10_000
"""How many slots can be tried: a simulation takes memory for each."""
SHOWN: Final = 50
"""How many events of a pool are shown."""


class PoolsAnswer(Struct, frozen=True):
    """Every pool."""

    pools: list[PoolShape]


class WholePool(PoolShape, frozen=True, kw_only=True):
    """A pool, with its instances, the breakers of its workers, and its latest events."""

    breakers: list[BreakerViewShape]
    """The breakers that guard workers of the pool."""
    instance_list: list[InstanceShape]
    events: list[EventShape]


class Scale(Struct, frozen=True, kw_only=True):
    """How many slots a pool should have, for autoscalers."""

    wanted: int
    current: int
    queued: int


class Reason(Body, frozen=True, kw_only=True):
    """Why it is done."""

    reason: Text | None = None


class NewBounds(Body, frozen=True, kw_only=True):
    """How many slots a pool may have; null restores the registered bound."""

    min: Annotated[int, Meta(ge=0, le=1_000_000)] | None
    max: Annotated[int, Meta(ge=1, le=1_000_000)] | None


class WhatIfQuery(Query, frozen=True, kw_only=True):
    """What to try: the bounds and the threshold, each as it is now unless it is given."""

    min: Annotated[int, Meta(ge=0, le=MOST_TRIED)] | None = None
    max: Annotated[int, Meta(ge=1, le=MOST_TRIED)] | None = None
    scale_up_threshold: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


@get("/pools")
async def pools(site: Site) -> PoolsAnswer:
    """Return every pool: bounds, workers, the numbers of its jobs, waiting time."""
    return PoolsAnswer([_shape(site, pool) for pool in (await site.overview.get()).pools])


@get("/pools/{pool}")
async def pool(site: Site, pool: Name) -> WholePool:
    """Return a pool, with its instances and the reasons for its latest changes."""
    view = await _view(site, pool)
    names = ("pool.scaled", "pool.bounds", "pool.paused", "pool.resumed", "pool.failing", "pool.recovered")
    recent = await site.control.events.newest(0, RECENT)
    events = [event_shape(event) for event in recent if event.subject == pool and event.name in names]
    instances = [instance_shape(one) for one in await site.control.pools.instances(pool)]
    whole = structs.asdict(_shape(site, view)) | {"breakers": await _breakers(site, pool)}
    return WholePool(**whole, instance_list=instances, events=events[-SHOWN:])


@get("/pools/{pool}/what-if")
async def pool_what_if(site: Site, pool: Name, query: WhatIfQuery) -> WhatIfAnswer:
    """Simulate the last day of the pool with other bounds, and return both courses. One simulation runs at a time."""
    return await site.what_if.ask(pool, query.min, query.max, query.scale_up_threshold)


@get("/pools/{pool}/scale")
async def scale(site: Site, pool: Name) -> Scale:
    """Return how many slots the pool should have, for the metrics-api of KEDA and similar autoscalers."""
    view = await _view(site, pool)
    return Scale(wanted=view.wanted, current=view.slots, queued=view.stats.queued)


@post("/pools/{pool}/pause")
async def pause_pool(site: Site, pool: Name, body: Reason) -> PoolShape:
    """Start no more jobs of the pool, anywhere. Running jobs continue."""
    await site.control.pools.pause(pool, body.reason)
    return await _after(site, pool)


@post("/pools/{pool}/resume")
async def resume_pool(site: Site, pool: Name) -> PoolShape:
    """Start jobs of a paused pool again."""
    await site.control.pools.resume(pool)
    return await _after(site, pool)


@post("/pools/{pool}/bounds")
async def bound_pool(site: Site, pool: Name, body: NewBounds) -> PoolShape:
    """Set how many slots the pool may have, on all nodes together. Null restores the registered bound."""
    await site.control.pools.scale(pool, body.min, body.max, reset=True)
    return await _after(site, pool)


class NodesAnswer(Struct, frozen=True):
    """Every live node, oldest first, and the instances of all pools."""

    nodes: list[NodeShape]
    instances: list[InstanceShape]


@get("/nodes")
async def nodes(site: Site) -> NodesAnswer:
    """Return every live node, and the running instances of all pools."""
    instances = [instance_shape(one) for one in await site.control.pools.instances()]
    return NodesAnswer([node_shape(node) for node in await site.control.nodes.all()], instances)


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


class BreakersAnswer(Struct, frozen=True):
    """Every breaker, by name."""

    breakers: list[BreakerViewShape]


class Holding(Reason, frozen=True, kw_only=True):
    """Why it is held open, and for how long; null until a person closes it."""

    reason: Text | None = None
    for_seconds: Annotated[float, Meta(gt=0, le=315_360_000)] | None = None


@get("/breakers")
async def breakers(site: Site) -> BreakersAnswer:
    """Return every breaker: the workers that it guards, its state, and who holds it open."""
    return BreakersAnswer([breaker_shape(one) for one in (await site.overview.get()).breakers.values()])


@post("/breakers/{breaker}/close")
async def close_breaker(site: Site, breaker: Name, body: Reason) -> BreakerViewShape:
    """Close the breaker, also one that a person holds open. Its failures are forgotten; its jobs start at once."""
    closed = await site.control.breakers.close(breaker, body.reason)
    site.changed()
    return breaker_shape(closed)


@post("/breakers/{breaker}/open")
async def open_breaker(site: Site, breaker: Name, body: Holding) -> BreakerViewShape:
    """Hold the breaker open: no job that it guards starts until it is closed, or is probed after `for_seconds`."""
    opened = await site.control.breakers.open(breaker, body.reason, for_seconds=body.for_seconds)
    site.changed()
    return breaker_shape(opened)


async def _breakers(site: Site, pool: str) -> list[BreakerViewShape]:
    seen = await site.overview.get()
    members = {worker.config.name for worker in seen.workers if worker.config.pool == pool}
    return [breaker_shape(one) for one in seen.breakers.values() if not members.isdisjoint(one.workers)]


async def _after(site: Site, name: str) -> PoolShape:
    site.changed()
    return _shape(site, await _view(site, name))


def _shape(site: Site, view: PoolView) -> PoolShape:
    return pool_shape(view, wait_p95=site.history.wait_p95(view.name))


async def _view(site: Site, name: str) -> PoolView:
    views = {view.name: view for view in (await site.overview.get()).pools}
    if name not in views:
        message = sentence("there is no pool {what}: {hint}", what=f"{name!r}", hint=nearest(name, views))
        raise UnknownPoolError(message)
    return views[name]
