"""Who sends a request, and what they may do.

Requests from localhost need no token: the connection comes from loopback, no header says that a proxy forwarded it, and
the `Host` is a name of loopback (a page whose own name points at 127.0.0.1 sends its own name). All others need a
token, as `Authorization: Bearer …` or in the cookie that logging in sets.

A browser sends cookies with the requests of every page, and every page may send requests to loopback. So a change
    - must have a JSON body: a page of another origin cannot send one without a preflight, which is never granted,
    - must come from our own pages, where the browser says so (`Origin`, `Sec-Fetch-Site`),
    - must have, besides a cookie, what only our own pages can read: the `X-CSRF-Token` that `GET /me` returns.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from inspect import isawaitable
from ipaddress import ip_address
from typing import Any, Final, Literal, get_args
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from shiftwork.control.tokens import TokenCheck
from shiftwork.core.token import Role
from shiftwork.errors import ConfigurationError, StoreError
from shiftwork.web.problems import Refused

COOKIE: Final = "shiftwork_token"
CSRF_HEADER: Final = "x-csrf-token"
PASSED_ON: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
COOKIE_SECONDS: Final = 30 * 86_400

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

    def __post_init__(self) -> None:
        if self.role not in get_args(Role):
            message = f"a visitor's role is one of {', '.join(get_args(Role))}, not {self.role!r}"
            raise ConfigurationError(message)

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
        if self._identify is not None:
            known = self._identify(request.scope)
            if isawaitable(known):
                known = await known
            if known is not None:
                return known
        scheme, _, shown = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and shown:
            return await self.show(shown.strip(), "bearer")
        cookie = request.cookies.get(COOKIE)
        if cookie:
            try:
                return await self.show(cookie, "cookie")
            except Refused:
                if not self.is_local(request):
                    raise
        if self.is_local(request):
            return Visitor(name="loopback", role="operate", via="loopback")
        raise _unauthenticated(_why(request, trust_loopback=self._trust_loopback))

    async def show(self, shown: str, via: Literal["bearer", "cookie"]) -> Visitor:
        """Return the visitor who shows this token. Raises `Refused` if it is not valid."""
        token = await self._tokens.admit(shown)
        if token is None:
            raise _unauthenticated("this token is not valid: it is unknown, revoked or expired")
        return Visitor(
            name=token.name,
            role=token.role,
            via=via,
            csrf=csrf_of(shown),
            expires_at=token.expires_at,
            token_id=token.id,
        )

    async def still(self, visitor: Visitor) -> bool:
        """Return whether a visitor is still authenticated. While the store is unavailable, everyone is."""
        if visitor.token_id is None:
            return True
        try:
            return await self._tokens.holds(visitor.token_id)
        except StoreError:
            return True

    def is_local(self, request: Request) -> bool:
        """Return whether the request comes from this machine, as far as that can be known."""
        return (
            self._trust_loopback
            and is_loopback(request.client.host if request.client else "")
            and not any(name in request.headers for name in PASSED_ON)
            and _is_loopback_name(request.headers.get("host", ""))
        )


def check_read(request: Request, visitor: Visitor) -> None:
    """Reject what a page of another site asks in the visitor's name: it cannot read the answer, but costs us time."""
    if visitor.via != "bearer" and request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        raise Refused(HTTPStatus.FORBIDDEN, "this request comes from a page of another site")


def check_change(request: Request, visitor: Visitor | None) -> None:
    """Reject a change that a page of another site makes in the visitor's name."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json, also without a body")
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise Refused(HTTPStatus.FORBIDDEN, "this change comes from a page of another site")
    origin = request.headers.get("origin")
    ours = {request.headers.get("host", ""), request.headers.get("x-forwarded-host", "")}
    if origin is not None and _place(origin) not in ours - {""}:
        raise Refused(HTTPStatus.FORBIDDEN, f"this change comes from a page of {origin[:200]}, which is not this site")
    if visitor is not None and visitor.via == "cookie":
        shown = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(shown.encode(), visitor.csrf.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "the X-CSRF-Token header is missing or wrong: GET me returns it")


def set_cookie(response: Response, request: Request, token: str | None) -> None:
    """Make the browser keep the token in a cookie, or delete it."""
    secure = request.url.scheme == "https" or request.headers.get("x-forwarded-proto", "") == "https"
    response.set_cookie(
        COOKIE,
        token or "",
        max_age=COOKIE_SECONDS if token else 0,
        path=(request.scope.get("root_path") or "") + "/",
        secure=secure,
        httponly=True,
        samesite="strict",
    )


def csrf_of(token: str) -> str:
    """Return the CSRF token: it is derived from the token, so it need not be stored."""
    return hmac.new(token.encode(errors="replace"), b"shiftwork csrf", hashlib.sha256).hexdigest()


def _unauthenticated(detail: str) -> Refused:
    return Refused(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": 'Bearer realm="shiftwork"'})


def _why(request: Request, *, trust_loopback: bool) -> str:
    how = "send a token as Authorization: Bearer …; shiftwork token create makes one"
    if trust_loopback and is_loopback(request.client.host if request.client else ""):
        if any(name in request.headers for name in PASSED_ON):
            return f"a proxy forwarded this request; {how}"
        host = request.headers.get("host", "")[:200]
        return f"the Host is {host!r}, not localhost or 127.0.0.1; {how}"
    return how


def is_loopback(address: str) -> bool:
    """Return whether an address is a loopback address."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return parsed.is_loopback or bool(getattr(parsed, "ipv4_mapped", None) and parsed.ipv4_mapped.is_loopback)  # type: ignore[union-attr]


def _place(origin: str) -> str:
    """Return the host of an origin; empty if it is malformed."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _is_loopback_name(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)
