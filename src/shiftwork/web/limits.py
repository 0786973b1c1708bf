"""How much one visitor may send: the size of a body, and changes per second."""

import time
from collections import OrderedDict
from http import HTTPStatus
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from shiftwork.web.problems import Refused

MOST_BYTES: Final = 4 * 1_048_576
"""Of a body. A payload may have 1 MiB unless the app says otherwise, and takes more room in JSON."""
MOST_VISITORS: Final = 1_000
"""So many are remembered; beyond that, the one that was not heard of for longest is forgotten."""


class Rate(Struct, frozen=True):
    """So many a second in the long run, and so many at once."""

    per_second: float = 100.0
    burst: float = 300.0


class Limiter:
    """A bucket for each visitor; what is done takes from it, time fills it."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> None:
        """Take one, or refuse."""
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
            detail = f"{name} may change {self._rate.per_second:g} things a second; wait a moment"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, detail, {"Retry-After": "1"})


async def read_body(request: Request) -> bytes:
    """The body, as far as it is allowed to be long."""
    said = request.headers.get("content-length", "0")
    if said.isdecimal() and int(said) > MOST_BYTES:
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
        f"a body may have {MOST_BYTES:,} bytes: store the data elsewhere and send a reference to it",
        {"Connection": "close"},
    )
