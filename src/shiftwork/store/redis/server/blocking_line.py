"""The connection for callers that have no event loop: a plain socket. There is none on Windows, and none with TLS."""

import asyncio
import os
import select
import socket
import struct
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hiredis import ProtocolError, Reader, ReplyError, pack_command

from shiftwork.errors import StoreError
from shiftwork.store.blocking_connection import BlockingConnection
from shiftwork.store.redis.lua import NOT_RUN, script
from shiftwork.store.redis.server import faults
from shiftwork.store.redis.server.address import RedisAddress
from shiftwork.store.redis.server.connecting import connect

if TYPE_CHECKING:
    from collections.abc import Callable

RECEIVED: Final = 65_536
_NOTHING: Final = object()


class BlockingLine(BlockingConnection[socket.socket, tuple[bytes, ...], Any]):
    """Runs one script."""

    def __init__(self, address: RedisAddress, prefix: bytes, name: str) -> None:
        super().__init__()
        self._address = address
        self._prefix = prefix
        self._name = name
        self._reader = Reader(notEnoughData=_NOTHING)

    def ask(self, link: socket.socket, request: tuple[bytes, ...]) -> Any:
        """Run the script with these arguments."""
        try:
            command = ("EVALSHA", script(self._name).digest, 1, self._prefix, *request)
            reply = self._ask(link, pack_command(command))  # type: ignore[arg-type]
        except BlockingIOError as error:  # the time is over
            raise faults.lost(TimeoutError("it does not answer"), self._address.place) from error
        except (OSError, ProtocolError) as error:
            raise faults.lost(error, self._address.place) from error
        if not isinstance(reply, ReplyError):
            return reply
        said = str(reply)
        if said.startswith(NOT_RUN):
            return None
        raise faults.translate(said, self._address.place)

    def _ask(self, line: socket.socket, command: bytes) -> Any:
        line.sendall(command)
        while True:
            received = line.recv(RECEIVED)
            if not received:
                raise ConnectionError("the connection was lost")
            self._reader.feed(received)
            reply = self._reader.gets()
            if reply is not _NOTHING:
                return reply

    def connect(self) -> socket.socket | None:
        """Connect by means of a temporary event loop."""
        if self._address.tls or sys.platform == "win32":
            return None
        loop = asyncio.new_event_loop()
        try:
            taken = loop.run_until_complete(self._connected())
        except StoreError:
            return None
        finally:
            loop.close()
        line = socket.socket(fileno=taken)
        line.setblocking(True)  # noqa: FBT003 - its only parameter
        # The kernel watches the time: Python would ask it twice, whether there is something and what it is.
        seconds, part = divmod(self._address.timeout, 1)
        for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            line.setsockopt(socket.SOL_SOCKET, direction, struct.pack("@ll", int(seconds), int(part * 1e6)))
        self._reader = Reader(notEnoughData=_NOTHING)
        poll = select.poll()
        poll.register(line, select.POLLIN)
        self.has_input: Callable[[], object] = partial(poll.poll, 0)
        return line

    def end(self, link: socket.socket) -> None:
        """Close a connection."""
        link.close()

    async def _connected(self) -> int:
        """Return the file descriptor of a new connection, which outlives its event loop."""
        pipeline = await connect(self._address, self._prefix)
        taken = os.dup(pipeline.fileno())
        pipeline.close()
        await pipeline.lost
        return taken
