"""A shop whose web is served on a real socket, in this process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from shiftwork import WorkerOrchestrator
from shiftwork.web import client_connections
from shiftwork.web.api import Api
from shiftwork.web.listening import listen
from shiftwork.web.server import WebServer
from tests.web.conftest import shop

DEADLINE = 30.0


class Served:
    """The shop's web, and raw connections to it."""

    def __init__(self, app: WorkerOrchestrator, server: WebServer, port: int) -> None:
        self.app = app
        self.site = server.site
        self.api = Api(server.site)
        self.port = port
        self._connections: list[Connection] = []

    async def connect(self, *, source: str = "127.0.0.1", receive_buffer: int | None = None) -> "Connection":
        """Connect from a loopback address."""
        sock = socket.socket()
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        sock.settimeout(0)
        sock.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", self.port))
        self._connections.append(Connection(sock))
        return self._connections[-1]

    async def get(self, path: str, **headers: str) -> tuple[int, bytes]:
        """Ask once, over a connection of its own; returns the status and everything after it."""
        connection = await self.connect()
        await connection.request("GET", path, Connection="close", **headers)
        answer = await connection.rest()
        return int(answer.split(b" ", 2)[1]), answer

    def hang_up(self) -> None:
        """Close every connection."""
        for connection in self._connections:
            connection.close()


class Connection:
    """A client that does as it likes."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        with suppress(ConnectionError):  # the server may have closed it
            await self._loop.sock_sendall(self._sock, data)

    async def request(self, method: str, path: str, **headers: str) -> None:
        given = {"Host": "127.0.0.1"} | {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items()), "", ""]
        await self.send("\r\n".join(lines).encode())

    async def receive(self) -> bytes:
        """Whatever comes next; nothing if the connection was closed."""
        async with asyncio.timeout(DEADLINE):
            try:
                return await self._loop.sock_recv(self._sock, 1 << 20)
            except ConnectionResetError:
                return b""

    async def rest(self) -> bytes:
        """Everything until the server closes the connection."""
        parts = []
        while part := await self.receive():
            parts.append(part)
        self.close()
        return b"".join(parts)

    def is_open(self) -> bool:
        try:
            return self._sock.recv(1, socket.MSG_PEEK) != b""
        except BlockingIOError:
            return True
        except ConnectionResetError:
            return False

    def close(self) -> None:
        self._sock.close()


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[Served]:
    """Serve the shop, with these options of `WebServer`."""
    app = shop()
    listener = await listen("127.0.0.1", 0)
    server = WebServer(app.control, listener, **options)
    server.start()
    web = Served(app, server, listener.socket.getsockname()[1])
    try:
        yield web
    finally:
        web.hang_up()
        await server.stop()
        await app.close()


@pytest.fixture(autouse=True)
def _sweep_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connections, "SWEEP_SECONDS", 0.02)
