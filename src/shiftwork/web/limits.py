"""Limits on what one visitor may send: the size of a body, and changes per second."""

import time
from collections import OrderedDict
from http import HTTPStatus
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from shiftwork.web.problems import Refused

MOST_BYTES: Final = 4 * 1_048_576
"""The largest body. A payload may have 1 MiB by default, and is larger as JSON."""
MOST_VISITORS: Final = 1_000
"""How many visitors are remembered; beyond that, the least recent one is forgotten."""


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
            detail = f"{name} may make {self._rate.per_second:g} changes per second; wait a moment"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})


async def read_body(request: Request) -> bytes:
    """Return the body. Raises `Refused` if it is too long."""
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and int(length) > MOST_BYTES:
        raise _too_large()
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise _too_large()
        parts.append(part)
    return b"".join(parts)


def _too_large() -> Refused:
    return Refused(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"a body may have at most {MOST_BYTES:,} bytes: store the data elsewhere and send a reference to it",
        {"Connection": "close"},
    )
