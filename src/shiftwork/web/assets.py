"""The dashboard's files, built from `ui/` into `dist/`; if they are not built, a page that says so."""

import mimetypes
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Final

from starlette.responses import Response

from shiftwork.web.problems import Refused

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
