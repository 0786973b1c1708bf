"""A dashboard inside another application is not open to the network behind a proxy that adds no header."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount

from shiftwork.contrib.fastapi import attach
from shiftwork.web.listening import listen
from tests.security.conftest import served
from tests.web.conftest import shop

DEADLINE = 30.0


@asynccontextmanager
async def bare_proxy(port: int, version: str) -> AsyncIterator[int]:
    """Forward requests as nginx does with `proxy_pass` alone: its own `Host`, no word of the client."""

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, path, _ = head.split("\r\n", 1)[0].split(" ")
        body = await reader.readexactly(2) if method == "POST" else b""
        kept = [line for line in head.split("\r\n")[1:] if line.lower().startswith(("content-", "authorization"))]
        there, to = await asyncio.open_connection("127.0.0.1", port)
        lines = [f"{method} {path} HTTP/{version}", f"Host: 127.0.0.1:{port}", "Connection: close", *kept, "", ""]
        to.write("\r\n".join(lines).encode() + body)
        writer.write(await there.read())
        writer.close()
        to.close()

    proxy = await asyncio.start_server(forward, "127.0.0.1", 0)
    async with proxy:
        yield proxy.sockets[0].getsockname()[1]


@asynccontextmanager
async def serving(application: Any) -> AsyncIterator[int]:
    """Serve an application with uvicorn, as its own developers would."""
    listener = await listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(application, log_config=None, log_level="error"))
    task = asyncio.create_task(server._serve([listener.socket]))  # noqa: SLF001 - `serve` would take our signals
    try:
        yield listener.socket.getsockname()[1]
    finally:
        server.should_exit = True
        await task


async def ask(port: int, request: str, *headers: str) -> tuple[int, str]:
    lines = [f"{request} HTTP/1.1", "Host: shop.example", "Content-Type: application/json", *headers]
    body = "{}" if request.startswith("POST") else ""
    async with asyncio.timeout(DEADLINE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", body]).encode())
        answer = (await reader.read()).decode()
        writer.close()
    return int(answer.split(" ", 2)[1]), answer


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("how", ["attach", "asgi"])
async def test_strangers_behind_a_bare_proxy_need_a_token_for_a_mounted_dashboard(how: str, version: str) -> None:
    app = shop()
    web = Starlette(routes=[] if how == "attach" else [Mount("/ops", app.asgi())])
    if how == "attach":
        attach(web, app, dashboard="/ops")
    _, token = await app.control.tokens.create("ci", "operate")
    async with serving(web) as port, bare_proxy(port, version) as proxy:
        status, answer = await ask(proxy, "GET /ops/api/v1/me")
        assert (status, "shiftwork token create" in answer, "identify" in answer) == (401, True, True)
        assert (await ask(proxy, "POST /ops/api/v1/pools/images/pause"))[0] == 401
        bearer = f"Authorization: Bearer {token}"
        assert (await ask(proxy, "POST /ops/api/v1/pools/images/pause", bearer))[0] == 200
    await app.close()


async def test_an_application_may_trust_its_own_user_if_no_proxy_is_in_front() -> None:
    app = shop()
    web = Starlette()
    attach(web, app, dashboard="/ops", trust_loopback=True)
    async with serving(web) as port, bare_proxy(port, "1.1") as direct, bare_proxy(port, "1.0") as proxy:
        assert (await ask(direct, "GET /ops/api/v1/me"))[0] == 200
        assert (await ask(proxy, "GET /ops/api/v1/me"))[0] == 401
    await app.close()


async def test_a_proxy_that_speaks_http_1_0_is_not_loopback_for_our_own_server() -> None:
    async with served() as web, bare_proxy(web.port, "1.0") as proxy:
        status, answer = await ask(proxy, "GET /api/v1/me")
        assert (status, "HTTP/1.0" in answer) == (401, True)
        assert (await web.get("/api/v1/me"))[0] == 200
