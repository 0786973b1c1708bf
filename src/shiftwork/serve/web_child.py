"""Entry point of the process that serves a node's dashboard: `python -m shiftwork.serve.web_child LISTENING NODE`.

It never imports the app. It ends with its node, and by itself when no client has been connected for a while.
"""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from shiftwork.control.calling import run
from shiftwork.control.control import Control
from shiftwork.core.health.health_values import Strays
from shiftwork.core.model.event import Event
from shiftwork.history.opening import open_store
from shiftwork.runtime.processes.link import Link
from shiftwork.serve.logging import set_up_logging
from shiftwork.serve.process import die_with_parent
from shiftwork.serve.vitals import VITALS_FRESH_SECONDS
from shiftwork.serve.web_messages import DashboardEvent, NodeReport, NodeToWeb, WebSetup, WebToNode
from shiftwork.web.listening import Listener
from shiftwork.web.server import WebServer

IDLE_SECONDS: Final = 600.0
"""How long the process lives on without a client."""
PARENT_LOOK_SECONDS: Final = 5.0
NICE: Final = 5
"""The niceness of the process: the node and its jobs come first."""
OOM_SCORE: Final = "500"
"""If memory runs out, Linux ends this process before the node and its jobs."""
LONGEST_BACKLOG: Final = 1_000_000
"""How many bytes of events may wait for the node, which is too busy to take them."""


class NodeConnection:
    """The messages from the node and to it. It is the `Listeners` of the changes made here."""

    def __init__(self, sock: socket.socket) -> None:
        self.setup: asyncio.Future[WebSetup] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Event = asyncio.Event()
        self._report = NodeReport(not_ready="the node has not reported yet", store_fault=None, strays={})
        self._reported_at = time.monotonic()
        self._link = Link(sock, NodeToWeb, on_frames=self._received, on_closed=self.over.set, wrap=WebToNode)

    def fire(self, event: Event) -> None:
        """Have the node call the hooks."""
        if self._link.backlog <= LONGEST_BACKLOG:
            self._link.send(DashboardEvent(event))

    async def drain(self) -> None:
        """Send what has not been sent."""
        self._link.flush()

    def strays(self) -> Mapping[str, Strays]:
        """Return the runs of the node that were given up on, by instance."""
        return self._report.strays

    def store_fault(self) -> str | None:
        """Return which write of the node fails now, if one does."""
        return self._report.store_fault

    def why_not_alive(self) -> str | None:
        """Return that the node hangs, if it does."""
        silence = time.monotonic() - self._reported_at
        return None if silence <= VITALS_FRESH_SECONDS else f"the node has not reported for {silence:.0f} s: it hangs"

    def why_not_ready(self) -> str | None:
        """Return why the node is not ready; None if it is."""
        return self.why_not_alive() or self._report.not_ready

    def _received(self, frames: Sequence[NodeToWeb]) -> None:
        for message in (message for frame in frames for message in frame.messages):
            if isinstance(message, NodeReport):
                self._report, self._reported_at = message, time.monotonic()
            elif not self.setup.done():
                self.setup.set_result(message)


def main() -> None:
    """Serve until the node ends, or until no client needs it."""
    listening, node = (socket.socket(fileno=int(word)) for word in sys.argv[1:])
    for sock in (listening, node):
        sock.set_inheritable(False)
    with contextlib.suppress(OSError):
        os.nice(NICE)
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    die_with_parent()
    run(_serve(listening, node))


async def _serve(listening: socket.socket, sock: socket.socket) -> None:
    node = NodeConnection(sock)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, node.over.set)
    setup = await node.setup
    set_up_logging(setup.log_level, setup.log_format)
    store = open_store(setup.store, namespace=setup.namespace, keys=setup.encryption_keys)
    control = Control(
        store, hooks=node, strays=node.strays, store_fault=node.store_fault, lease_seconds=setup.lease_seconds
    )
    server = WebServer(
        control,
        Listener(listening, setup.host),
        trust_loopback=setup.trust_loopback,
        ready=node.why_not_ready,
        alive=node.why_not_alive,
    )
    server.start()
    try:
        while not (node.over.is_set() or _is_idle(server)):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PARENT_LOOK_SECONDS):
                    await node.over.wait()
    finally:
        await server.stop()
        await control.close()


def _is_idle(server: WebServer) -> bool:
    return server.idle_since is not None and time.monotonic() - server.idle_since > IDLE_SECONDS


if __name__ == "__main__":
    main()
