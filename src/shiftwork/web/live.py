"""Changes as server-sent events.

One task per process listens to the store and reads its events for all streams; without streams, the store is not asked.
Each stream has a bounded queue: a client that falls behind is disconnected, reconnects, and continues after the last
event that it received.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Final

import msgspec
from msgspec import Struct

from shiftwork.core.docs import POOL_CONFIG
from shiftwork.core.model import Event
from shiftwork.errors import ShiftworkError
from shiftwork.store.protocol import Bell, Store
from shiftwork.views.shapes.system import event_shape

logger: Final = logging.getLogger("shiftwork")

PAUSE_SECONDS: Final = 0.4
"""The shortest time between two messages about changes."""
EVENTS_SECONDS: Final = 1.0
"""How often events are read: they ring no bell."""
POOLS_SECONDS: Final = 30.0
"""How soon the bell of a new pool is listened to."""
KEEP_ALIVE_SECONDS: Final = 15.0
LONGEST_SECONDS: Final = 900.0
"""A stream ends after this time, so that a visitor without a token is authenticated again."""
MOST_WAITING: Final = 1_000
MOST_MISSED: Final = 1_000
ALL: Final = ("jobs", "workers", "pools", "nodes", "events", "history")


class Change(Struct, frozen=True):
    """What may have changed."""

    topics: list[str]


class Stream:
    """One client."""

    def __init__(self, seen: int | None) -> None:
        self.seen = seen
        """The number of the last event that was sent; None until the first one is known."""
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING)
        self.over = False

    def put(self, piece: bytes) -> None:
        if self.over:
            return
        if self.queue.full():
            self.end()
        else:
            self.queue.put_nowait(piece)

    def end(self) -> None:
        """Send nothing more."""
        self.over = True
        with contextlib.suppress(asyncio.QueueFull):
            self.queue.put_nowait(None)

    def send(self, events: Iterable[Event]) -> None:
        """Send the events that the client has not received."""
        for event in events:
            if self.seen is None or event.seq > self.seen:
                self.seen = event.seq
                self.put(_event(event))


class Live:
    """Listens to the store once, and sends to many clients."""

    def __init__(self, store: Callable[[], Awaitable[Store]]) -> None:
        self._store = store
        self._streams: set[Stream] = set()
        self._task: asyncio.Task[None] | None = None
        self._topics: set[str] = set()
        self._rung = asyncio.Event()
        self._last: int | None = None
        self._closed = False

    async def stream(
        self, after: int | None, welcome: Callable[[], Awaitable[bool]] | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Yield what is sent to one client, while it is welcome. `after`: the last event that it received."""
        stream = Stream(after)
        stream.put(b"retry: 1000\n\n" + _change(ALL))
        try:
            self._join(stream)
            if after is not None:
                await self._catch_up(stream, after)
            async with asyncio.timeout(LONGEST_SECONDS):
                while True:
                    piece = await _next(stream)
                    if piece is None or (welcome is not None and not await welcome()):
                        return
                    yield piece
        except TimeoutError:
            return
        finally:
            self._streams.discard(stream)
            if not self._streams:
                await self._rest()

    def changed(self, *topics: str) -> None:
        """Report that something may have changed."""
        self._topics.update(topics)
        self._rung.set()

    async def close(self) -> None:
        """End all streams, so that a server can stop."""
        self._closed = True
        for stream in tuple(self._streams):
            stream.end()
        await self._rest()

    def _join(self, stream: Stream) -> None:
        if self._closed:
            stream.end()
            return
        self._streams.add(stream)
        if self._task is None or self._task.done():
            self._last = None
            self._rung = asyncio.Event()  # the old one may belong to a loop that has ended
            self._task = asyncio.create_task(self._listen(), name="shiftwork live")

    async def _catch_up(self, stream: Stream, after: int) -> None:
        """Send what happened while the client was away; if that is too much, only the newest: pages reload anyway."""
        with contextlib.suppress(ShiftworkError):
            store = await self._store()
            missed = await store.events(after, MOST_MISSED)
            stream.send(missed)
            if not missed:  # the number may come from another store, which had more events
                newest = await store.events(0, 1)
                stream.seen = min(after, newest[-1].seq if newest else 0)

    async def _rest(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    # ── the listener ───────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._hear())
                group.create_task(self._read())
                group.create_task(self._send())
        except Exception:  # clients must not wait for a stream that never sends again
            logger.exception("listening to the store failed; clients reconnect by themselves")
            for stream in tuple(self._streams):
                stream.end()

    async def _hear(self) -> None:
        """Listen to the store's bells."""
        deaf = False
        while True:
            try:
                store = await self._store()
                pools = await _pools(store)
                jobs = store.listen({"ended", "orders", *(f"pool:{name}" for name in pools)})
                state = store.listen({"state", "leader"})
            except ShiftworkError as error:
                logger.debug("cannot listen to the store: %s", error)
                await asyncio.sleep(EVENTS_SECONDS)
                continue
            if deaf:  # bells that rang meanwhile were missed
                self.changed("jobs", "pools", "workers", "nodes")
            waiting = [
                asyncio.ensure_future(self._wait(jobs, "jobs", "pools", "workers")),
                asyncio.ensure_future(self._wait(state, "jobs", "pools", "workers", "nodes")),
                asyncio.ensure_future(_other_pools(store, pools)),
            ]
            try:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for one in waiting:
                    one.cancel()
                jobs.close()
                state.close()
                deaf = True
            await asyncio.sleep(EVENTS_SECONDS)  # a closed store may be opened again

    async def _wait(self, bell: Bell, *topics: str) -> None:
        while not bell.closed:
            await bell.wait()
            self.changed(*topics)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _read(self) -> None:
        """Read events."""
        while True:
            with contextlib.suppress(ShiftworkError):
                store = await self._store()
                if self._last is None:
                    newest = await store.events(0, 1)
                    self._last = newest[-1].seq if newest else 0
                    events = [event for event in newest if any((one.seen or 0) < event.seq for one in self._streams)]
                    for one in self._streams:
                        one.seen = self._last if one.seen is None else one.seen
                else:
                    events = await self._newer(store, self._last)
                if events:
                    self._last = events[-1].seq
                    self.changed("events")
                    for stream in tuple(self._streams):
                        stream.send(events)
            await asyncio.sleep(EVENTS_SECONDS)

    async def _newer(self, store: Store, last: int) -> list[Event]:
        """Return the events after the last one; all, if the store was emptied and has lost that one."""
        found = await store.events(max(0, last - 1), MOST_MISSED)
        if last and not found:
            for one in self._streams:
                one.seen = 0
            return await store.events(0, MOST_MISSED)
        return [event for event in found if event.seq != last]

    async def _send(self) -> None:
        """Send what changed, at most every `PAUSE_SECONDS`."""
        while True:
            await self._rung.wait()
            self._rung.clear()
            topics, self._topics = self._topics, set()
            piece = _change(sorted(topics))
            for stream in tuple(self._streams):
                stream.put(piece)
            await asyncio.sleep(PAUSE_SECONDS)


async def _pools(store: Store) -> set[str]:
    return {doc.name for doc in await store.docs(POOL_CONFIG.name)}


async def _other_pools(store: Store, pools: set[str]) -> None:
    """Return when there are other pools than these."""
    with contextlib.suppress(ShiftworkError):
        while await _pools(store) == pools:  # noqa: ASYNC110 - the store does not notify
            await asyncio.sleep(POOLS_SECONDS)


async def _next(stream: Stream) -> bytes | None:
    if stream.over and stream.queue.empty():
        return None
    try:
        async with asyncio.timeout(KEEP_ALIVE_SECONDS):
            return await stream.queue.get()
    except TimeoutError:
        return b": still here\n\n"


def _change(topics: Iterable[str]) -> bytes:
    return b"event: change\ndata: " + msgspec.json.encode(Change(list(topics))) + b"\n\n"


def _event(event: Event) -> bytes:
    return b"event: event\nid: %d\ndata: " % event.seq + msgspec.json.encode(event_shape(event)) + b"\n\n"
