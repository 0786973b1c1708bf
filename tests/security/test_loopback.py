"""A connection from loopback is trusted only if it belongs to our own user or to root."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from httpx2 import ASGITransport, AsyncClient

from shiftwork.web import access, peers
from shiftwork.web.access import Visitor
from tests.security.conftest import served
from tests.web.conftest import shop

NOBODY = 65534
only_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")

AS_NOBODY = f"""
import encodings.idna, os, socket, sys
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
"""
ASK = (
    AS_NOBODY
    + """
asked = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
asked.sendall(b"GET /api/v1/me HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
print(asked.recv(4096).split()[1].decode())
"""
)
FORWARD = (
    AS_NOBODY
    + """
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
near, _ = listening.accept()
far = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
far.sendall(near.recv(4096))
while data := far.recv(4096):
    near.sendall(data)
"""
)


@contextmanager
def connected(family: int = socket.AF_INET, host: str = "127.0.0.1") -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection: the client's, and the server's."""
    with socket.create_server((host, 0), family=family) as listening, socket.socket(family) as client:
        client.connect(listening.getsockname())
        server, _ = listening.accept()
        with server:
            yield client, server


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_our_own_connection_is_recognised_until_its_other_end_is_closed(family: int, host: str) -> None:
    with connected(family, host) as (client, server):
        ends = server.getpeername(), server.getsockname()
        assert peers.is_our_own(*ends)
        assert not peers.is_our_own((ends[0][0], 1), ends[1])
        client.close()  # the kernel may go on listing it, as root's
        assert not peers.is_our_own(*ends)


def test_without_the_kernels_list_our_own_processes_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "TABLES", Path("/none"))
    monkeypatch.setattr(psutil, "process_iter", lambda: [psutil.Process()])
    with connected() as (client, server):
        ends = server.getpeername(), server.getsockname()
        assert peers.is_our_own(*ends)
        client.close()
        assert not peers.is_our_own(*ends)


HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
CLIENT, SERVER = ("127.0.0.1", 4242), ("127.0.0.1", 8421)


@pytest.mark.parametrize(
    ("row", "ours", "trusted"),
    [
        (("01", 1000, 77), 1000, True),
        (("01", 0, 77), 1000, True),  # root can read the store anyway
        (("01", 1001, 77), 1000, False),
        (("01", 65534, 77), 65534, False),  # any user that our namespace does not know
        (("06", 0, 0), 1000, False),  # waiting for its end: the kernel shows root
        (("04", 0, 0), 1000, False),  # closed by its owner: the same
        (("01", 0, 0), 1000, False),  # closed while the kernel wrote the line
    ],
)
def test_only_a_connected_socket_has_an_owner(
    row: tuple[str, int, int], ours: int, trusted: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, uid, inode = row
    ends = "0100007F:1092 0100007F:20E5" if sys.byteorder == "little" else "7F000001:1092 7F000001:20E5"
    (tmp_path / "tcp").write_text(f"{HEAD}   0: {ends} {state} 00000000:00000000 00:00000000 0 {uid} 0 {inode} 1 0\n")
    monkeypatch.setattr(peers, "TABLES", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: ours)
    assert peers.is_our_own(CLIENT, SERVER) is trusted


@only_root
async def test_another_user_of_this_machine_needs_a_token() -> None:
    async with served() as web:
        assert (await web.get("/api/v1/me"))[0] == 200
        other = await asyncio.create_subprocess_exec(sys.executable, "-c", ASK, str(web.port), stdout=subprocess.PIPE)
        told, _ = await other.communicate()
        assert told == b"401\n"


@only_root
async def test_a_forwarder_of_another_user_is_not_let_in_for_those_behind_it() -> None:
    async with served() as web:
        forwarder = await asyncio.create_subprocess_exec(
            sys.executable, "-c", FORWARD, str(web.port), stdout=subprocess.PIPE
        )
        assert forwarder.stdout is not None
        web.port = int(await forwarder.stdout.readline())
        status, answer = await web.get("/api/v1/me", Host="localhost")
        assert (status, b"another user" in answer) == (401, True)
        await forwarder.wait()


async def test_no_token_that_operates_is_made_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "is_our_own", lambda *_: True)
    app = shop()
    _, operate = await app.control.tokens.create("ci", "operate")

    def host(scope: Any) -> Visitor | None:
        given = dict(scope["headers"]).get(b"x-user")
        return None if given is None else Visitor(name="ada", role="operate", via="host")

    inside = app.asgi(identify=host, trust_loopback=True)
    transport = ASGITransport(app=inside, client=("127.0.0.1", 1))
    async with AsyncClient(transport=transport, base_url="http://127.0.0.1/api/v1/") as client:
        for headers in ({}, {"Authorization": f"Bearer {operate}"}, {"X-User": "ada"}):
            refused = await client.post("tokens", json={"name": "more", "role": "operate"}, headers=headers)
            assert (refused.status_code, "shiftwork token create" in refused.text) == (403, True)
        assert (await client.post("tokens", json={"name": "wall", "role": "read"})).status_code == 200
    assert {token.name for token in await app.control.tokens.all() if token.role == "operate"} == {"ci"}
    await inside.close()
    await app.close()


def test_nothing_that_is_shipped_trusts_loopback(checkout: Path) -> None:
    unit = (checkout / "deploy" / "systemd" / "shiftwork.service").read_text()
    assert [line for line in unit.splitlines() if line.startswith("ExecStart=") and "--always-token" in line]
    commands = [
        container["command"]
        for file in (checkout / "deploy" / "kubernetes").glob("*.yaml")
        for document in yaml.safe_load_all(file.read_text())
        if document["kind"] == "Deployment"
        for container in document["spec"]["template"]["spec"]["containers"]
    ]
    assert len(commands) == 2
    assert all({"--always-token", "--no-web"} & set(command) for command in commands)
