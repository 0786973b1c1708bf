"""Limits on what one visitor may cause: the size of a request, changes per second, requests and streams at a time."""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Iterator, MutableMapping
from contextlib import asynccontextmanager, contextmanager
from http import HTTPStatus
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request

from shiftwork.sentences import sentence
from shiftwork.web.responses import Refused

MOST_VISITORS: Final = 1_000
"""How many visitors are remembered; beyond that, the least recent one is forgotten."""


MOST_REQUESTS: Final = 4
"""How many requests of one visitor are answered at a time. A browser sends six, which wait for each other briefly."""
REQUEST_PATIENCE_SECONDS: Final = 30.0
"""How long a request waits for a place."""
MOST_WAITING_REQUESTS: Final = 64
"""How many requests of one visitor may be answered or wait."""
MOST_STREAMS_EACH: Final = 20
MOST_STREAMS: Final = 100


MOST_HEAD_BYTES: Final = 16_384
"""How long the address of a request, with its query, and its headers may be together."""


def check_head(scope: MutableMapping[str, Any]) -> None:
    """Refuse a request whose address and headers are too long. Servers limit only what arrives in several pieces."""
    size = len(scope.get("raw_path") or scope["path"]) + len(scope.get("query_string", b""))
    size += sum(len(name) + len(value) for name, value in scope["headers"])
    if size > MOST_HEAD_BYTES:
        detail = sentence(
            "the address and the headers of this request have {n} bytes; {most} are allowed",
            n=f"{size:,}",
            most=f"{MOST_HEAD_BYTES:,}",
        )
        raise Refused(HTTPStatus.BAD_REQUEST, detail)


class Rate(Struct, frozen=True):
    """A rate limit: changes per second on average, and how many at once."""

    per_second: float = 100.0
    burst: float = 300.0


class Limiter:
    """A token bucket for each visitor."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Count one change. Raises `Refused` if there were too many."""
        now = time.monotonic()
        left, at = self._buckets.pop(name, (self._rate.burst, now))
        left = min(self._rate.burst, left + (now - at) * self._rate.per_second)
        if left >= 1:
            left -= 1
            refused = False
        else:
            refused = True
        self._buckets[name] = left, now
        if len(self._buckets) > MOST_VISITORS:
            self._buckets.popitem(last=False)
        if refused:
            detail = sentence(
                "{who} may make {n} changes per second; wait a moment", who=name, n=f"{self._rate.per_second:g}"
            )
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})


class RequestPlaces:
    """Requests at a time, for each visitor. A request counts until its answer has been read, and others wait."""

    def __init__(self, most: int = MOST_REQUESTS, patience: float = REQUEST_PATIENCE_SECONDS) -> None:
        self._most = most
        self._patience = patience
        self._under_way: dict[str, asyncio.Semaphore] = {}
        self._interested: Counter[str] = Counter()

    @asynccontextmanager
    async def take(self, name: str) -> AsyncIterator[None]:
        """Wait for a place. Raises `Refused` if there is none for a long time, or if too many wait already."""
        if self.under_way(name) >= MOST_WAITING_REQUESTS:
            raise _no_place(
                sentence(
                    "{who} has {n} requests under way already; wait for one to end", who=name, n=MOST_WAITING_REQUESTS
                )
            )
        self._interested[name] += 1
        place = self._under_way.setdefault(name, asyncio.Semaphore(self._most))
        try:
            await self._wait(place, name)
            try:
                yield
            finally:
                place.release()
        finally:
            self._interested[name] -= 1
            if not self._interested[name]:
                del self._interested[name], self._under_way[name]

    def under_way(self, name: str) -> int:
        """Return how many requests of a visitor are answered, or wait."""
        return self._interested[name]

    async def _wait(self, place: asyncio.Semaphore, name: str) -> None:
        try:
            async with asyncio.timeout(self._patience):
                await place.acquire()
        except TimeoutError:
            why = sentence(
                "{who} has {n} requests under way that have not ended within {n2} s; wait for one to end",
                who=name,
                n=self._most,
                n2=f"{self._patience:g}",
            )
            raise _no_place(why) from None


class StreamPlaces:
    """Streams at a time, for each visitor and in all."""

    def __init__(self, each: int = MOST_STREAMS_EACH, most: int = MOST_STREAMS) -> None:
        self._each = each
        self._most = most
        self._held: Counter[str] = Counter()

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """Hold a place. Raises `Refused` if there is none."""
        if self._held[name] >= self._each:
            raise _no_stream(f"{name} has {self._each} streams")
        if self._held.total() >= self._most:
            raise _no_stream("there are too many streams")
        self._held[name] += 1
        try:
            yield
        finally:
            self._held[name] -= 1
            if not self._held[name]:
                del self._held[name]


def _no_place(why: str) -> Refused:
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, why, {"Retry-After": "1"})


def _no_stream(why: str) -> Refused:
    detail = f"{why} already; close one, or poll every few seconds instead"
    return Refused(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "5"})


async def read_body(request: Request, most: int) -> bytes:
    """Return the body. Raises `Refused` if it is longer than `most` bytes."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return b"".join(parts)


def _too_large(most: int) -> Refused:
    return Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        sentence(
            "a body may have at most {n} bytes here: store the data elsewhere and send a reference to it", n=f"{most:,}"
        ),
        {"Connection": "close"},
    )
