"""Logging in and out, for browsers, and the stream of changes."""

from collections.abc import AsyncIterator
from http import HTTPStatus
from importlib.metadata import version
from typing import Annotated

from msgspec import Meta, Struct

from shiftwork.web.access import Visitor
from shiftwork.web.problems import Refused
from shiftwork.web.routes.overview import Me, Number
from shiftwork.web.routing import Body, CookieAnswer, get, post
from shiftwork.web.site import Site


class Login(Body, frozen=True, kw_only=True):
    """The token that `shiftwork token create` printed."""

    token: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[!-~]*$")]


class LoggedOut(Struct, frozen=True):
    """The visitor is logged out."""

    name: None = None


@post("/login", public=True)
async def log_in(site: Site, body: Login) -> CookieAnswer[Me]:
    """Keep a token in a cookie of the browser that no script can read."""
    visitor = await site.access.show(body.token, "cookie")
    me = Me(name=visitor.name, role=visitor.role, csrf=visitor.csrf, version=version("shiftwork"))
    return CookieAnswer(me, body.token)


@post("/logout", public=True)
async def log_out(site: Site) -> CookieAnswer[LoggedOut]:  # noqa: ARG001 - every route takes the site
    """Delete the cookie. The token stays valid until `shiftwork token revoke`."""
    return CookieAnswer(LoggedOut(), None)


@get("/live", media_type="text/event-stream")
async def live(site: Site, visitor: Visitor, last_event_id: Number | None) -> AsyncIterator[bytes]:
    """Stream changes: `change` with topics, and `event` with an event whose number is its id."""
    if site.live.full:
        raise Refused(
            HTTPStatus.SERVICE_UNAVAILABLE, "there are too many streams already; poll every few seconds instead"
        )
    return site.live.stream(last_event_id, lambda: site.access.still(visitor))
