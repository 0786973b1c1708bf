"""Serving the web beside other work: in a node, or in `shiftwork web`."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Final

import uvicorn

from shiftwork.control.control import Control
from shiftwork.errors import ConfigurationError
from shiftwork.web.access import is_loopback
from shiftwork.web.api import Api
from shiftwork.web.site import Site

STOP_SECONDS: Final = 5
"""How long requests under way may take when the server stops."""


class WebServer:
    """A server on one address, from `start` to `stop`."""

    def __init__(
        self,
        control: Control,
        *,
        host: str,
        port: int,
        trust_loopback: bool = True,
        root_path: str = "",
        ready: Callable[[], str | None] | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._site = Site(control, trust_loopback=trust_loopback, ready=ready)
        self._root_path = root_path
        self._server: _Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def address(self) -> str:
        """Return the address to open in a browser, on this machine if possible."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self._host, self._host)  # noqa: S104 - shown, not bound
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}:{self._port}{self._root_path}/"

    @property
    def beyond_loopback(self) -> bool:
        """Return whether other machines can reach it."""
        return self._host != "localhost" and not is_loopback(self._host)

    async def start(self) -> None:
        """Start listening. Raises `ConfigurationError` if the address cannot be used."""
        listening = await asyncio.to_thread(_bind, self._host, self._port)
        self._port = listening.getsockname()[1]
        config = uvicorn.Config(
            Api(self._site, root_path=self._root_path),
            log_config=None,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,  # the headers of a proxy tell its requests from local ones
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
        self._server = _Server(config)
        self._site.begin()
        self._task = asyncio.create_task(self._server.serve([listening]), name="shiftwork web")

    async def stop(self) -> None:
        """End the streams, let running requests finish, and close."""
        await self._site.close()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the node."""
        yield


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, proto)
    except OSError as error:
        message = f"{host}:{port} is not an address to listen on: {error}"
        raise ConfigurationError(message) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(100)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's
    except OSError as error:
        listening.close()
        message = f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port (or --web HOST:PORT)"
        raise ConfigurationError(message) from None
    return listening


async def serve(server: WebServer, started: Callable[[], Awaitable[None]]) -> None:
    """Serve until SIGTERM or SIGINT."""
    loop, signalled = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signalled.set)
    try:
        await server.start()
        await started()
        await signalled.wait()
    finally:
        await server.stop()
