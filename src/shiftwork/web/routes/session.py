"""Logging in and out, for browsers, and the stream of changes."""

from collections.abc import AsyncIterator
from typing import Annotated, Final

from msgspec import Meta, Struct

from shiftwork.version import __version__
from shiftwork.web.access import Visitor, csrf_of
from shiftwork.web.encoding import encoder
from shiftwork.web.routes.events import Number
from shiftwork.web.routes.overview import Me
from shiftwork.web.routing import Body, CookieAnswer, Text, get, post
from shiftwork.web.site import Site

MOST_BYTES: Final = 1_024
"""The largest body of a request that needs no authentication."""


class Login(Body, frozen=True, kw_only=True):
    """The token that `shiftwork token create` printed."""

    token: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[!-~]*$")]


class LoggedOut(Struct, frozen=True):
    """The visitor is logged out."""

    name: None = None


@post("/login", public=True, most_bytes=MOST_BYTES)
async def log_in(site: Site, body: Login) -> CookieAnswer[Me]:
    """Begin a session, in a cookie that no script can read. It ends after a week, at logout, and with the token."""
    visitor = await site.access.show(body.token)
    site.limiter.take(visitor.name)
    session = await site.control.tokens.log_in(visitor.token_id or "")
    site.tokens_changed()
    me = Me(name=visitor.name, role=visitor.role, csrf=csrf_of(session), version=__version__)
    return CookieAnswer(me, session)


@post("/logout", public=True, most_bytes=MOST_BYTES)
async def log_out(site: Site, visitor: Visitor | None) -> CookieAnswer[LoggedOut]:
    """End the session and delete its cookie. The token stays valid until `shiftwork token revoke`."""
    if visitor is not None and visitor.session is not None:
        await site.control.tokens.log_out(visitor.session)
        site.tokens_changed()
    return CookieAnswer(LoggedOut(), None)


@get("/live", media_type="text/event-stream")
async def live(
    site: Site, visitor: Visitor, last_event_id: Number | None, sentences: Text | None
) -> AsyncIterator[bytes]:
    """Stream changes: `change` with topics, and `event` with an event whose number is its id."""
    return site.live.stream(last_event_id, lambda: site.access.still(visitor), encoder(sentences))
