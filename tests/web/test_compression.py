"""Answers of some size are compressed for those who accept it; streams never are."""

import asyncio
import gzip
from pathlib import Path
from typing import Any

import pytest

from shiftwork.web import responses
from tests.web.conftest import Web, as_ours

PLAIN = {"Accept-Encoding": "identity"}
PACKED = {"Accept-Encoding": "br, gzip"}


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built dashboard of one script, with its compressed copy."""
    folder = tmp_path / "assets"
    folder.mkdir()
    (folder / "index-1.js").write_text("let a = 1;\n" * 400)
    (folder / "index-1.js.gz").write_bytes(gzip.compress(b"let a = 1;\n" * 400))
    monkeypatch.setattr(responses, "DIST", tmp_path)
    return tmp_path


async def test_large_json_is_compressed_for_those_who_accept_it(web: Web) -> None:
    for number in range(40):
        await web.app.control.jobs.enqueue("resize", {"path": f"picture-{number}.png"})
    async with web.client() as client:
        plain = await client.get("jobs", headers=PLAIN)
        packed = await client.get("jobs", headers=PACKED)
        small = await client.get("me", headers=PACKED)
        never = await client.get("jobs", headers={"Accept-Encoding": "gzip;q=0"})
    assert packed.json() == plain.json()
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < int(plain.headers["content-length"]) / 4
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert not {"content-encoding"} & {*plain.headers, *small.headers, *never.headers}


@pytest.mark.parametrize(
    ("accepted", "wanted"),
    [
        ("gzip", True),
        ("deflate, GZIP;q=0.5", True),
        ("*", True),
        ("*;q=0, gzip", True),
        ("gzip;q=0, *", False),
        ("gzip;Q=0.0", False),
        ("identity", False),
        ("", False),
    ],
)
async def test_it_is_compressed_only_if_the_client_accepts_gzip(web: Web, accepted: str, wanted: bool) -> None:  # noqa: FBT001 - a table
    async with web.client() as client:
        answer = await client.get("openapi.json", headers={"Accept-Encoding": accepted})
    assert ("content-encoding" in answer.headers) is wanted
    assert answer.json()["paths"]


async def test_a_file_is_sent_as_its_copy_that_was_compressed_at_build(web: Web, dist: Path) -> None:
    async with web.client() as client:
        plain = await client.get("../../assets/index-1.js", headers=PLAIN)
        packed = await client.get("../../assets/index-1.js", headers=PACKED)
    assert plain.text == packed.text == (dist / "assets" / "index-1.js").read_text()
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["content-type"] == plain.headers["content-type"]
    assert int(packed.headers["content-length"]) == (dist / "assets" / "index-1.js.gz").stat().st_size


async def test_a_stream_is_neither_compressed_nor_held_back_by_a_proxy(web: Web) -> None:
    sent: list[Any] = []
    begun = asyncio.Event()

    async def receive() -> Any:
        await begun.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body":
            begun.set()

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/live",
        "raw_path": b"/api/v1/live",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8421"), (b"accept-encoding", b"gzip")],
        "client": ("127.0.0.1", 4242),
    }
    async with asyncio.timeout(30):
        await as_ours(web.api)(scope, receive, send)
    headers = dict(sent[0]["headers"])
    assert b"content-encoding" not in headers
    assert headers[b"x-accel-buffering"] == b"no"
    assert b"no-transform" in headers[b"cache-control"]
    assert sent[1]["body"].startswith(b"retry: ")
