"""FastAPI and Starlette: an app that opens, closes and may run an orchestrator, and shows its dashboard.

web = FastAPI()
attach(web, app, dashboard="/shiftwork", identify=visitor)
"""

import asyncio
import inspect
import logging
import signal
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import asdict
from http import HTTPStatus
from types import FrameType
from typing import Any, Final

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.types import ExceptionHandler

from shiftwork.app import WorkerOrchestrator
from shiftwork.errors import ConfigurationError, ShiftworkError, StoreError, UnknownJobError
from shiftwork.handles.job import Job
from shiftwork.web.access import Identify, Visitor
from shiftwork.web.api import Api

__all__ = ["Visitor", "attach", "orchestrator"]

logger: Final = logging.getLogger("shiftwork")

IdentifyRequest = Callable[[Request], "Visitor | Awaitable[Visitor | None] | None"]
"""Returns the visitor whom the application has authenticated, or None. It may be async."""


def attach(
    web: Starlette,
    app: WorkerOrchestrator,
    *,
    run: bool = False,
    dashboard: str | None = None,
    identify: IdentifyRequest | None = None,
    trust_loopback: bool = False,
) -> None:
    """Open the orchestrator's store when the application starts, and close it when it stops.

    With `run`, its workers run in this process. `dashboard` is the path below which the dashboard and the HTTP API are
    mounted. `identify` returns the visitor of a request there, by your own log-in; other visitors need a token. With
    `trust_loopback`, requests of the user who runs the server, and of root, from this machine need none: set it only
    where no proxy or forwarder is in front. A route that asks for a job that does not exist responds with 404, unless
    the application handles `UnknownJobError` or all of `ShiftworkError` itself.
    """
    if getattr(web.state, "shiftwork", app) is not app:
        raise ConfigurationError("this application has another orchestrator already; attach one")
    web.state.shiftwork = app
    mounted = None if dashboard is None else _mount(web, app, dashboard, identify, trust_loopback=trust_loopback)
    inner = web.router.lifespan_context

    @asynccontextmanager
    async def lifespan(of: Any) -> AsyncIterator[Any]:
        async with _living(app, mounted, run=run), inner(of) as state:
            yield state

    web.router.lifespan_context = lifespan
    web.exception_handlers.setdefault(UnknownJobError, _not_found(web))
    if "fastapi" in sys.modules:
        from fastapi.encoders import ENCODERS_BY_TYPE  # noqa: PLC0415 - Starlette does without

        ENCODERS_BY_TYPE[Job] = lambda job: asdict(job.summary)


def orchestrator(connection: HTTPConnection) -> WorkerOrchestrator:
    """Return the orchestrator of the application: `Annotated[WorkerOrchestrator, Depends(orchestrator)]`."""
    found = getattr(connection.app.state, "shiftwork", None)
    if not isinstance(found, WorkerOrchestrator):
        raise ConfigurationError("this application has no orchestrator: call attach(web, app) where it is made")
    return found


def _not_found(web: Starlette) -> ExceptionHandler:
    async def respond(request: Request, error: Exception) -> Any:
        """Leave the error to the application if it handles a wider class of our errors; respond with 404 if not."""
        wider = [kind for kind in UnknownJobError.__mro__[1:] if issubclass(kind, ShiftworkError)]
        theirs: Any = next((web.exception_handlers[kind] for kind in wider if kind in web.exception_handlers), None)
        if theirs is None:
            return JSONResponse({"detail": str(error)}, HTTPStatus.NOT_FOUND)
        if inspect.iscoroutinefunction(theirs):
            return await theirs(request, error)
        return await run_in_threadpool(theirs, request, error)

    return respond


def _mount(
    web: Starlette, app: WorkerOrchestrator, path: str, identify: IdentifyRequest | None, *, trust_loopback: bool
) -> "MountedDashboard":
    if not path.startswith("/") or path == "/":
        message = f'dashboard is a path below the root, such as "/shiftwork", not {path!r}'
        raise ConfigurationError(message)
    known = None if identify is None else _from_scope(identify)
    mounted = MountedDashboard(lambda: app.asgi(identify=known, trust_loopback=trust_loopback))
    web.mount(path, mounted)
    return mounted


def _from_scope(identify: IdentifyRequest) -> Identify:
    async def identified(scope: MutableMapping[str, Any]) -> Visitor | None:
        found = identify(Request(scope))
        return await found if inspect.isawaitable(found) else found

    return identified


@asynccontextmanager
async def _living(app: WorkerOrchestrator, mounted: "MountedDashboard | None", *, run: bool) -> AsyncIterator[None]:
    if run:
        await app.start()
    else:
        await _open(app)
    try:
        async with nullcontext() if mounted is None else mounted.living():
            yield
    finally:
        await (app.stop() if run else app.close())


async def _open(app: WorkerOrchestrator) -> None:
    """Find a wrong address at the start. A store that is away does not keep the application from starting."""
    try:
        await app.control.store.open()
    except StoreError as error:
        logger.warning("the store is not available; the next request tries again: %s", error)


class MountedDashboard:
    """The dashboard inside another application, which may be started again after it was stopped."""

    def __init__(self, make: Callable[[], Api]) -> None:
        self._make = make
        self._api = make()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._api(scope, receive, send)

    @asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Serve until this is left, or the process receives a signal to stop."""
        self._api = self._make()
        async with _before_the_server(self._api.close):
            yield
        await self._api.close()


@asynccontextmanager
async def _before_the_server(close: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """End the streams of open pages at the first signal: servers wait for these before they stop the application."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    closing: list[asyncio.Future[None]] = []
    servers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def stop(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(lambda: closing.append(asyncio.ensure_future(close())))
        server = servers[signal.Signals(number)]
        if callable(server):
            server(number, frame)

    heard = [number for number, server in servers.items() if callable(server)]
    for number in heard:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in heard:
            signal.signal(number, servers[number])
        await asyncio.gather(*closing)
