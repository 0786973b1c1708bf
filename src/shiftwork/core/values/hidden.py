"""Values that only programs may see: results and signals that their function has declared secret.

Such a value is stored inside a MessagePack extension, which says that it must not be shown. So a process that has never
imported the app knows it too, for results, for steps and for the ends of waits alike. It protects what people are
shown, not the store: that is what encryption is for.

    ext 83 │ "secret" │ the value
"""

from typing import Final

from msgspec.msgpack import Ext, encode

_CODE: Final = 83
_MARK: Final = b"secret"
_HEADERS: Final = {0xC7: 2, 0xC8: 3, 0xC9: 5, 0xD6: 1, 0xD7: 1, 0xD8: 1}
"""Where in an extension its code is, by its first byte."""


def hidden(value: bytes) -> bytes:
    """Return an encoded value as one that must not be shown."""
    return encode(Ext(_CODE, _MARK + value))


def is_hidden(value: bytes) -> bool:
    """Return whether an encoded value must not be shown. Its beginning is enough."""
    at = _HEADERS.get(value[0]) if value else None
    return at is not None and value[at : at + 1 + len(_MARK)] == bytes((_CODE,)) + _MARK


def revealed(value: bytes) -> bytes:
    """Return the encoded value itself, whether or not it was hidden."""
    return value[_HEADERS[value[0]] + 1 + len(_MARK) :] if is_hidden(value) else value
