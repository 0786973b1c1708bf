"""The ASGI application: it finds the route, authenticates the request, reads it, and returns the answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import AsyncExitStack, contextmanager
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from shiftwork.control.access.audit import acting_as
from shiftwork.errors import ShiftworkError, StoreError
from shiftwork.sentences import sentence
from shiftwork.views.metrics import CONTENT_TYPE, render
from shiftwork.web.access import Visitor, check_change, check_read, set_cookie
from shiftwork.web.listening import RareWarning
from shiftwork.web.openapi import API
from shiftwork.web.responses import Refused, accepts_gzip, asset, compressed, encoder_for, problem
from shiftwork.web.routes import events, flows, jobs, overview, pools, schedules, tokens, workers
from shiftwork.web.routing import CookieAnswer, Route, find_route
from shiftwork.web.site import Site
from shiftwork.web.visitor_limits import check_head, read_body

__all__ = [
    "Api",
    "events",
    "flows",
    "jobs",
    "overview",
    "pools",
    "schedules",
    "tokens",
    "workers",
]

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
EVENT_STREAM: Final = "text/event-stream"
NOT_BUFFERED: Final = {"X-Accel-Buffering": "no", "Cache-Control": "no-store, no-transform"}
"""What tells proxies to pass on every piece of a stream at once."""
PIECE_BYTES: Final = 65_536


class Api:
    """An ASGI application. It works at the root of a server, and mounted below any path."""

    def __init__(self, site: Site, *, root_path: str = "") -> None:
        self.site = site
        self._root_path = root_path
        """The path below which browsers see it, whether or not a proxy removes it from requests."""
        self._complain = RareWarning()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the server's start and shutdown."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            self.site.begin()
            scope = {**scope, "root_path": self._root_path} if self._root_path else scope
            async with AsyncExitStack() as held:
                response = await self._answer(Request(scope, receive), held)
                for name, value in SECURITY.items():
                    response.headers.setdefault(name, value)
                response.headers.setdefault("cache-control", NEVER_STORED)
                response = await compressed(Request(scope), response)
                await _send(response, scope, receive, send)
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

    async def _answer(self, request: Request, held: AsyncExitStack) -> Response:
        """Return the response. What is `held` is given back once the response has been sent."""
        try:
            check_head(request.scope)
            return await self._find(request, held)
        except (Refused, ShiftworkError) as error:
            return problem(error, encoder_for(request))
        except Exception as error:  # one bad request harms itself only
            logger.exception("%s %s failed", request.method, quote(request.scope.get("path", "")))
            return problem(error, encoder_for(request))

    async def _find(self, request: Request, held: AsyncExitStack) -> Response:
        segments = path_segments(request.scope)
        if segments[:2] == API.split("/")[1:]:
            return await self._call(request, segments[2:], held)
        if request.method not in {"GET", "HEAD"}:
            raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "this path supports only GET and HEAD", {"Allow": "GET, HEAD"})
        if segments == ["livez"]:
            return self._live_probe()
        if segments == ["readyz"]:
            return await self._ready_probe()
        if segments == ["metrics"]:
            visitor = await self._visitor(request)
            check_read(request, visitor)
            await held.enter_async_context(self.site.request_places.take(visitor.name))
            return Response(await self._metrics(), media_type=CONTENT_TYPE)
        if not segments:
            # Without the trailing slash, relative addresses in the page would be wrong.
            return RedirectResponse(f"{quote(request.scope.get('root_path', ''))}/", HTTPStatus.TEMPORARY_REDIRECT)
        return asset("/".join(segments), compressed=accepts_gzip(request))

    def _live_probe(self) -> Response:
        """Return 200 if this process responds and the node, if there is one, reports."""
        why = self.site.why_not_alive()
        if why is not None:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, why)
        return Response("alive\n", media_type="text/plain")

    async def _ready_probe(self) -> Response:
        """Return 200 if the store replies and the node, if there is one, works."""
        with self._discreet():
            why = await self.site.why_not_ready()
        if why is not None:
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, f"not ready: {why}")
        return Response("ready\n", media_type="text/plain")

    @contextmanager
    def _discreet(self) -> Iterator[None]:
        """Do not show strangers where the store is, or what is wrong with it: the log does."""
        try:
            yield
        except StoreError as error:
            self._complain("requests are refused, because the store is not available: %s", error)
            raise Refused(
                HTTPStatus.SERVICE_UNAVAILABLE, sentence("the store is not available; see the server's log")
            ) from None

    async def _visitor(self, request: Request) -> Visitor:
        with self._discreet():
            return await self.site.access.visitor(request)

    async def _metrics(self) -> str:
        seen = await self.site.overview.get()
        began = time.perf_counter()  # the shared answer may be older
        nodes = await self.site.control.nodes.all()
        took = time.perf_counter() - began
        # Two thousand pools take half a second: too long for the event loop.
        return await asyncio.to_thread(render, seen, nodes, look_seconds=took)

    async def _call(self, request: Request, segments: list[str], held: AsyncExitStack) -> Response:
        route, found = find_route(request.method, segments)
        if route.role is None:
            return await self._call_public(request, route, found)
        visitor = await self._visitor(request)
        if not visitor.may(route.role):
            remedy = sentence("shiftwork token create NAME --role operate makes one that may operate")
            raise Refused(
                HTTPStatus.FORBIDDEN,
                sentence("the token {what} may only read; {remedy}", what=f"{visitor.name!r}", remedy=remedy),
            )
        if route.method == "GET":
            check_read(request, visitor)
        else:
            check_change(request, visitor)
            self.site.limiter.take(visitor.name)
        if route.media_type == EVENT_STREAM:
            held.enter_context(self.site.stream_places.take(visitor.name))
        else:
            await held.enter_async_context(self.site.request_places.take(visitor.name))
        given = await _read(request, route, found, visitor)
        with acting_as(visitor.name):
            return _respond(request, route, await route.handler(self.site, **given))

    async def _call_public(self, request: Request, route: Route, found: dict[str, str]) -> Response:
        check_change(request, None)
        with self._discreet(), self._counting_failures(request), acting_as("anonymous"):
            visitor = await self.site.access.session(request) if route.visitor else None
            given = await _read(request, route, found, visitor)
            return _respond(request, route, await route.handler(self.site, **given))

    @contextmanager
    def _counting_failures(self, request: Request) -> Iterator[None]:
        """Limit how often an address shows a wrong token. Others behind the same proxy do not hold up a right one."""
        try:
            yield
        except Refused as refused:
            if refused.status == HTTPStatus.UNAUTHORIZED:
                peer = request.client.host if request.client else "an unknown address"
                self.site.limiter.take(sentence("an unauthenticated client at {host}", host=peer))
            raise


async def _read(request: Request, route: Route, found: dict[str, str], visitor: Visitor | None) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if route.method == "POST":
        given |= route.read_body(await read_body(request, route.most_bytes))
    given |= route.read_path(found) | route.read_headers(request.headers.items())
    given |= route.read_query(request.scope.get("query_string", b"").decode("latin-1"))
    return given | ({"visitor": visitor} if route.visitor else {})


async def _send(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """Send the response in pieces, so that a server holds no more than one that the client has not read yet."""
    if isinstance(response, StreamingResponse) or len(response.body) <= PIECE_BYTES:
        await response(scope, receive, send)
        return
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    size = len(response.body)
    for at in range(0, size, PIECE_BYTES):
        piece = bytes(response.body[at : at + PIECE_BYTES])
        await send({"type": "http.response.body", "body": piece, "more_body": at + PIECE_BYTES < size})


def _respond(request: Request, route: Route, answer: Any) -> Response:
    if route.media_type == EVENT_STREAM:
        return StreamingResponse(answer, media_type=route.media_type, headers=NOT_BUFFERED)
    remembered = isinstance(answer, CookieAnswer)
    content = encoder_for(request)(answer.answer if remembered else answer)
    response = Response(content, media_type=route.media_type)
    if remembered:
        set_cookie(response, request, answer.session)
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
