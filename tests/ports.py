"""Ports for servers that are named before they listen."""

import random
import socket
from typing import Final

PORTS: Final = range(12_000, 30_000)
"""Below those that systems give to connections by themselves: none of them takes one of these meanwhile."""
_dice: Final = random.SystemRandom()


def free_port() -> int:
    """Return a port on which nothing listens; by chance, so that other test processes find others."""
    while True:
        port = _dice.choice(PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
