"""The node that serves the company, as a process that can be killed."""

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from examples.company.outside import Outside
from examples.company.place import LOOPBACK

USUAL_PORT: Final = 8421
PORT_SECONDS: Final = 10.0
STOP_SECONDS: Final = 30.0


class ShowError(Exception):
    """The show cannot continue."""


def dashboard_port() -> int:
    """The usual port of the dashboard, or another one if that is taken."""
    return next(iter((*_free(USUAL_PORT), *_free(0))))


def _free(port: int) -> list[int]:
    """The port, if it is free; for 0, any free one."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((LOOPBACK, port))
        except OSError:
            return []
        return [int(tried.getsockname()[1])]


class Server:
    """The node that serves the company. Its dashboard has the same address after a restart."""

    def __init__(self, log: Path, outside: Outside, port: int) -> None:
        self._log = log.open("ab")
        self._port = port
        self._environment = {
            **os.environ,
            "COMPANY_SMTP_PORT": str(outside.smtp_port),
            "COMPANY_HTTP_PORT": str(outside.http_port),
        }
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the node. A killed one keeps the dashboard's port for a moment, so wait for it, but not forever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PORT_SECONDS):
                while not _free(self._port):  # noqa: ASYNC110 - another process frees it
                    await asyncio.sleep(0.1)
        # In its own session, so that Ctrl-C reaches only the show, which then stops the node gracefully.
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "examples.company.serve", "--port", str(self._port)),
            stdin=asyncio.subprocess.PIPE,
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
            env=self._environment,
        )

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def kill(self) -> int:
        """Send SIGKILL, without warning or clean-up, and return the process id."""
        if self._process is None or not self.alive:
            raise ShowError("the process that serves the company died unexpectedly")
        os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()
        return self._process.pid

    async def stop(self) -> None:
        """Ask it to stop, and kill it if it does not."""
        if self._process is None or not self.alive:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await self._process.wait()
        except TimeoutError:
            await self.kill()
