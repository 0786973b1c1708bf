"""One connection for callers that have no event loop: a plain socket, used by one thread at a time.

A call by way of an event loop in another thread wakes two threads, which takes as long as the server does. A caller
that finds the line taken goes that way, where the jobs of many callers are sent together. So does every call that is
not plain: this module sends one script, and leaves what is unusual to the others. On Windows all of them go that way.
"""

import asyncio
import os
import select
import socket
import struct
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from hiredis import ProtocolError, Reader, ReplyError, pack_command

from shiftwork.errors import StoreError
from shiftwork.store.redis import faults
from shiftwork.store.redis.address import RedisAddress
from shiftwork.store.redis.connecting import connect
from shiftwork.store.redis.scripts import NOT_RUN, script

if TYPE_CHECKING:
    from collections.abc import Callable

CALLS_BEFORE: Final = 2
"""So many calls go another way first: a program that makes one or two needs no connection for them."""
RECEIVED: Final = 65_536
_NOTHING: Final = object()


class BlockingLine:
    """A connection that is opened when it pays."""

    def __init__(self, address: RedisAddress, prefix: bytes) -> None:
        self._address = address
        self._prefix = prefix
        self._lock = threading.Lock()
        self._calls = 0
        self._socket: socket.socket | None = None
        self._reader = Reader(notEnoughData=_NOTHING)
        self._events: Callable[[], object] = list
        """Returns what has happened on the connection, if anything."""

    def run(self, name: str, *arguments: bytes) -> Any:
        """Run a script and return its reply; None if it was not run, and has to go another way."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._run(name, arguments) if self._is_ready() else None
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection. The next calls open another one."""
        with self._lock:
            self._drop()

    def _is_ready(self) -> bool:
        if self._socket is not None and self._events():  # the server sends nothing unasked, except that it closes
            self._drop()
        if self._socket is None and self._calls >= CALLS_BEFORE and not self._address.tls and sys.platform != "win32":
            self._open()
        self._calls += 1
        return self._socket is not None

    def _run(self, name: str, arguments: tuple[bytes, ...]) -> Any:
        try:
            command = ("EVALSHA", script(name).digest, 1, self._prefix, *arguments)
            reply = self._ask(pack_command(command))  # type: ignore[arg-type]
        except BlockingIOError as error:  # the time is over
            self._drop()
            raise faults.lost(TimeoutError("it does not answer"), self._address.place) from error
        except (OSError, ProtocolError) as error:
            self._drop()
            raise faults.lost(error, self._address.place) from error
        except BaseException:  # an interrupt: the reply is still to come
            self._drop()
            raise
        if not isinstance(reply, ReplyError):
            return reply
        said = str(reply)
        self._drop()
        if said.startswith(NOT_RUN):
            return None
        raise faults.translate(said, self._address.place)

    def _ask(self, command: bytes) -> Any:
        line = self._socket
        if line is None:
            raise ConnectionError("the connection has ended")
        line.sendall(command)
        while True:
            received = line.recv(RECEIVED)
            if not received:
                raise ConnectionError("the connection was lost")
            self._reader.feed(received)
            reply = self._reader.gets()
            if reply is not _NOTHING:
                return reply

    def _open(self) -> None:
        """Connect, by an event loop that lives no longer than that takes. If it fails, others report it better."""
        self._calls = 0
        loop = asyncio.new_event_loop()
        try:
            taken = loop.run_until_complete(self._connected())
        except StoreError:
            return
        finally:
            loop.close()
        self._socket = line = socket.socket(fileno=taken)
        line.setblocking(True)  # noqa: FBT003 - its only parameter
        # The kernel watches the time: Python would ask it twice, whether there is something and what it is.
        seconds, part = divmod(self._address.timeout, 1)
        for direction in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            line.setsockopt(socket.SOL_SOCKET, direction, struct.pack("@ll", int(seconds), int(part * 1e6)))
        self._reader = Reader(notEnoughData=_NOTHING)
        poll = select.poll()
        poll.register(line, select.POLLIN)
        self._events = partial(poll.poll, 0)

    async def _connected(self) -> int:
        """Return the file descriptor of a new connection, which outlives its event loop."""
        pipeline = await connect(self._address, self._prefix)
        taken = os.dup(pipeline.fileno())
        pipeline.close()
        await pipeline.lost
        return taken

    def _drop(self) -> None:
        line, self._socket = self._socket, None
        self._calls = 0
        if line is not None:
            line.close()
