"""The ASGI application: it finds the route, authenticates the request, reads it, and returns the answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from shiftwork.control.actor import acting_as
from shiftwork.errors import ShiftworkError
from shiftwork.views.metrics import CONTENT_TYPE, render
from shiftwork.web.access import Visitor, check_change, check_read, set_cookie
from shiftwork.web.assets import asset
from shiftwork.web.limits import read_body
from shiftwork.web.openapi import API
from shiftwork.web.problems import Refused, problem
from shiftwork.web.routes import doctor, jobs, nodes, overview, pools, session, tokens, workers
from shiftwork.web.routing import CookieAnswer, Route, find_route
from shiftwork.web.site import Site

__all__ = ["Api", "doctor", "jobs", "nodes", "overview", "pools", "session", "tokens", "workers"]

logger: Final = logging.getLogger("shiftwork")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

SECURITY: Final = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
NEVER_STORED: Final = "no-store"


class Api:
    """An ASGI application. It works at the root of a server, and mounted below any path."""

    def __init__(self, site: Site, *, root_path: str = "") -> None:
        self.site = site
        self._root_path = root_path
        """The path below which browsers see it, whether or not a proxy removes it from requests."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the server's start and shutdown."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self.site.begin()
            scope = {**scope, "root_path": self._root_path} if self._root_path else scope
            request = Request(scope, receive)
            response = await self._answer(request)
            for name, value in SECURITY.items():
                response.headers.setdefault(name, value)
            response.headers.setdefault("cache-control", NEVER_STORED)
            await response(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})

    async def close(self) -> None:
        """End all streams and stop sampling. Call it where the server's shutdown does not reach us, as in a mount."""
        await self.site.close()

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self.site.begin()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _answer(self, request: Request) -> Response:
        try:
            return await self._find(request)
        except (Refused, ShiftworkError) as error:
            return problem(error)
        except Exception as error:  # one bad request harms itself only
            logger.exception("%s %s failed", request.method, request.scope.get("path"))
            return problem(error)

    async def _find(self, request: Request) -> Response:
        segments = path_segments(request.scope)
        if segments[:2] == API.split("/")[1:]:
            return await self._call(request, segments[2:])
        if request.method not in {"GET", "HEAD"}:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "this path supports only GET and HEAD", {"Allow": "GET, HEAD"})
        if segments == ["livez"]:
            return Response("alive\n", media_type="text/plain")
        if segments == ["readyz"]:
            return await self._ready()
        if segments == ["metrics"]:
            check_read(request, await self.site.access.visitor(request))
            return Response(await self._metrics(), media_type=CONTENT_TYPE)
        if not segments:
            # Without the trailing slash, relative addresses in the page would be wrong.
            return RedirectResponse(f"{quote(request.scope.get('root_path', ''))}/", HTTPStatus.TEMPORARY_REDIRECT)
        return asset("/".join(segments))

    async def _ready(self) -> Response:
        """Return 200 if the store replies and the node, if there is one, works."""
        why = await self.site.why_not_ready()
        if why is not None:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {why}")
        return Response("ready\n", media_type="text/plain")

    async def _metrics(self) -> str:
        seen = await self.site.overview.get()
        began = time.perf_counter()  # the shared answer may be older
        nodes = await self.site.control.nodes.all()
        took = time.perf_counter() - began
        # Two thousand pools take half a second: too long for the event loop.
        return await asyncio.to_thread(render, seen, nodes, look_seconds=took)

    async def _call(self, request: Request, segments: list[str]) -> Response:
        route, found = find_route(request.method, segments)
        visitor = None if route.role is None else await self.site.access.visitor(request)
        given = await self._read(request, route, found, visitor)
        with acting_as(visitor.name if visitor else "anonymous"):
            answer = await route.handler(self.site, **given)
        return _respond(request, route, answer)

    async def _read(
        self, request: Request, route: Route, found: dict[str, str], visitor: Visitor | None
    ) -> dict[str, Any]:
        if visitor is not None and route.role is not None and not visitor.may(route.role):
            remedy = "shiftwork token create NAME --role operate makes one that may operate"
            detail = f"the token {visitor.name!r} may only read; {remedy}"
            raise Refused(HTTPStatus.FORBIDDEN, detail)
        given: dict[str, Any] = {}
        if route.method == "GET" and visitor is not None:
            check_read(request, visitor)
        if route.method == "POST":
            check_change(request, visitor)
            peer = request.client.host if request.client else "an unknown address"
            self.site.limiter.take(visitor.name if visitor else f"an unauthenticated client at {peer}")
            given |= route.read_body(await read_body(request))
        given |= route.read_path(found) | route.read_headers(request.headers)
        given |= route.read_query(request.scope.get("query_string", b"").decode("latin-1"))
        return given | ({"visitor": visitor} if route.visitor else {})


def _respond(request: Request, route: Route, answer: Any) -> Response:
    if route.media_type == "text/event-stream":
        return StreamingResponse(answer, media_type=route.media_type, headers={"X-Accel-Buffering": "no"})
    remembered = isinstance(answer, CookieAnswer)
    content = msgspec.json.encode(answer.answer if remembered else answer)
    response = Response(content, media_type=route.media_type)
    if remembered:
        set_cookie(response, request, answer.token)
    return response


def path_segments(scope: Scope) -> list[str]:
    """Return the segments of the path below ours, still quoted: a name may contain a slash.

    `[]` is our own path without a trailing slash, `[""]` with it.
    """
    raw = scope.get("raw_path")
    path = raw.decode("latin-1").partition("?")[0] if raw else quote(scope["path"])
    root = (scope.get("root_path") or "").rstrip("/")
    segments = path.split("/")[1:]
    below = root.split("/")[1:] if root and (scope["path"] + "/").startswith(f"{root}/") else []
    return segments[len(below) :]
