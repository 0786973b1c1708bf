"""Strangers can take neither all connections, nor the memory, nor the log."""

import asyncio
import json
import logging
import resource

import pytest

from shiftwork.web.client_connections import ConnectionLimits, throttle_accept_errors
from tests.polling import eventually
from tests.security.conftest import Connection, Served, served

POST = b"POST /api/v1/login HTTP/1.1\r\nHost: shop.example\r\nContent-Type: application/json\r\n"


PATIENT = 1_000.0
UPGRADE = b"GET /livez HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n"


async def still_open(connections: list[Connection]) -> int:
    await asyncio.sleep(0)
    return sum(one.is_open() for one in connections)


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET /livez HTTP/1.1\r\nHost: a\r\n",
        POST + b"Content-Length: 900\r\n\r\n{",
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
    ],
    ids=["nothing", "headers", "body", "chunks"],
)
async def test_a_request_that_does_not_end_is_cut_off(begun: bytes) -> None:
    async with served(limits=ConnectionLimits(read_seconds=0.1)) as web:
        slow = await web.connect()
        await slow.send(begun)
        assert await slow.rest() == b""


@pytest.mark.parametrize("where", ["query", "path", "header"])
async def test_a_long_address_or_header_is_refused_though_it_comes_in_one_piece(where: str) -> None:
    long = "a" * 60_000
    async with served() as web:
        path = {"query": f"/api/v1/jobs?payload={long}", "path": f"/api/v1/jobs/{long}"}.get(where, "/api/v1/me")
        status, answer = await web.get(path, **({"X_Long": long} if where == "header" else {}))
        assert (status, b"16,384 are allowed" in answer) == (400, True)
        inside = "a" * 15_000
        assert (await web.get(f"/api/v1/me?x={inside}"))[1].count(b"are allowed") == 0


async def test_so_is_a_second_one_over_the_same_connection() -> None:
    async with served(limits=ConnectionLimits(read_seconds=1.0)) as web:
        slow = await web.connect()
        await slow.request("GET", "/livez")
        said = b""
        while b"alive" not in said:
            piece = await slow.receive()
            assert piece, "the first request was cut off"
            said += piece
        await slow.send(b"GET /livez")
        assert await slow.rest() == b""


async def test_a_probe_is_answered_while_strangers_take_every_connection() -> None:
    async with served(limits=ConnectionLimits(most=8, each=8, read_seconds=PATIENT)) as web:
        strangers = [await web.connect() for _ in range(30)]
        for stranger in strangers[::2]:
            await stranger.send(b"GET / HTTP/1.1\r\nHost: a\r\n")
        for _ in range(5):
            assert (await web.get("/livez"))[0] == 200
        assert await still_open(strangers) <= 8


async def test_one_address_cannot_take_the_place_of_others() -> None:
    async with served(limits=ConnectionLimits(most=8, each=4, read_seconds=PATIENT)) as web:
        others = [await web.connect(source="127.0.0.2") for _ in range(3)]
        flood = [await web.connect() for _ in range(20)]
        await eventually(lambda: sum(one.is_open() for one in flood) == 4)
        assert await still_open(others) == 3


async def test_a_connection_that_finds_no_room_is_refused_with_the_reason() -> None:
    async with served(limits=ConnectionLimits(most=1, each=1, read_seconds=PATIENT)) as web:
        _, token = await web.app.control.tokens.create("wall", "read")
        stream = await web.connect()
        await stream.request("GET", "/api/v1/live", Authorization=f"Bearer {token}")
        while b"event: change" not in await stream.receive():
            pass
        late = await web.connect()
        refusal = await late.rest()
        assert refusal.startswith(b"HTTP/1.1 503")
        assert json.loads(refusal.partition(b"\r\n\r\n")[2])["detail"].startswith("there are too many connections")


async def test_an_authenticated_visitor_keeps_the_connection() -> None:
    async with served(limits=ConnectionLimits(most=4, each=4, read_seconds=PATIENT)) as web:
        _, token = await web.app.control.tokens.create("wall", "read")
        stream = await web.connect()
        await stream.request("GET", "/api/v1/live", Authorization=f"Bearer {token}")
        while b"event: change" not in await stream.receive():
            pass
        unread = await web.connect(receive_buffer=2_048)
        await unread.request("GET", "/", Host="a")
        flood = [await web.connect() for _ in range(20)]
        await eventually(lambda: sum(one.is_open() for one in flood) == 3)
        web.site.live.changed("afterwards")
        said = b""
        while b"afterwards" not in said:
            piece = await stream.receive()
            assert piece, "the stream was cut off"
            said += piece


async def test_connections_take_at_most_half_of_the_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (12, 12))
    async with served(limits=ConnectionLimits(read_seconds=PATIENT)) as web:
        flood = [await web.connect() for _ in range(20)]
        await eventually(lambda: sum(one.is_open() for one in flood) == 6)


@pytest.mark.parametrize("rest", [b"Content-Length: %d\r\n\r\n%s", b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s"])
async def test_a_stranger_may_send_a_kibibyte(rest: bytes) -> None:
    async with served() as web:
        large = b'{"token":"' + b"x" * 2_000 + b'"}'
        stranger = await web.connect()
        await stranger.send(POST + rest % (len(large), large))
        answer = await stranger.receive()
        assert answer.startswith(b"HTTP/1.1 413"), answer


async def test_that_nothing_can_be_accepted_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    throttle_accept_errors(loop)
    try:
        for _ in range(1_000):
            loop.call_exception_handler(
                {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many open files")}
            )
    finally:
        loop.set_exception_handler(before)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == [
        "cannot accept connections: [Errno 24] Too many open files; trying again every second"
    ]


async def test_bad_requests_leave_nothing_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as web:
        for nonsense in (
            b"\x16\x03\x01\x02\x00\r\n\r\n",
            b"GET /livez HTTP/1.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
        ):
            await _nonsense(web, nonsense)
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def _nonsense(web: Served, data: bytes) -> None:
    stranger = await web.connect()
    await stranger.send(data)
    await stranger.receive()
    stranger.close()
