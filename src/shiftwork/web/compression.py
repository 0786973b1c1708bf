"""Compressed answers: JSON and text of some size, for those who accept gzip.

A stream is never compressed: it would be held back until there is enough of it.
"""

import asyncio
import gzip
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

LEAST_BYTES: Final = 1_024
"""Smaller answers fit into a packet or two."""
LEVEL: Final = 1
"""Fast: a higher level takes several times as long for a tenth fewer bytes."""
LARGE_BYTES: Final = 262_144
"""Compressing more than this takes too long for the event loop."""
_REFUSED: Final = re.compile(r"q=0(\.0*)?")
KINDS: Final = ("application/json", "application/problem+json", "text/")


def accepts_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip."""
    qualities: dict[str, str] = {}
    for one in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, quality = one.partition(";")
        qualities[name.strip()] = quality.replace(" ", "")
    chosen = qualities.get("gzip", qualities.get("*"))
    return chosen is not None and not _REFUSED.fullmatch(chosen)


async def compressed(request: Request, response: Response) -> Response:
    """Return the response, compressed if that is worth it and the client accepts it."""
    if isinstance(response, StreamingResponse) or len(response.body) < LEAST_BYTES:
        return response
    kind = response.headers.get("content-type", "")
    if "content-encoding" in response.headers or not kind.startswith(KINDS):
        return response
    response.headers.add_vary_header("Accept-Encoding")
    if not accepts_gzip(request):
        return response
    body = bytes(response.body)
    large = len(body) > LARGE_BYTES
    response.body = await asyncio.to_thread(_packed, body) if large else _packed(body)
    response.headers["content-encoding"] = "gzip"
    response.headers["content-length"] = str(len(response.body))
    return response


def _packed(body: bytes) -> bytes:
    return gzip.compress(body, LEVEL, mtime=0)
