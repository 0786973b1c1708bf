"""One visitor, though authenticated, can hold neither the memory nor all streams."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from msgspec import msgpack

from shiftwork import WorkerOrchestrator
from shiftwork.core.model.jobs import NewJob
from shiftwork.web.client_connections import ConnectionLimits
from shiftwork.web.visitor_limits import RequestPlaces, StreamPlaces
from tests.polling import eventually, pass_time
from tests.security.conftest import Served, served

PAGE = "/api/v1/jobs/large"


async def crowded(web: Served) -> dict[str, str]:
    """A job that no socket's buffers hold; returns the headers of a visitor who may read it."""
    store, now = await web.app.control.store.open(), web.app.control.now()
    payload = msgpack.encode({"path": "x" * 8_000_000})
    await store.add([NewJob(id="large", worker="resize", pool="images", payload=payload, run_at=now)], now)
    _, token = await web.app.control.tokens.create("wall", "read")
    return {"Authorization": f"Bearer {token}"}


async def test_unread_pages_keep_only_their_reader_waiting_and_are_given_up() -> None:
    async with served(limits=ConnectionLimits(write_seconds=3.0)) as web:
        web.site.request_places = RequestPlaces(2, patience=0.2)
        reader = await crowded(web)
        unread = [await web.connect(receive_buffer=2_048) for _ in range(2)]
        for one in unread:
            await one.request("GET", PAGE, **reader)
        await eventually(lambda: web.site.request_places.under_way("wall") == 2)
        assert (await web.get("/api/v1/me", **reader))[0] == 429
        assert (await web.get("/api/v1/me"))[0] == 200
        await eventually(lambda: web.site.request_places.under_way("wall") == 0)  # nothing was read in time
        assert (await web.get("/api/v1/me", **reader))[0] == 200
        assert len((await web.get(PAGE, **reader))[1]) > 8_000_000


async def test_a_page_is_handed_over_piece_by_piece() -> None:
    """What a client has not read is held once, not again in the buffers of its connection."""
    async with served() as web:
        reader = await crowded(web)
        scope: dict[str, Any] = {"type": "http", "http_version": "1.1", "method": "GET", "scheme": "http"}
        scope |= {"path": PAGE, "raw_path": PAGE.encode(), "query_string": b"", "root_path": ""}
        scope |= {"client": ("203.0.113.9", 1), "server": ("127.0.0.1", 1)}
        scope |= {"headers": [(b"authorization", reader["Authorization"].encode())]}
        sent: list[int] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(len(message.get("body", b"")))

        await web.api(scope, receive, send)
        assert sum(sent) > 8_000_000
        assert max(sent) <= 65_536


async def test_one_visitor_cannot_have_all_streams() -> None:
    async with served() as web:
        web.site.stream_places = StreamPlaces(each=2, most=3)
        known = {}
        for name in ("wall", "desk", "hall"):
            _, token = await web.app.control.tokens.create(name, "read")
            known[name] = {"Authorization": f"Bearer {token}"}
        held = []
        for name in ("wall", "wall", "desk"):
            stream = await web.connect()
            await stream.request("GET", "/api/v1/live", **known[name])
            assert (await stream.receive()).startswith(b"HTTP/1.1 200")
            held.append(stream)
        assert (await web.get("/api/v1/live", **known["wall"]))[0] == 429
        assert (await web.get("/api/v1/live", **known["hall"]))[0] == 429  # there are three
        held[0].close()

        async def again() -> bool:
            stream = await web.connect()
            await stream.request("GET", "/api/v1/live", **known["hall"])
            answer = await stream.receive()
            stream.close()
            return answer.startswith(b"HTTP/1.1 200")

        await eventually(again)


async def test_many_requests_of_one_visitor_take_turns() -> None:
    async with served() as web:
        _, token = await web.app.control.tokens.create("ci", "read")
        known = {"Authorization": f"Bearer {token}"}
        async with asyncio.timeout(30):
            statuses = [
                status for status, _ in await asyncio.gather(*(web.get("/api/v1/me", **known) for _ in range(60)))
            ]
        assert statuses == [200] * 60  # they take turns


@pytest.mark.soak
async def test_a_hundred_unread_pages_take_little_memory(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shop.db"
    app = WorkerOrchestrator(url)

    @app.task
    def keep(text: str) -> None: ...

    await app.enqueue_many([keep.call(text="x" * 800_000) for _ in range(10)])
    _, token = await app.control.tokens.create("wall", "read")
    await app.close()
    command = [sys.executable, "-m", "shiftwork", "web", "--port", "0", "--store", url]
    web = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        assert web.stderr is not None
        port = int((await web.stderr.readline()).decode().rstrip("/\n").rpartition(":")[2])
        request = f"GET {PAGE} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        unread = []
        for _ in range(100):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
            client.connect(("127.0.0.1", port))
            client.sendall(request)
            unread.append(client)
        process, most = psutil.Process(web.pid), 0
        for _ in range(80):
            most = max(most, process.memory_info().rss)
            await pass_time(0.1)
        assert most < 300 * 1_048_576
        for client in unread:
            client.close()
    finally:
        web.terminate()
        await web.wait()
