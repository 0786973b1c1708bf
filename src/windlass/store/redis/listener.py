"""Hearing what others ring: a thread with a connection of its own, which only listens and so has no time limit.

When the connection is lost it makes a new one, and then rings everything: whatever was rung in between is unknown.
"""

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from typing import Any, Final

from hiredis import ReplyError

from windlass.errors import StoreError
from windlass.store.bells import Bells
from windlass.store.redis import faults
from windlass.store.redis.address import Address
from windlass.store.redis.dial import dial
from windlass.store.redis.wire import LostError, Wire

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
"""Seconds before connecting again, doubled each time it fails."""


class Listener:
    """Rings the bells of this process for what other handles and processes have written."""

    def __init__(self, address: Address, prefix: bytes, origin: bytes, bells: Bells) -> None:
        self._address = address
        self._prefix = prefix
        self._origin = origin
        self._bells = bells
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> "Future[None]":
        """Begin to listen. Done when it does; whatever is written from then on is heard."""
        ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, args=(ready,), name="windlass: listener", daemon=True)
        self._thread.start()
        return ready

    def stop(self) -> None:
        """End the thread. Safe to call twice, and from any thread."""
        loop, task, thread = self._loop, self._task, self._thread
        if thread is None or loop is None or task is None:
            return
        with contextlib.suppress(RuntimeError):  # it has ended by itself
            loop.call_soon_threadsafe(task.cancel)
        if thread is not threading.current_thread():
            thread.join()
        self._thread = None

    def _run(self, ready: "Future[None]") -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._listen(ready))

    async def _listen(self, ready: "Future[None]") -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        pause = FIRST_PAUSE
        while True:
            try:
                await self._hear(ready)
                pause = FIRST_PAUSE
            except StoreError as error:
                if not ready.done():
                    ready.set_exception(error)
            if ready.exception() is not None:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _hear(self, ready: "Future[None]") -> None:
        """Listen until the connection is lost."""
        wire = await dial(self._address, self._prefix)
        try:
            wire.subscribe(("SSUBSCRIBE", self._prefix + b"bell"), lambda told: self._told(wire, ready, told))
            await wire.lost
        finally:
            wire.close()
        if not ready.done():
            raise faults.lost(LostError("the connection was lost"), self._address.place)

    def _told(self, wire: Wire, ready: "Future[None]", told: Any) -> None:
        match told:
            case [b"smessage", _, bytes() as message]:
                origin, _, topics = message.partition(b" ")
                if origin != self._origin:
                    self._bells.ring(topics.decode().split("\n"))
            case [b"ssubscribe", *_]:
                if ready.done():
                    self._bells.ring_all()
                else:
                    ready.set_result(None)
            case ReplyError() if not ready.done():
                ready.set_exception(faults.translate(str(told), self._address.place))
                wire.close()
            case _:  # the channel has moved to another node
                wire.close()
