"""What a node reports to the process of its dashboard is what probes and people get there."""

import asyncio
import socket
from collections.abc import Sequence

import pytest

from shiftwork.control.control import Control
from shiftwork.core.health.health_values import Strays
from shiftwork.core.model.event import Event
from shiftwork.runtime.processes.link import Link
from shiftwork.serve import web_child
from shiftwork.serve.web_child import NodeConnection
from shiftwork.serve.web_messages import NodeReport, NodeToWeb, WebToNode
from shiftwork.store.memory import MemoryStore
from tests.polling import eventually


async def test_probes_and_health_follow_the_nodes_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = socket.socketpair()
    node = NodeConnection(theirs)
    heard: list[WebToNode] = []

    def receive(frames: Sequence[WebToNode]) -> None:
        heard.extend(frames)

    link = Link(ours, WebToNode, on_frames=receive, on_closed=lambda: None, wrap=NodeToWeb)
    control = Control(MemoryStore(), hooks=node, store_fault=node.store_fault)
    assert node.why_not_ready() == "the node has not reported yet"
    link.send(
        NodeReport(not_ready=None, store_fault="writing outcomes fails: no space left", strays={"a": Strays(2, 5.0)})
    )
    await eventually(lambda: node.why_not_ready() is None)
    problems = (await control.system.health()).problems
    assert any("no space left" in problem.message for problem in problems)
    assert node.strays() == {"a": Strays(2, 5.0)}

    node.fire(Event(at=1.0, name="pool.paused", subject="images", message="paused"))
    await eventually(lambda: bool(heard))
    assert heard[0].messages[0].event.subject == "images"

    monkeypatch.setattr(web_child, "VITALS_FRESH_SECONDS", -1.0)
    assert "it hangs" in (node.why_not_alive() or "")
    link.close()
    async with asyncio.timeout(30):
        await node.over.wait()
    await control.close()
