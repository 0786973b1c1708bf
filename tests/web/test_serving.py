"""The real thing: `shiftwork run` and `shiftwork web` in processes of their own, asked over loopback."""

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.terminal import SHOP
from tests.polling import wait_until

ADDRESS = re.compile(r"http://\S+/")
SERVES = re.compile(r" runs \d+ workers? in ")


class Process:
    """A command that keeps running."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.log = folder / f"{arguments[0]}-{time.monotonic_ns()}.log"
        with self.log.open("w") as output:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", "shiftwork", *arguments], cwd=folder, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def said(self) -> str:
        return self.log.read_text()

    @property
    def serves(self) -> bool:
        """Whether the node has started."""
        return bool(SERVES.search(self.said))

    def address(self) -> str:
        wait_until(lambda: bool(ADDRESS.search(self.said)) or self._popen.poll() is not None)
        found = ADDRESS.search(self.said)
        assert found is not None, self.said
        return found[0]

    def stop(self, number: int = signal.SIGTERM) -> int:
        if self._popen.poll() is None:
            self._popen.send_signal(number)
        try:
            return self._popen.wait(30)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()
            raise


Start = Callable[..., Process]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start shiftwork in a folder with a shop in it."""
    (tmp_path / "shop.py").write_text(SHOP)
    running: list[Process] = []

    def start(*arguments: str) -> Process:
        running.append(Process(tmp_path, *arguments))
        return running[-1]

    yield start
    for process in running:
        process.stop(signal.SIGKILL)


def ask(address: str, path: str, **options: Any) -> Any:
    response = httpx2.get(f"{address}api/v1/{path}", timeout=30, **options)
    assert response.status_code == 200, response.text
    return response.json()


def test_a_node_serves_its_own_dashboard_and_knows_payloads_without_the_app(start: Start) -> None:
    node = start("run", "shop:app", "--port", "0", "--log-runs")
    address = node.address()
    assert address.startswith("http://127.0.0.1:")
    wait_until(lambda: httpx2.get(f"{address}readyz", timeout=30).text == "ready\n")
    schema = ask(address, "workers/resize")["payload_schema"]
    assert schema["properties"]["width"]["default"] == 100
    body = {"worker": "resize", "payload": {"path": "a.png", "width": 3}}
    job = httpx2.post(f"{address}api/v1/jobs", json=body, timeout=30).json()["job"]
    wait_until(lambda: ask(address, f"jobs/{job['id']}")["status"] == "completed")
    assert ask(address, f"jobs/{job['id']}")["result"] == "a.png at 3"
    assert node.stop() == 0
    assert "resize: attempt 1 starts" in node.said
    assert "resize: completed after" in node.said


def test_a_node_may_demand_a_token_and_an_open_stream_keeps_it_not_from_stopping(start: Start, tmp_path: Path) -> None:
    node = start("run", "shop:app", "--port", "0", "--always-token")
    address = node.address()
    assert "every request needs a token" in node.said
    assert httpx2.get(f"{address}api/v1/me", timeout=30).status_code == 401
    command = [sys.executable, "-m", "shiftwork", "token", "create", "ada", "--role", "read", "--app", "shop:app"]
    token = subprocess.run(command, cwd=tmp_path, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
    known = {"Authorization": f"Bearer {token}"}
    heard = threading.Event()

    def listen() -> None:
        with httpx2.stream("GET", f"{address}api/v1/live", timeout=60, headers=known) as response:
            for _ in response.iter_lines():
                heard.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    assert heard.wait(30)
    assert node.stop() == 0
    listener.join(30)
    assert not listener.is_alive()


def test_a_busy_port_is_not_fatal(start: Start) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        node = start("run", "shop:app", "--port", str(taken.getsockname()[1]))
        wait_until(lambda: "no dashboard: cannot listen on" in node.said)
        wait_until(lambda: node.serves)
        assert node.stop() == 0


def test_the_web_is_served_apart_from_any_node_and_beyond_loopback_it_demands_a_token(
    start: Start, tmp_path: Path
) -> None:
    node = start("run", "shop:app", "--no-web")
    wait_until(lambda: node.serves)
    web = start("web", "--store", "sqlite:///shop.db", "--port", "0", "--host", "0.0.0.0", "--root-path", "/ops")
    address = web.address()
    assert address.endswith("/ops/")
    wait_until(lambda: "there is no valid token yet" in web.said)
    assert ask(address, "me")["name"] == "loopback"
    assert ask(address.removesuffix("ops/"), "me")["name"] == "loopback"  # as a proxy passes it on that cuts it off
    stranger = {"Host": "shop.example", "X-Forwarded-For": "203.0.113.9"}
    assert httpx2.get(f"{address}api/v1/me", timeout=30, headers=stranger).status_code == 401

    def shiftwork(*arguments: str) -> str:
        command = [sys.executable, "-m", "shiftwork", *arguments, "--store", "sqlite:///shop.db"]
        return subprocess.run(command, cwd=tmp_path, check=True, text=True, stdout=subprocess.PIPE).stdout

    token = shiftwork("token", "create", "ci", "--role", "read").strip()
    known = stranger | {"Authorization": f"Bearer {token}"}
    assert ask(address, "me", headers=known)["name"] == "ci"
    assert "ci" in shiftwork("token", "list")
    shiftwork("token", "revoke", "ci")
    wait_until(lambda: httpx2.get(f"{address}api/v1/me", timeout=30, headers=known).status_code == 401)
    assert web.stop() == 0
    assert node.stop() == 0
    assert "dashboard" not in node.said
