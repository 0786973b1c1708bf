"""What responses are made of: the JSON of answers, errors as `application/problem+json`, the dashboard's files, built
from `ui/` into `dist/`, and compression for those who accept gzip.

Sentences are texts in JSON. A request with the header `Shiftwork-Sentences: KEY` gets every sentence of ours as
`{KEY: [template, values]}` instead, with such objects among the values. The client chooses the key at random, so that
no payload of a job looks like a sentence.
"""

import asyncio
import gzip
import mimetypes
import re
from collections.abc import Callable, Mapping
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from shiftwork import errors
from shiftwork.sentences import Sentence, error_text, plain, sentence, written

# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────

SENTENCES_HEADER: Final = "shiftwork-sentences"
Encode: TypeAlias = Callable[[Any], bytes]

_KEY: Final = re.compile(r"[\w-]{1,64}", re.ASCII)

as_texts: Final[Encode] = msgspec.json.Encoder(enc_hook=plain).encode
"""Encodes an answer with sentences as texts."""


def encoder(key: str | None) -> Encode:
    """Return what encodes answers for a request whose header asks for this key."""
    if key is None or not _KEY.fullmatch(key):
        return as_texts

    def hook(value: Any) -> Any:
        return written(value, lambda parts: {key: parts}) if isinstance(value, Sentence) else plain(value)

    return msgspec.json.Encoder(enc_hook=hook).encode


def encoder_for(request: Request) -> Encode:
    return encoder(request.headers.get(SENTENCES_HEADER))


# ── errors ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MEDIA_TYPE: Final = "application/problem+json"

_STATUS: Final[tuple[tuple[type[errors.ShiftworkError], int], ...]] = (
    # The first match counts.
    (errors.UnknownWorkerError, 404),
    (errors.UnknownPoolError, 404),
    (errors.UnknownScheduleError, 404),
    (errors.UnknownNodeError, 404),
    (errors.UnknownBreakerError, 404),
    (errors.UnknownJobError, 404),
    (errors.UnknownFlowError, 404),
    (errors.FlowError, 409),
    (errors.StepError, 409),
    (errors.PayloadTooLargeError, 413),
    (errors.PayloadError, 400),
    (errors.NodeSilentError, 504),
    (errors.JobError, 409),
    (errors.DuplicateNameError, 409),
    (errors.HistoryError, 409),
    (errors.MoveError, 409),
    (errors.ConfigurationError, 400),
    (errors.StoreError, 503),
    (errors.LifecycleError, 503),
)
_TITLES: Final = {
    400: sentence("Bad request"),
    401: sentence("Authentication required"),
    403: sentence("Not allowed"),
    404: sentence("Not found"),
    405: sentence("Method not allowed"),
    409: sentence("Conflict"),
    413: sentence("Too large"),
    415: sentence("Not JSON"),
    429: sentence("Too many requests"),
    500: sentence("Internal error"),
    503: sentence("Not available"),
    504: sentence("No reply in time"),
}


class ProblemDetails(Struct, frozen=True, kw_only=True):
    """A problem in the form of RFC 9457."""

    type: str
    """What went wrong, for programs: `urn:shiftwork:unknown-worker`."""
    title: str
    status: int
    detail: str
    """What went wrong and what to do about it, in words."""


class Refused(Exception):  # noqa: N818 - it becomes a response
    """A request that is rejected."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = headers


def problem(error: Exception, encode: Encode = as_texts) -> Response:
    """Return the response for an error."""
    if isinstance(error, Refused):
        return _response(encode, error.status, error.detail, _TITLES[error.status], error.headers)
    if isinstance(error, errors.ShiftworkError):
        status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
        name = type(error).__name__.removesuffix("Error")
        return _response(encode, status, error_text(error), re.sub("(?<=.)(?=[A-Z])", " ", name))
    return _response(encode, 500, sentence("an unexpected error; see the server's log"), _TITLES[500])


def _response(
    encode: Encode, status: int, detail: str, kind: str, headers: Mapping[str, str] | None = None
) -> Response:
    code = kind.lower().replace(" ", "-")
    body = ProblemDetails(type=f"urn:shiftwork:{code}", title=_TITLES[status], status=status, detail=detail)
    return Response(encode(body), status, dict(headers or {}), MEDIA_TYPE)


DIST: Final = Path(__file__).parent / "dist"
_FOREVER: Final = "public, max-age=31536000, immutable"
PACKED: Final = ".gz"
"""The ending of a file's compressed copy, which `hatch_build.py` makes."""
_MISSING: Final = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>shiftwork</title></head><body>
<h1>shiftwork</h1>
<p>The dashboard has not been built here. In a checkout, <code>python hatch_build.py</code> builds it;
packages bring it along.</p>
<p>The API is there: <a href="api/v1/overview">overview</a>, <a href="api/v1/openapi.json">OpenAPI</a>.
In a terminal: <code>shiftwork status</code>, <code>shiftwork top</code>.</p>
</body></html>
"""


def asset(path: str, *, compressed: bool = False) -> Response:
    """Return a file, or its compressed copy. Files that Vite names by their content are cached forever.

    All others are revalidated.
    """
    name = path or "index.html"
    found = _files(DIST).get(name)
    if found is None and name == "index.html":
        return Response(_MISSING, media_type="text/html", headers={"Cache-Control": "no-cache"})
    if found is None:
        raise Refused(HTTPStatus.NOT_FOUND, "there is no such page; the dashboard is at /, the API is below /api/v1")
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    kind = "text/javascript" if name.endswith((".js", ".mjs")) else kind
    headers = {"Cache-Control": _FOREVER if name.startswith("assets/") else "no-cache"}
    copy = _files(DIST).get(name + PACKED)
    if copy is not None:
        headers["Vary"] = "Accept-Encoding"
    if copy is not None and compressed:
        return Response(_content(copy), media_type=kind, headers=headers | {"Content-Encoding": "gzip"})
    return Response(_content(found), media_type=kind, headers=headers)


@cache
def _content(path: Path) -> bytes:
    """Return a file's content, held once however many clients are slow to read it."""
    return path.read_bytes()


@cache
def _files(folder: Path) -> dict[str, Path]:
    """Return every file by its path: nothing else can be requested."""
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}


LEAST_BYTES: Final = 1_024
"""Smaller answers fit into a packet or two."""
LEVEL: Final = 1
"""Fast: a higher level takes several times as long for a tenth fewer bytes."""
LARGE_BYTES: Final = 262_144
"""Compressing more than this takes too long for the event loop."""
_REFUSED: Final = re.compile(r"q=0(\.0*)?")
COMPRESSED_KINDS: Final = ("application/json", "application/problem+json", "text/")


def accepts_gzip(request: Request) -> bool:
    qualities: dict[str, str] = {}
    for one in request.headers.get("accept-encoding", "").lower().split(","):
        name, _, quality = one.partition(";")
        qualities[name.strip()] = quality.replace(" ", "")
    chosen = qualities.get("gzip", qualities.get("*"))
    return chosen is not None and not _REFUSED.fullmatch(chosen)


async def compressed(request: Request, response: Response) -> Response:
    """Return the response, compressed if that is worth it and the client accepts it. A stream is never compressed: it
    would be held back until there is enough of it.
    """
    if isinstance(response, StreamingResponse) or len(response.body) < LEAST_BYTES:
        return response
    kind = response.headers.get("content-type", "")
    if "content-encoding" in response.headers or not kind.startswith(COMPRESSED_KINDS):
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
