"""The version in a picture: pictures that an older version has taken are found by a test."""

import struct
import zlib
from typing import Final

from shiftwork.version import __version__

KEYWORD: Final = b"Software"
_HEAD: Final = 33
"""The length of the signature and of the first chunk, IHDR."""


def stamped(picture: bytes) -> bytes:
    """Return a PNG that says which version it shows."""
    body = b"tEXt" + KEYWORD + b"\0" + f"shiftwork {__version__}".encode()
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    return picture[:_HEAD] + chunk + picture[_HEAD:]


def stamp_of(picture: bytes) -> str | None:
    """Return which version a PNG shows; None if it does not say."""
    start = picture.find(b"tEXt" + KEYWORD + b"\0")
    if start < 0:
        return None
    (length,) = struct.unpack(">I", picture[start - 4 : start])
    return picture[start + 4 + len(KEYWORD) + 1 : start + 4 + length].decode()
