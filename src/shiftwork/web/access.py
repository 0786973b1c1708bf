"""Who asks, and whether they may.

Whoever sits at the machine itself needs no password: the connection comes from loopback, nothing says that a proxy
passed it on, and the `Host` is a name of loopback (a page that has its own name point at 127.0.0.1 sends its own name).
Everybody else shows a token: as `Authorization: Bearer …`, or in the cookie that logging in sets.

A browser sends cookies along with whatever any page asks for, and any page may talk to loopback. So a change
    - says that its body is JSON: no page of another origin can, without asking first, and nobody answers that,
    - comes from our own pages, where the browser tells (`Origin`, `Sec-Fetch-Site`),
    - shows, besides a cookie, what only our own pages can have read: `X-CSRF-Token`, which `GET /me` tells.
"""

import hashlib
import hmac
from collections.abc import Callable, MutableMapping
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from shiftwork.control.tokens import TokenCheck
from shiftwork.core.token import Role
from shiftwork.errors import StoreError
from shiftwork.web.problems import Refused

COOKIE: Final = "shiftwork_token"
CSRF_HEADER: Final = "x-csrf-token"
PASSED_ON: Final = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
COOKIE_SECONDS: Final = 30 * 86_400

Identify = Callable[[MutableMapping[str, Any]], "Visitor | None"]
"""How an application that has us inside says who asks: from the ASGI scope. None is a stranger."""


class Visitor(Struct, frozen=True, kw_only=True):
    """Somebody who may come in."""

    name: str
    role: Role
    via: Literal["loopback", "bearer", "cookie", "host"]
    csrf: str = ""
    expires_at: float | None = None
    """When the token ends that was shown, if it does by itself."""
    token_id: str | None = None
    """Which token that was."""

    def may(self, role: Role) -> bool:
        """Whether this role is covered."""
        return role == "read" or self.role == "operate"


class Access:
    """The door."""

    def __init__(self, tokens: TokenCheck, *, trust_loopback: bool, identify: Identify | None) -> None:
        self._tokens = tokens
        self._trust_loopback = trust_loopback
        self._identify = identify

    async def visitor(self, request: Request) -> Visitor:
        """Who asks. Raises `Refused` for a stranger."""
        if self._identify is not None:
            known = self._identify(request.scope)
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
        raise _stranger(_why(request, trust_loopback=self._trust_loopback))

    async def show(self, shown: str, via: Literal["bearer", "cookie"]) -> Visitor:
        """Whom a token lets in."""
        token = await self._tokens.admit(shown)
        if token is None:
            raise _stranger("this token lets nobody in: it is unknown, revoked or has expired")
        return Visitor(
            name=token.name,
            role=token.role,
            via=via,
            csrf=csrf_of(shown),
            expires_at=token.expires_at,
            token_id=token.id,
        )

    async def still(self, visitor: Visitor) -> bool:
        """Whether somebody who came in may stay. A store that does not answer sends nobody away."""
        if visitor.token_id is None:
            return True
        try:
            return await self._tokens.holds(visitor.token_id)
        except StoreError:
            return True

    def is_local(self, request: Request) -> bool:
        """Whether somebody sits at this very machine, as far as can be told."""
        return (
            self._trust_loopback
            and is_loopback(request.client.host if request.client else "")
            and not any(name in request.headers for name in PASSED_ON)
            and _is_loopback_name(request.headers.get("host", ""))
        )


def check_read(request: Request, visitor: Visitor) -> None:
    """Refuse what another's page asks in our visitor's name: it could not read it, but it could keep us busy."""
    if visitor.via != "bearer" and request.headers.get("sec-fetch-site", "none") not in {"same-origin", "none"}:
        raise Refused(HTTPStatus.FORBIDDEN, "this question comes from a page of another site")


def check_change(request: Request, visitor: Visitor | None) -> None:
    """Refuse a change that a page of somebody else's makes in our visitor's name."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "say Content-Type: application/json, also without a body")
    if request.headers.get("sec-fetch-site", "same-origin") not in {"same-origin", "none"}:
        raise Refused(HTTPStatus.FORBIDDEN, "this change comes from a page of another site")
    origin = request.headers.get("origin")
    ours = {request.headers.get("host", ""), request.headers.get("x-forwarded-host", "")}
    if origin is not None and _place(origin) not in ours - {""}:
        raise Refused(HTTPStatus.FORBIDDEN, f"this change comes from a page of {origin[:200]}, which is not this site")
    if visitor is not None and visitor.via == "cookie":
        shown = request.headers.get(CSRF_HEADER, "")
        if not hmac.compare_digest(shown.encode(), visitor.csrf.encode()):
            raise Refused(HTTPStatus.FORBIDDEN, "the X-CSRF-Token header is missing or wrong: GET me tells it")


def set_cookie(response: Response, request: Request, token: str | None) -> None:
    """Have the browser remember the token, or forget it."""
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
    """What a page shows that the browser alone would not: made from the token, so nobody has to remember it."""
    return hmac.new(token.encode(errors="replace"), b"shiftwork csrf", hashlib.sha256).hexdigest()


def _stranger(detail: str) -> Refused:
    return Refused(HTTPStatus.UNAUTHORIZED, detail, {"WWW-Authenticate": 'Bearer realm="shiftwork"'})


def _why(request: Request, *, trust_loopback: bool) -> str:
    how = "show a token: Authorization: Bearer …; shiftwork token create makes one"
    if trust_loopback and is_loopback(request.client.host if request.client else ""):
        if any(name in request.headers for name in PASSED_ON):
            return f"a proxy passed this on, so {how}"
        host = request.headers.get("host", "")[:200]
        return f"the Host is {host!r}, not localhost or 127.0.0.1, so {how}"
    return how


def is_loopback(address: str) -> bool:
    """Whether an address is this machine itself."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return parsed.is_loopback or bool(getattr(parsed, "ipv4_mapped", None) and parsed.ipv4_mapped.is_loopback)  # type: ignore[union-attr]


def _place(origin: str) -> str:
    """Where a page comes from; nothing, if that is no address."""
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
