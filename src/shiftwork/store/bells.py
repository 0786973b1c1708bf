"""Bells within one process: which waiter waits for which topic, on which event loop. Every store rings through this.

It only wakes waiters: it never looks into a store, never blocks, and never fails because a listener's event loop is
gone.
"""

import asyncio
from collections.abc import Collection, Iterable
from threading import Lock, get_ident


class LoopBell:
    """A bell that belongs to the event loop it was made on, and can be rung from any thread."""

    def __init__(self, bells: "Bells", topics: Collection[str]) -> None:
        self.topics: frozenset[str] = frozenset(topics)
        self._bells = bells
        self._loop = asyncio.get_running_loop()
        self.thread: int = get_ident()
        """The thread of its event loop."""
        self._event = asyncio.Event()
        self._rung = False
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it will never ring again."""
        return self._closed

    async def wait(self) -> None:
        """Return once it has rung since the last wait returned (or since it was made), or at once if it is closed."""
        await self._event.wait()
        # This return answers every ring before the flag is cleared: the waiter reads the store next.
        if not self._closed:
            self._event.clear()
            self._rung = False

    def ring(self) -> None:
        """Ring it from here. Safe from any thread; several rings before a wait count as one."""
        if self._rung:
            return
        self._rung = True
        try:
            if get_ident() == self.thread:  # the waiter wakes one iteration of the loop sooner
                self._event.set()
            else:
                self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:  # its loop is closed, so nothing can be waiting
            self.close()

    def close(self) -> None:
        """Stop listening. A wait in progress returns."""
        if self._closed:
            return
        self._closed = True
        self._bells.forget(self)
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return


class Bells:
    """All bells of one store in this process, by topic."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._by_topic: dict[str, dict[LoopBell, None]] = {}
        """In the order in which they began to listen, which is also the order in which they ring."""

    def listen(self, topics: Collection[str]) -> LoopBell:
        """Return a bell for these topics. Call it from the event loop that will wait."""
        bell = LoopBell(self, topics)
        with self._lock:
            for topic in bell.topics:
                self._by_topic.setdefault(topic, {})[bell] = None
        return bell

    def ring(self, topics: Iterable[str]) -> None:
        """Ring every bell that listens to one of these topics, in this process."""
        for bell in self._listening(topics):
            bell.ring()

    def ring_here(self, topics: Iterable[str]) -> None:
        """Ring those of them that belong to the event loop of this thread."""
        for bell in self._listening(topics):
            if bell.thread == get_ident():
                bell.ring()

    def ring_elsewhere(self, topics: Iterable[str]) -> None:
        """Ring those of them that belong to other event loops."""
        for bell in self._listening(topics):
            if bell.thread != get_ident():
                bell.ring()

    def _listening(self, topics: Iterable[str]) -> Collection[LoopBell]:
        if not self._by_topic:
            return ()
        with self._lock:
            return {bell: None for topic in topics for bell in self._by_topic.get(topic, ())}

    def ring_all(self) -> None:
        """Ring every bell: something was written, and it is unknown what."""
        self.ring(self.topics())

    def topics(self) -> list[str]:
        """Return every topic that has a listener now."""
        with self._lock:
            return list(self._by_topic)

    def close(self) -> None:
        with self._lock:
            bells = {bell: None for listening in self._by_topic.values() for bell in listening}
        for bell in bells:
            bell.close()

    def forget(self, bell: LoopBell) -> None:
        """Remove a bell that closes."""
        with self._lock:
            for topic in bell.topics:
                listening = self._by_topic.get(topic, {})
                listening.pop(bell, None)
                if not listening:
                    self._by_topic.pop(topic, None)
