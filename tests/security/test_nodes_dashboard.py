"""A node that is attacked through its dashboard keeps serving jobs."""

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest

from shiftwork import WorkerOrchestrator
from tests.polling import wait_until

SHOP = """
from pathlib import Path

from shiftwork import WorkerOrchestrator

app = WorkerOrchestrator("sqlite:///shop.db")


@app.task
async def greet(name: str) -> str:
    return f"hello {name}"


@app.on("pool.paused")
def paused(event) -> None:
    Path("hooked").write_text(event.data["by"])
"""
LIMITED = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200)); "
LIMITED += "sys.argv = sys.argv[1:]; runpy.run_module('shiftwork', run_name='__main__', alter_sys=True)"


class AttackedNode:
    """`shiftwork run`, with few file descriptors."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        command = [sys.executable, "-c", LIMITED, "shiftwork", "run", "shop:app", "--port", "0"]
        with self._log.open("w") as output:
            self.popen = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        wait_until(lambda: "in 1 pool" in self.said or self.popen.poll() is not None)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", self.said)
        assert found is not None, self.said
        self.address, self.port = found[0], int(found[1])
        self.process = psutil.Process(self.popen.pid)

    @property
    def said(self) -> str:
        return self._log.read_text()

    def web(self) -> list[psutil.Process]:
        """The process that serves the dashboard, if it runs."""
        return [one for one in self.process.children() if "shiftwork.serve.web_child" in one.cmdline()]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AttackedNode]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(SHOP)
    node = AttackedNode(tmp_path)
    yield node
    node.popen.kill()
    node.popen.wait()


async def test_strangers_cost_the_node_nothing(node: AttackedNode, tmp_path: Path) -> None:
    app = WorkerOrchestrator(f"sqlite:///{tmp_path}/shop.db")

    @app.task
    async def greet(name: str) -> str: ...  # type: ignore[empty-body]

    assert node.web() == []  # without viewers there is none
    before = node.process.num_fds()
    flood = [socket.create_connection(("127.0.0.1", node.port)) for _ in range(300)]
    wait_until(lambda: httpx2.get(f"{node.address}livez", timeout=30).text == "alive\n")
    wait_until(lambda: httpx2.get(f"{node.address}readyz", timeout=30).text == "ready\n")
    assert len(node.web()) == 1
    wait_until(lambda: node.process.num_fds() <= before + 3)
    assert await (await greet.enqueue(name="ada")).result(30) == "hello ada"

    node.web()[0].kill()  # as the kernel does if memory runs out
    wait_until(lambda: "the process that serves the dashboard was killed by SIGKILL" in node.said)
    assert await (await greet.enqueue(name="bob")).result(30) == "hello bob"
    paused = httpx2.post(f"{node.address}api/v1/pools/default/pause", json={}, timeout=30)
    assert paused.status_code == 200, paused.text
    wait_until(lambda: (tmp_path / "hooked").exists() and (tmp_path / "hooked").read_text() == "loopback")

    assert len(node.said) < 10_000
    (web,) = node.web()
    node.popen.send_signal(signal.SIGTERM)
    assert node.popen.wait(30) == 0
    wait_until(lambda: not web.is_running() or web.status() == psutil.STATUS_ZOMBIE)
    for one in flood:
        one.close()
    await app.close()
