"""Bells that others ring: a thread with a connection of its own, which only listens and so has no timeout.

When the connection is lost, the thread connects again and rings all bells, because it has missed what was rung
meanwhile.
"""

import asyncio
import contextlib
import threading
from concurrent.futures import Future
from typing import Any, Final

from hiredis import ReplyError

from shiftwork.errors import StoreError
from shiftwork.store.bells import Bells
from shiftwork.store.redis.server import faults
from shiftwork.store.redis.server.address import RedisAddress
from shiftwork.store.redis.server.connecting import connect
from shiftwork.store.redis.server.pipeline import ConnectionLostError, Pipeline

FIRST_RECONNECT_SECONDS: Final = 0.05
LONGEST_RECONNECT_SECONDS: Final = 1.0
"""Seconds before connecting again; the pause doubles with each failure, up to this."""


class BellListener:
    """Rings the bells of this process for what other stores and processes have written."""

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
        self._pipeline: Pipeline | None = None

    def start(self) -> "Future[None]":
        """Start the thread, unless it runs. The future is done when it listens: then no later write is missed."""
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._ready = Future()
                self._begun.clear()
                self._thread = threading.Thread(target=self._run, name="shiftwork: listener", daemon=True)
                self._thread.start()
            return self._ready

    def move(self) -> None:
        """Connect again, because another node has the namespace now; from any thread."""
        loop, pipeline = self._loop, self._pipeline
        if loop is not None and pipeline is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(pipeline.close)

    def stop(self) -> None:
        """End the thread; from any thread, any number of times."""
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._begun.wait()
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
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
        pause = FIRST_RECONNECT_SECONDS
        while True:
            try:
                await self._listen_once(ready)
                pause = FIRST_RECONNECT_SECONDS
            except StoreError as error:
                if not ready.done():
                    ready.set_exception(error)
            if ready.exception() is not None:
                return
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_RECONNECT_SECONDS)

    async def _listen_once(self, ready: "Future[None]") -> None:
        """Listen until the connection is lost."""
        pipeline = self._pipeline = await connect(self._address, self._prefix)
        channels = (self._prefix + b"bell", self._prefix + b"bell:" + self._origin)
        try:
            pipeline.subscribe(("SSUBSCRIBE", *channels), lambda message: self._receive(pipeline, ready, message))
            await pipeline.lost
        finally:
            self._pipeline = None
            pipeline.close()
        if not ready.done():
            raise faults.lost(ConnectionLostError("the connection was lost"), self._address.place)

    def _receive(self, pipeline: Pipeline, ready: "Future[None]", message: Any) -> None:
        match message:
            case [b"smessage", _, bytes() as body]:
                origin, _, topics = body.partition(b" ")
                if origin != self._origin:
                    self._bells.ring(topics.decode().split("\n"))
            case [b"ssubscribe", _, 1]:  # the second channel exists only for the scripts to count
                pass
            case [b"ssubscribe", *_]:
                if ready.done():
                    self._bells.ring_all()
                else:
                    ready.set_result(None)
            case ReplyError() if not ready.done():
                ready.set_exception(faults.translate(str(message), self._address.place))
                pipeline.close()
            case _:  # the channel has moved to another node
                pipeline.close()
