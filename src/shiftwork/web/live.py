"""Changes as server-sent events.

One task per process listens to the store and reads its events for all streams; without streams, the store is not asked.
Each stream has a bounded queue: a client that falls behind is disconnected, reconnects, and continues after the last
event that it received.

Every message about changes states when the store last replied, and what is wrong if it does not: a page that shows old
numbers must know that they are old. While nothing changes, such a message without topics comes every few seconds.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Final

from msgspec import Struct

from shiftwork.core.doc_kinds import POOL_CONFIG
from shiftwork.core.model.event import Event
from shiftwork.errors import ShiftworkError
from shiftwork.sentences import error_text, sentence
from shiftwork.store.protocol import Bell, Store
from shiftwork.views.formats import iso
from shiftwork.views.shapes.system import event_shape
from shiftwork.web.responses import Encode, as_texts

logger: Final = logging.getLogger("shiftwork")

PAUSE_SECONDS: Final = 0.4
"""The shortest time between two messages about changes."""
EVENTS_SECONDS: Final = 1.0
"""How often events are read: they ring no bell."""
POOLS_SECONDS: Final = 30.0
"""How soon the bell of a new pool is listened to."""
KEEP_ALIVE_SECONDS: Final = 15.0
BEAT_SECONDS: Final = 5.0
"""How often streams hear when the store last replied."""
STORE_SILENT_SECONDS: Final = 3.0
"""The store is silent if it has not replied for this long: it is asked every second."""
NO_REPLY: Final = sentence("the store does not reply")
"""What is wrong with a store that hangs, until the call fails."""
STREAM_LONGEST_SECONDS: Final = 900.0
"""A stream ends after this time, so that a visitor without a token is authenticated again."""
MOST_WAITING_MESSAGES: Final = 1_000
MOST_MISSED: Final = 1_000
ALL_TOPICS: Final = ("jobs", "workers", "pools", "nodes", "events", "history")


class Change(Struct, frozen=True):
    """What may have changed, and whether the store replies."""

    topics: list[str]
    at: str | None = None
    """When the store last replied; null if it has not yet."""
    store_fault: str | None = None
    """What is wrong with the store; null while it replies."""
    store_silent_since: str | None = None
    """Since when the store has not replied; null while it does."""


class StoreWatch:
    """When the store last replied, and what is wrong since."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._begun: float | None = None
        self._at: float | None = None
        self._fault: str | None = None

    def begin(self) -> None:
        """Start to count: streams listen from now on."""
        self._begun, self._at, self._fault = self._now(), None, None

    def replied(self) -> None:
        """Note that the store replied just now."""
        self._at, self._fault = self._now(), None

    def failed(self, error: ShiftworkError) -> None:
        """Note how a call to the store failed."""
        self._fault = error_text(error)

    @property
    def fault(self) -> str | None:
        """Return what is wrong with the store; None while it replies."""
        last = self._begun if self._at is None else self._at
        if self._fault is None and last is not None and self._now() - last > STORE_SILENT_SECONDS:
            return NO_REPLY
        return self._fault

    def change(self, topics: Iterable[str]) -> Change:
        """Return the message about these changes."""
        fault = self.fault
        silent_since = None if fault is None else iso(self._begun if self._at is None else self._at)
        return Change(list(topics), iso(self._at), fault, silent_since)


class Stream:
    """One client."""

    def __init__(self, seen: int | None, encode: Encode) -> None:
        self.encode = encode
        self.seen = seen
        """The number of the last event that was sent; None until the first one is known."""
        self.queue: asyncio.Queue[bytes | None] = asyncio.Queue(MOST_WAITING_MESSAGES)
        self.over: bool = False

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
                self.put(_event(event, self.encode))


class Live:
    """Listens to the store once, and sends to many clients."""

    def __init__(self, store: Callable[[], Awaitable[Store]], now: Callable[[], float]) -> None:
        self._store = store
        self._watch = StoreWatch(now)
        self._streams: set[Stream] = set()
        self._task: asyncio.Task[None] | None = None
        self._topics: set[str] = set()
        self._rung = asyncio.Event()
        self._last: int | None = None
        self._closed = False

    async def stream(
        self, after: int | None, welcome: Callable[[], Awaitable[bool]] | None = None, encode: Encode = as_texts
    ) -> AsyncGenerator[bytes, None]:
        """Yield what is sent to one client, while it is welcome. `after`: the last event that it received."""
        stream = Stream(after, encode)
        try:
            self._join(stream)
            stream.put(b"retry: 1000\n\n" + _change(self._watch.change(ALL_TOPICS), encode))
            if after is not None:
                await self._catch_up(stream, after)
            async with asyncio.timeout(STREAM_LONGEST_SECONDS):
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
            self._watch.begin()
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
                group.create_task(self._beat())
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
        """Read events, and notice whether the store replies."""
        while True:
            try:
                await self._read_events(await self._store())
            except ShiftworkError as error:
                self._watch.failed(error)
            else:
                self._watch.replied()
            await asyncio.sleep(EVENTS_SECONDS)

    async def _read_events(self, store: Store) -> None:
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

    async def _beat(self) -> None:
        """Report whether the store replies: every few seconds, and at once when it stops or starts again."""
        sent, told = self._watch.fault, 0.0
        while True:
            await asyncio.sleep(EVENTS_SECONDS)
            told += EVENTS_SECONDS
            fault = self._watch.fault
            if fault != sent or told >= BEAT_SECONDS:
                sent, told = fault, 0.0
                self.changed()

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
            change = self._watch.change(sorted(topics))
            for stream in tuple(self._streams):
                stream.put(_change(change, stream.encode))
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


def _change(change: Change, encode: Encode) -> bytes:
    return b"event: change\ndata: " + encode(change) + b"\n\n"


def _event(event: Event, encode: Encode) -> bytes:
    return b"event: event\nid: %d\ndata: " % event.seq + encode(event_shape(event)) + b"\n\n"
