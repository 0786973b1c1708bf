"""Who may do what: logging in and out for browsers, who sends a request, and tokens for visitors who may operate.

Over HTTP only tokens that read can be made, and a token makes none that outlives it. A token that operates is made by
the command line, which needs the store itself. So neither a stolen token nor a request that passed for a local one
leaves anything behind that can change things.
"""

from http import HTTPStatus
from typing import Annotated, Final

from msgspec import Meta, Struct, structs

from shiftwork.control.access.tokens import LONGEST_TOKEN_NAME
from shiftwork.core.model.doc_types import Role
from shiftwork.version import __version__
from shiftwork.views.shapes.system import TokenShape, token_shape
from shiftwork.web.access import Visitor, csrf_of
from shiftwork.web.responses import Refused
from shiftwork.web.routing import Body, CookieAnswer, Name, get, post
from shiftwork.web.site import Site

LONGEST_TOKEN_SECONDS: Final = 315_360_000
MOST_LOGIN_BYTES: Final = 1_024
"""The largest body of a request that needs no authentication."""


class Me(Struct, frozen=True, kw_only=True):
    """Who sends the request, and what they may do."""

    name: str
    role: Role
    csrf: str | None
    version: str


class Login(Body, frozen=True, kw_only=True):
    """The token that `shiftwork token create` printed."""

    token: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[!-~]*$")]


class LoggedOut(Struct, frozen=True):
    """The visitor is logged out."""

    name: None = None


@post("/login", public=True, most_bytes=MOST_LOGIN_BYTES)
async def log_in(site: Site, body: Login) -> CookieAnswer[Me]:
    """Begin a session, in a cookie that no script can read. It ends after a week, at logout, and with the token."""
    visitor = await site.access.show(body.token)
    site.limiter.take(visitor.name)
    session = await site.control.tokens.log_in(visitor.token_id or "")
    site.tokens_changed()
    me = Me(name=visitor.name, role=visitor.role, csrf=csrf_of(session), version=__version__)
    return CookieAnswer(me, session)


@post("/logout", public=True, most_bytes=MOST_LOGIN_BYTES)
async def log_out(site: Site, visitor: Visitor | None) -> CookieAnswer[LoggedOut]:
    """End the session and delete its cookie. The token stays valid until `shiftwork token revoke`."""
    if visitor is not None and visitor.session is not None:
        await site.control.tokens.log_out(visitor.session)
        site.tokens_changed()
    return CookieAnswer(LoggedOut(), None)


@get("/me")
async def me(site: Site, visitor: Visitor) -> Me:  # noqa: ARG001 - every route takes the site
    """Return who sends the request, what they may do, and the X-CSRF-Token for changes by cookie."""
    return Me(name=visitor.name, role=visitor.role, csrf=visitor.csrf or None, version=__version__)


class TokensAnswer(Struct, frozen=True):
    """Every token that was ever made, without its secret."""

    tokens: list[TokenShape]


class NewToken(Body, frozen=True, kw_only=True):
    """A token to make. Without `valid_seconds` it is valid until it is revoked."""

    name: Annotated[str, Meta(min_length=1, max_length=LONGEST_TOKEN_NAME, pattern="^[ -?A-~]*$")]
    role: Role
    valid_seconds: Annotated[float, Meta(gt=0, le=LONGEST_TOKEN_SECONDS)] | None = None


class MadeToken(TokenShape, frozen=True, kw_only=True):
    """A token with its secret, which is shown only once."""

    token: str


@get("/tokens", role="operate")
async def tokens(site: Site) -> TokensAnswer:
    """Return every token that was ever made, without its secret."""
    return TokensAnswer([token_shape(token) for token in await site.control.tokens.all()])


@post("/tokens")
async def create_token(site: Site, visitor: Visitor, body: NewToken) -> MadeToken:
    """Make a token that reads and return it, only this once. `shiftwork token create` makes one that operates."""
    if body.role != "read":
        detail = "only tokens that read can be made over HTTP; for one that operates: shiftwork token create"
        raise Refused(HTTPStatus.FORBIDDEN, detail)
    valid = body.valid_seconds
    if visitor.expires_at is not None:
        left = max(visitor.expires_at - site.control.now(), 0.0)
        valid = left if valid is None else min(valid, left)
    made, secret = await site.control.tokens.create(body.name, body.role, valid_seconds=valid)
    site.tokens_changed()
    return MadeToken(**structs.asdict(token_shape(made)), token=secret)


@post("/tokens/{token}/revoke")
async def revoke_token(site: Site, token: Name) -> TokenShape:
    """Revoke a token by its name or its id: here at once, elsewhere within two seconds."""
    held = [one for one in await site.control.tokens.all() if one.holds(site.control.now())]
    if not any(token in {one.name, one.id} for one in held):
        raise Refused(HTTPStatus.NOT_FOUND, f"there is no valid token {token!r}")
    revoked = await site.control.tokens.revoke(token)
    site.tokens_changed()
    return token_shape(revoked)
