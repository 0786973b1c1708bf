"""The dashboard of a node: the node holds the socket, and another process serves it.

Anyone can reach the socket, so what they do costs the other process its descriptors, its memory and its event loop,
and never the node. The first connection starts the process; it ends after a while without clients, or
when it crashes, and the next connection starts it again. So a node without viewers pays nothing for its dashboard.
"""

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Final

from shiftwork.core.model.event import Event
from shiftwork.runtime.processes.link import Link
from shiftwork.runtime.processes.spawn import child_environment
from shiftwork.runtime.processes.started_process import exit_in_words
from shiftwork.serve.web_messages import NodeReport, NodeToWeb, WebSetup, WebToNode
from shiftwork.web.listening import Listener

logger: Final = logging.getLogger("shiftwork")

WEB_CHILD_MODULE: Final = "shiftwork.serve.web_child"
REPORT_SECONDS: Final = 2.0
WEB_RESTART_SECONDS: Final = 2.0
"""How long to wait before a process that has failed is started again, the first time. Then twice as long."""
LONGEST_WEB_RESTART_SECONDS: Final = 60.0
WEB_STOP_SECONDS: Final = 6.0
"""How long the process may take to end."""


class WebProcess:
    """Starts the process when it is needed, keeps it informed, and ends it."""

    def __init__(
        self,
        listener: Listener,
        setup: WebSetup,
        *,
        report: Callable[[], NodeReport],
        publish: Callable[[Event], None],
    ) -> None:
        self._listener = listener
        self._setup = setup
        self._report = report
        self._publish = publish
        self._loop = asyncio.get_running_loop()
        self._popen: subprocess.Popen[bytes] | None = None
        self._link: Link[WebToNode] | None = None
        self._reporting: asyncio.TimerHandle | None = None
        self._ending: asyncio.Task[None] | None = None
        self._stopped = False
        self._pause = WEB_RESTART_SECONDS
        self._await_connection()

    async def stop(self) -> None:
        """End the process: it lets requests under way finish."""
        self._stopped = True
        self._loop.remove_reader(self._listener.socket)
        self._listener.socket.close()
        if self._link is not None:
            self._link.close()
            self._gone()
        if self._ending is not None:
            await asyncio.wait([self._ending])

    def _await_connection(self) -> None:
        if not self._stopped:
            self._loop.add_reader(self._listener.socket, self._start)

    def _start(self) -> None:
        self._loop.remove_reader(self._listener.socket)
        ours, theirs = socket.socketpair()
        inherited = [self._listener.socket.fileno(), theirs.fileno()]
        try:
            self._popen = subprocess.Popen(
                [sys.executable, "-m", WEB_CHILD_MODULE, *map(str, inherited)],
                pass_fds=inherited,
                env=child_environment(),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # a Ctrl-C in the terminal is for the node
            )
        except OSError as error:
            ours.close()
            self._failed(f"cannot be started: {error}")
            return
        finally:
            theirs.close()
        self._link = Link(ours, WebToNode, on_frames=self._received, on_closed=self._gone, wrap=NodeToWeb)
        self._link.send(self._setup)
        self._send_report()

    def _send_report(self) -> None:
        if self._link is not None and not self._link.closed:
            if not self._link.backlog:  # otherwise it hangs, and needs no more of them
                self._link.send(self._report())
            self._reporting = self._loop.call_later(REPORT_SECONDS, self._send_report)

    def _received(self, frames: Sequence[WebToNode]) -> None:
        for message in (message for frame in frames for message in frame.messages):
            self._publish(message.event)

    def _gone(self) -> None:
        """The connection has ended, so the process ends, or has ended already."""
        if self._popen is not None and self._ending is None:
            self._ending = self._loop.create_task(self._await_end(self._popen), name="shiftwork web process")

    async def _await_end(self, process: subprocess.Popen[bytes]) -> None:
        if self._reporting is not None:
            self._reporting.cancel()
        try:
            status = await asyncio.to_thread(process.wait, WEB_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            status = await asyncio.to_thread(process.wait)
        self._popen = self._link = self._ending = None
        if self._stopped:
            return
        if status:
            self._failed(exit_in_words(status))
        else:
            self._pause = WEB_RESTART_SECONDS
            self._await_connection()

    def _failed(self, words: str) -> None:
        logger.warning("the process that serves the dashboard %s; jobs are not affected", words)
        self._loop.call_later(self._pause, self._await_connection)
        self._pause = min(2 * self._pause, LONGEST_WEB_RESTART_SECONDS)
