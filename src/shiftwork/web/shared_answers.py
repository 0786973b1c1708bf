"""Answers shared by all requests: what costs the store several questions is fetched at most once a second."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

ANSWER_FRESH_SECONDS: Final = 1.0
SHARE: Final = 20
"""An answer is kept this many times as long as it took to fetch, so fetching takes at most a twentieth of the time."""
ANSWER_LONGEST_SECONDS: Final = 7.0
"""An answer counts as fresh no longer than this, by default."""
OLDEST_SECONDS: Final = 10.0
"""No stale answer is older than this: then the store may be away, and the request waits for what it replies."""

SLOW_FETCH_SECONDS: Final = 0.05
"""An answer that took longer than this to fetch is served stale while the next one is fetched."""
GRACE: Final = 2
"""A stale answer is served this many times as long again as it was fresh, until it is too old."""

T = TypeVar("T")
M = TypeVar("M")


class SharedAnswer(Generic[T]):
    """An answer that is kept for a moment. Requests that come while it is fetched share it."""

    def __init__(
        self,
        fetch: Callable[[], Awaitable[T]],
        now: Callable[[], float],
        *,
        seconds: float = ANSWER_FRESH_SECONDS,
        longest: float = ANSWER_LONGEST_SECONDS,
    ) -> None:
        self._fetch = fetch
        self._now = now
        self._seconds = seconds
        self._longest = longest
        self._value: tuple[T, float, float] | None = None
        """The answer, until when it is fresh, and until when it is served stale."""
        self._version = 0
        self._fetching: tuple[asyncio.Future[T], int] | None = None

    async def get(self) -> T:
        """Return the answer, no older than allowed."""
        if self._value is not None and 0 <= self._value[1] - self._now() <= self._longest:
            return self._value[0]
        if self._fetching is None or self._fetching[1] != self._version or _lost(self._fetching[0]):
            self._fetching = asyncio.ensure_future(self._fetch_now(self._version)), self._version
            self._fetching[0].add_done_callback(look_at)
        if self._value is not None and self._value[1] < self._now() < self._value[2]:
            return self._value[0]
        return await asyncio.shield(self._fetching[0])

    def forget(self) -> None:
        """Discard the answer, also one that is being fetched, because something was changed."""
        self._value = None
        self._version += 1

    async def _fetch_now(self, version: int) -> T:
        at, began = self._now(), time.perf_counter()
        try:
            value = await self._fetch()
        except BaseException:
            if version == self._version:
                self._value = None  # a stale answer would hide what is wrong
            raise
        finally:
            if self._fetching is not None and self._fetching[1] == version:
                self._fetching = None
        if version == self._version:
            took = time.perf_counter() - began
            good = min(max(self._seconds, SHARE * took), self._longest)
            stale = min(GRACE * good, OLDEST_SECONDS - good) if took > SLOW_FETCH_SECONDS else 0.0
            self._value = value, at + good, at + good + max(0.0, stale)
        return value


class DerivedAnswer(Generic[T, M]):
    """A value derived from an answer, once for all requests."""

    def __init__(self, make: Callable[[T], M]) -> None:
        self._make = make
        self._made: tuple[T, M] | None = None

    def of(self, answer: T) -> M:
        """Return the value derived from this answer."""
        if self._made is None or self._made[0] is not answer:
            self._made = answer, self._make(answer)
        return self._made[1]


def look_at(fetched: "asyncio.Future[T]") -> None:
    """Retrieve a failure that nothing waits for, so that it is not reported as unhandled."""
    if not fetched.cancelled():
        fetched.exception()


def _lost(future: "asyncio.Future[T]") -> bool:
    """Return whether a future belongs to another event loop, which has ended."""
    return future.get_loop() is not asyncio.get_running_loop()
