"""A socket to listen on, bound before anything heavier is imported or started."""

import asyncio
import logging
import math
import socket
import time
from typing import Final

from msgspec import Struct

from shiftwork.errors import ConfigurationError
from shiftwork.web.peers import is_loopback

logger: Final = logging.getLogger("shiftwork")

EVERY_SECONDS: Final = 60.0


class RareWarning:
    """Logs at most one line a minute, and how many were left out since the last one."""

    def __init__(self, every: float = EVERY_SECONDS) -> None:
        self._every = every
        self._last = -math.inf
        self._left_out = 0

    def __call__(self, message: str, *values: object) -> None:
        """Log the message, unless another one was logged a moment ago."""
        now = time.monotonic()
        if now - self._last < self._every:
            self._left_out += 1
            return
        again = f" ({self._left_out:,} more since the last such line)" if self._left_out else ""
        self._last, self._left_out = now, 0
        logger.warning("%s%s", message % values, again)


BACKLOG: Final = 100
"""How many connections the kernel holds that have not been accepted yet."""


class Listener(Struct, frozen=True):
    """A listening socket, and the host that was asked for."""

    socket: socket.socket
    host: str

    def address(self, root_path: str = "") -> str:
        """Return the address to open in a browser, on this machine if possible."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(self.host, self.host)  # noqa: S104 - shown, not bound
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}:{self.socket.getsockname()[1]}{root_path}/"

    @property
    def beyond_loopback(self) -> bool:
        """Return whether other machines can reach it."""
        return self.host != "localhost" and not is_loopback(self.host)


async def listen(host: str, port: int) -> Listener:
    """Return a listener. Raises `ConfigurationError` if the address cannot be used."""
    return Listener(await asyncio.to_thread(_bind, host, port), host)


def _bind(host: str, port: int) -> socket.socket:
    try:
        family, kind, proto, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, proto)
    except OSError as error:
        message = f"{host}:{port} is not an address to listen on: {error}"
        raise ConfigurationError(message) from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(BACKLOG)
        listening.setblocking(False)  # noqa: FBT003 - the standard library's
    except OSError as error:
        listening.close()
        message = f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port"
        raise ConfigurationError(message) from None
    return listening
