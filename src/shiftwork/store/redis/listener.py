"""Hearing what others ring: a thread with a connection of its own, which only listens and so has no time limit.

When the connection is lost it makes a new one, and then rings everything: whatever was rung in between is unknown.
"""

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from typing import Any, Final

from hiredis import ReplyError

from shiftwork.errors import StoreError
from shiftwork.store.bells import Bells
from shiftwork.store.redis import faults
from shiftwork.store.redis.address import RedisAddress
from shiftwork.store.redis.dial import dial
from shiftwork.store.redis.wire import LostError, Wire

FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
"""Seconds before connecting again, doubled each time it fails."""


class Listener:
    """Rings the bells of this process for what other handles and processes have written."""

    def __init__(self, address: RedisAddress, prefix: bytes, origin: bytes, bells: Bells) -> None:
        self._address = address
        self._prefix = prefix
        self._origin = origin
        self._bells = bells
        self._lock = threading.Lock()
        self._begun = threading.Event()
        self._ready: Future[None] = Future()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._wire: Wire | None = None

    def start(self) -> "Future[None]":
        """Begin to listen. Done when it does; whatever is written from then on is heard. Once is enough."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._ready = Future()
                self._begun.clear()
                self._thread = threading.Thread(target=self._run, name="shiftwork: listener", daemon=True)
                self._thread.start()
            return self._ready

    def move(self) -> None:
        """Connect again: the node that has the namespace is another one by now. Safe from any thread."""
        loop, wire = self._loop, self._wire
        if loop is not None and wire is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(wire.close)

    def stop(self) -> None:
        """End the thread. Safe to call twice, and from any thread."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._begun.wait()
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        if thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._listen(self._ready))

    async def _listen(self, ready: "Future[None]") -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._begun.set()
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
        wire = self._wire = await dial(self._address, self._prefix)
        channels = (self._prefix + b"bell", self._prefix + b"bell:" + self._origin)
        try:
            wire.subscribe(("SSUBSCRIBE", *channels), lambda told: self._told(wire, ready, told))
            await wire.lost
        finally:
            self._wire = None
            wire.close()
        if not ready.done():
            raise faults.lost(LostError("the connection was lost"), self._address.place)

    def _told(self, wire: Wire, ready: "Future[None]", told: Any) -> None:
        match told:
            case [b"smessage", _, bytes() as message]:
                origin, _, topics = message.partition(b" ")
                if origin != self._origin:
                    self._bells.ring(topics.decode().split("\n"))
            case [b"ssubscribe", _, 1]:  # the second one is there for the scripts to see
                pass
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
