"""Breakers: reading them, closing one, and holding one open."""

from typing import Annotated

from msgspec import Meta, Struct

from shiftwork.views.shapes.system import BreakerViewShape, breaker_shape
from shiftwork.web.routes.pools import Reason
from shiftwork.web.routing import Name, Text, get, post
from shiftwork.web.site import Site


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
