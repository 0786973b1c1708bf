"""Who sends a request, and what they may do.

Requests of our own user and of root, from this machine, need no token: the connection comes from loopback, neither a
header nor HTTP/1.0 shows that a proxy forwarded it, the `Host` is a name of loopback (a page whose own name points at
127.0.0.1 sends its own name), and the other end of the connection belongs to one of the two. All others need a token,
as `Authorization: Bearer …`, or a session: logging in with a token sets a cookie that stands for it, until it expires.
Inside another application every request needs one, or a visitor that the application names: its server may be behind a
proxy that leaves no trace.

A browser sends cookies with the requests of every page, and every page may send requests to loopback. So a change
    - must have a JSON body: a page of another origin cannot send one without a preflight, which is never granted,
    - must come from our own pages, where the browser says so (`Origin`, `Sec-Fetch-Site`),
    - must have, besides a cookie, what only our own pages can read: the `X-CSRF-Token` that `GET /me` returns.
"""

import asyncio
import hashlib
import hmac
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from shiftwork.control.access.tokens import SESSION_SECONDS, TokenCheck
from shiftwork.core.model.doc_types import Role
from shiftwork.errors import StoreError
from shiftwork.sentences import sentence
from shiftwork.web.peers import is_loopback, is_our_own
from shiftwork.web.responses import Refused

logger: Final = logging.getLogger("shiftwork")

COOKIE: Final = "shiftwork_session"
CSRF_HEADER: Final = "x-csrf-token"
PROXY_HEADERS: Final = re.compile(
    r"via|cdn-loop|x-varnish|(x-)?forward.*|front-end-https|x-(scheme|url-scheme|host|port)|(x-)?ssl-.*"
    r"|.*(client|real|remote|connecting|originating|true|source|proxyuser)-(ip|addr|address)"
    r"|(cf|fly|fastly|akamai|x-akamai|x-envoy|x-amzn|x-amz|x-azure|x-arr|x-appengine|x-vercel|x-original|x-proxy)-.*",
    re.IGNORECASE,
)
"""Headers that proxies, load balancers and content delivery networks add, and neither browsers nor curl do."""
CONNECTION: Final = "shiftwork.connection"
"""Where in the ASGI state our own server keeps what is known about a connection, from one request to the next."""
OURS: Final = "ours"
"""True if the other end of the connection is our own user's, or root's."""
AUTHENTICATED: Final = "authenticated"
"""True while the request is one of a visitor who is authenticated."""

Identify = Callable[[MutableMapping[str, Any]], "Visitor | Awaitable[Visitor | None] | None"]
"""How an application that mounts us names the visitor, from the ASGI scope; None if it knows none. It may be async."""


class Visitor(Struct, frozen=True, kw_only=True):
    """A person or a program that is authenticated."""

    name: str
    role: Role
    via: Literal["loopback", "bearer", "cookie", "host"]
    csrf: str = ""
    expires_at: float | None = None
    """When the visitor's token expires, if it does."""
    token_id: str | None = None
    """The id of the visitor's token, if there is one."""
    session: str | None = None
    """The value of the visitor's cookie, if the request is authenticated by one."""

    def may(self, role: Role) -> bool:
        """Return whether the visitor may do what this role may."""
        return role == "read" or self.role == "operate"


class Access:
    """Authenticates requests."""

    def __init__(self, tokens: TokenCheck, *, trust_loopback: bool, identify: Identify | None) -> None:
        self._tokens = tokens
        self._trust_loopback = trust_loopback
        self._identify = identify

    async def visitor(self, request: Request) -> Visitor:
        """Return who sends the request. Raises `Refused` if they are not authenticated."""
        visitor = await self._authenticate(request)
        _connection(request)[AUTHENTICATED] = True
        return visitor

    async def _authenticate(self, request: Request) -> Visitor:
        known = await self._identified(request)
        if known is not None:
            return known
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and shown:
            return await self.show(shown.strip())
        visitor = await self.session(request)
        if visitor is not None:
            return visitor
        if await self._is_local(request):
            return Visitor(name="loopback", role="operate", via="loopback")
        raise _unauthenticated(_why(request, trust_loopback=self._trust_loopback))

    async def show(self, shown: str) -> Visitor:
        """Return the visitor who shows this token. Raises `Refused` if it is not valid."""
        token = await self._tokens.admit(shown)
        if token is None:
            raise _unauthenticated(sentence("this token is not valid: it is unknown, revoked or expired"))
        return Visitor(name=token.name, role=token.role, via="bearer", expires_at=token.expires_at, token_id=token.id)

    async def session(self, request: Request) -> Visitor | None:
        """Return the visitor whom the request's cookie stands for; None without a session that is still valid."""
        shown = request.cookies.get(cookie_name(request))
        token = None if not shown else await self._tokens.admit_session(shown)
        if shown is None or token is None:
            return None
        return Visitor(
            name=token.name,
            role=token.role,
            via="cookie",
            csrf=csrf_of(shown),
            expires_at=token.expires_at,
            token_id=token.id,
            session=shown,
        )

    async def still(self, visitor: Visitor) -> bool:
        """Return whether a visitor is still authenticated. While the store is unavailable, everyone is."""
        if visitor.token_id is None:
            return True
        try:
            if visitor.session is not None:
                return await self._tokens.admit_session(visitor.session) is not None
            return await self._tokens.holds(visitor.token_id)
        except StoreError:
            return True

    async def _identified(self, request: Request) -> Visitor | None:
        """Return the visitor that the application names. A role that does not exist must not look like a refusal."""
        if self._identify is None:
            return None
        known: Any = self._identify(request.scope)
        known = await known if inspect.isawaitable(known) else known
        if known is None:
            return None
        wrong = f"returned {type(known).__name__}, not a Visitor or None" if not isinstance(known, Visitor) else ""
        if not wrong and known.role not in get_args(Role):
            wrong = f"returned the role {known.role!r} for {known.name!r}; a role is {' or '.join(get_args(Role))}"
        if wrong:
            logger.error("the identify function %s", wrong)
            raise Refused(HTTPStatus.INTERNAL_SERVER_ERROR, f"the identify function {wrong}")
        visitor: Visitor = known
        return visitor

    async def _is_local(self, request: Request) -> bool:
        """Return whether the request comes from our own user, or root, on this machine."""
        return (
            self._trust_loopback
            and is_loopback(request.client.host if request.client else "")
            and not _forwarded(request)
            and _foreign_host(request) is None
            and await _is_ours(request)
        )


