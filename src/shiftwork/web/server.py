"""Serving the web on a socket: in `shiftwork web`, and in the process that a node starts for its dashboard."""

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, cast

import uvicorn

from shiftwork.control.control import Control
from shiftwork.web.api import Api
from shiftwork.web.client_connections import ClientConnections, ConnectionLimits, throttle_accept_errors
from shiftwork.web.listening import BACKLOG, Listener
from shiftwork.web.site import Site

SERVER_STOP_SECONDS: Final = 5
"""How long requests under way may take when the server stops."""


class WebServer:
    """A server on one socket, from `start` to `stop`."""

    def __init__(
        self,
        control: Control,
        listener: Listener,
        *,
        root_path: str = "",
        limits: ConnectionLimits | None = None,
        **site: Any,
    ) -> None:
        self._listener = listener
        self.site: Site = Site(control, **site)
        self._root_path = root_path
        self._connections = ClientConnections(limits)
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Return the address to open in a browser, on this machine if possible."""
        return self._listener.address(self._root_path)

    @property
    def idle_since(self) -> float | None:
        """Return since when no client has been connected, by the monotonic clock; None while one is."""
        return self._connections.idle_since

    def start(self) -> None:
        """Start accepting connections."""
        config = uvicorn.Config(
            Api(self.site, root_path=self._root_path),
            http=cast("type[asyncio.Protocol]", self._connections.protocol),
            log_config=None,
            log_level="error",  # a bad request is a stranger's, and must not fill the log
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,  # the headers of a proxy tell its requests from local ones
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=SERVER_STOP_SECONDS,
        )
        throttle_accept_errors(asyncio.get_running_loop())
        self._server = _Server(config)
        self.site.begin()
        serving = self._server.serve([self._listener.socket])
        self._task = asyncio.create_task(serving, name="shiftwork web")

    async def stop(self) -> None:
        """End the streams, let running requests finish, and close."""
        await self.site.close()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the caller."""
        yield


async def serve(server: WebServer, started: Callable[[], Awaitable[None]]) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop, signalled = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    try:
        server.start()
        await started()
        await signalled.wait()
    finally:
        await server.stop()
