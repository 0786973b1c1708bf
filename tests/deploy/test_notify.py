"""What systemd hears from a node: a real socket, a real `shiftwork run`."""

import os
import signal
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shiftwork.serve.notify import Notifier
from tests.deploy.conftest import Nodes


class Listener:
    """Stands in for systemd."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{address[1:]}" if address.startswith("@") else address)
        self.heard: list[str] = []

    def hear(self, text: str, *, within: float = 30.0) -> str:
        """The next message that holds this text. All that came before is kept."""
        deadline = time.monotonic() + within
        while (left := deadline - time.monotonic()) > 0:
            message = self._next(left)
            if message is not None and text in message:
                return message
        raise AssertionError(f"{text!r} was not heard within {within} s, but {self.heard}")

    def silent(self, text: str, *, for_: float, within: float = 30.0) -> None:
        """Wait until this has not been heard for so long."""
        deadline = time.monotonic() + within
        quiet_at = time.monotonic() + for_
        while (left := quiet_at - time.monotonic()) > 0:
            assert time.monotonic() < deadline, f"{text!r} does not stop"
            message = self._next(left)
            if message is not None and text in message:
                quiet_at = time.monotonic() + for_

    def _next(self, timeout: float) -> str | None:
        self._socket.settimeout(timeout)
        try:
            message = self._socket.recv(4096).decode()
        except TimeoutError:
            return None
        self.heard.append(message)
        return message

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[Listener]:
    with closing(Listener(str(tmp_path / "notify"))) as listener:
        yield listener


def environment(tmp_path: Path, *, watchdog: float = 1.0) -> dict[str, str]:
    return {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": f"{watchdog * 1e6:.0f}"}


def test_a_node_says_when_it_has_started_lives_and_stops(nodes: Nodes, listener: Listener, tmp_path: Path) -> None:
    gate = nodes.hold_the_import()
    node = nodes.start(**environment(tmp_path))
    node.wait_for("importing")
    listener.silent("READY=1", for_=0.3)
    assert listener.heard == []
    gate.touch()

    listener.hear("READY=1")
    assert node.said("workers in 2 pools"), "it was ready before it had started"
    if "STATUS=leads: 7 slots in 2 pools, 0 jobs running" not in listener.heard:  # it may come before READY or after
        listener.hear("STATUS=leads: 7 slots in 2 pools, 0 jobs running")
    for _ in range(4):
        listener.hear("WATCHDOG=1", within=30)

    node.signal(signal.SIGTERM)
    listener.hear("STOPPING=1")
    assert node.end() == 0
    assert [message for message in listener.heard if message in {"READY=1", "STOPPING=1"}] == ["READY=1", "STOPPING=1"]


def test_the_status_reports_running_jobs_and_the_end(nodes: Nodes, listener: Listener, tmp_path: Path) -> None:
    node = nodes.start(**environment(tmp_path))
    listener.hear("READY=1")
    nodes.enqueue(nodes.call(1, 60.0))
    listener.hear("1 job running")
    node.signal(signal.SIGTERM)
    listener.hear("STATUS=stopping: 1 job running")
    listener.hear("WATCHDOG=1")  # while it lets the job finish, it must not be taken for dead
    nodes.let_finish()
    assert node.end() == 0
    assert "NOTIFY_SOCKET" not in nodes.seen_environment(), "a job's process must not speak for the node"


def test_a_frozen_node_falls_silent(nodes: Nodes, listener: Listener, tmp_path: Path) -> None:
    node = nodes.start(**environment(tmp_path))
    listener.hear("WATCHDOG=1")
    node.signal(signal.SIGSTOP)
    try:
        listener.silent("WATCHDOG=1", for_=2.0)
    finally:
        node.signal(signal.SIGCONT)
    listener.hear("WATCHDOG=1")


def test_a_node_that_cannot_renew_its_lease_falls_silent(nodes: Nodes, listener: Listener, tmp_path: Path) -> None:
    nodes.start(**environment(tmp_path), SHOP_LEASE="3")
    listener.hear("WATCHDOG=1")
    with closing(sqlite3.connect(nodes.database)) as other:
        other.execute("begin exclusive")  # nobody else can write
        listener.hear("could not renew its lease")
        listener.silent("WATCHDOG=1", for_=2.0)
        other.rollback()
    listener.hear("WATCHDOG=1")


def test_an_abstract_socket() -> None:
    address = f"@shiftwork-{os.getpid()}"
    with closing(Listener(address)) as listener:
        notifier = Notifier.from_environment({"NOTIFY_SOCKET": address})
        notifier.send("STATUS=well", "READY=1")
        assert listener.hear("READY=1") == "STATUS=well\nREADY=1"
        notifier.close()


def test_a_watchdog_for_another_process() -> None:
    ours = {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    others = ours | {"WATCHDOG_PID": "1"}
    with closing(Notifier.from_environment(ours)) as notifier:
        assert notifier.watchdog_seconds == 3.0
    with closing(Notifier.from_environment(others)) as notifier:
        assert notifier.watchdog_seconds is None
    assert ours == {}


def test_a_socket_that_is_gone_harms_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    with closing(Notifier("/nowhere/notify")) as notifier:
        notifier.send("READY=1")
        notifier.send("WATCHDOG=1")
    assert caplog.text.count("cannot notify systemd") == 1