def _forwarded(request: Request) -> str:
    """Return what shows that a proxy forwarded the request; empty if nothing does."""
    if request.scope.get("http_version") == "1.0":
        return sentence("it came as HTTP/1.0, which proxies speak and browsers do not")
    names = (name for name in request.headers if PROXY_HEADERS.fullmatch(name))
    return next((sentence("it has the header {name}", name=name[:50]) for name in names), "")


def _connection(request: Request) -> dict[str, bool]:
    found: dict[str, bool] = request.scope.get("state", {}).get(CONNECTION, {})
    return found


async def _is_ours(request: Request) -> bool:
    """Return whether the connection is our own user's or root's. Behind our own server, it is looked up once."""
    connection = _connection(request)
    if OURS not in connection:
        client, server = request.scope.get("client") or (), request.scope.get("server") or ()
        connection[OURS] = bool(client and server) and await asyncio.to_thread(is_our_own, tuple(client), tuple(server))
    return connection[OURS]


def check_read(request: Request, visitor: Visitor) -> None:
    """Reject what a page of another site asks in the visitor's name: it cannot read the answer, but costs us time."""
    if visitor.via != "bearer" and request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        raise Refused(HTTPStatus.FORBIDDEN, sentence("this request comes from a page of another site"))


def check_change(request: Request, visitor: Visitor | None) -> None:
    """Reject a change that a page of another site makes in the visitor's name."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json, also without a body")
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise Refused(HTTPStatus.FORBIDDEN, sentence("this change comes from a page of another site"))
    origin = request.headers.get("origin")
    ours = {request.headers.get("host", ""), request.headers.get("x-forwarded-host", "")}
    if origin is not None and _place(origin) not in ours - {""}:
        raise Refused(
            HTTPStatus.FORBIDDEN,
            sentence("this change comes from a page of {what}, which is not this site", what=origin[:200]),
        )
    if visitor is not None and visitor.via == "cookie":
        shown = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(shown.encode(), visitor.csrf.encode()):
            raise Refused(
                HTTPStatus.FORBIDDEN, sentence("the X-CSRF-Token header is missing or wrong: GET me returns it")
            )


def cookie_name(request: Request) -> str:
    """Return the name of the cookie. Under TLS, no other host and no page without TLS can set one of this name."""
    if not _is_secure(request):
        return COOKIE
    below = request.scope.get("root_path") or ""
    return f"__Host-{COOKIE}" + (f"_{hashlib.sha256(below.encode()).hexdigest()[:8]}" if below else "")


def set_cookie(response: Response, request: Request, value: str | None) -> None:
    """Make the browser keep a session in a cookie, or delete it."""
    secure = _is_secure(request)
    response.set_cookie(
        cookie_name(request),
        value or "",
        max_age=SESSION_SECONDS if value else 0,
        path="/" if secure else (request.scope.get("root_path") or "") + "/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def _is_secure(request: Request) -> bool:
    return request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"


def csrf_of(session: str) -> str:
    """Return the CSRF token: it is derived from the session, so it need not be stored."""
    return hmac.new(session.encode(errors="replace"), b"shiftwork csrf", hashlib.sha256).hexdigest()


def _unauthenticated(detail: str) -> Refused:
    return Refused(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": 'Bearer realm="shiftwork"'})


def _why(request: Request, *, trust_loopback: bool) -> str:
    how = sentence("send a token as Authorization: Bearer …; shiftwork token create makes one")
    if trust_loopback and is_loopback(request.client.host if request.client else ""):
        if forwarded := _forwarded(request):
            return sentence("a proxy forwarded this request: {forwarded}; {how}", forwarded=forwarded, how=how)
        if (host := _foreign_host(request)) is not None:
            return sentence("the Host is {host}, not localhost or 127.0.0.1; {how}", host=f"{host[:200]!r}", how=how)
        return sentence(
            "this connection belongs to another user of this machine, or its user is unknown; {how}", how=how
        )
    if CONNECTION not in request.scope.get("state", {}):  # only our own server sets it
        return sentence(
            "{how}; the application that mounts this dashboard can name its own users with identify=", how=how
        )
    return how


def _place(origin: str) -> str:
    """Return the host of an origin; empty if it is malformed."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _foreign_host(request: Request) -> str | None:
    """Return the first Host that is no name of loopback; None if the request has none. A second one counts, too."""
    return next((host for host in request.headers.getlist("host") or [""] if not _is_loopback_name(host)), None)


def _is_loopback_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)
