"""How large and how deep a payload or a result may be. Everything that shows or walks one relies on these limits."""

from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

from msgspec import MsgspecError, msgpack

MAX_PAYLOAD_BYTES: Final = 1_048_576
"""How many bytes a payload or a result may have, unless the app says otherwise."""
DEEPEST: Final = 100
"""How many lists and dicts may be nested in each other, the dict of the arguments included."""

_CONTAINERS: Final = {*range(0x80, 0xA0), *range(0xDC, 0xE0)}
"""The first bytes of MessagePack's maps and arrays."""
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _CONTAINERS)
_NESTING: Final = (dict, list, tuple)


def is_too_deep(encoded: bytes) -> bool:
    """Whether an encoded value is nested too deeply."""
    # Nearly every payload ends here: text and small numbers do not look like containers.
    if len(encoded.translate(None, _OTHERS)) <= DEEPEST:
        return False
    try:
        return is_deep(msgpack.decode(encoded))
    except RecursionError:
        return True
    except (MsgspecError, UnicodeDecodeError, TypeError):
        return False  # it cannot be read at all, which is not for us to say


def is_deep(value: Any) -> bool:
    """Whether a decoded value is nested too deeply. It needs no recursion, however deep the value is."""
    level = [value] if isinstance(value, _NESTING) else []
    for _ in range(DEEPEST):
        level = [part for whole in level for part in _parts(whole) if isinstance(part, _NESTING)]
        if not level:
            return False
    return bool(level)


def _parts(value: Any) -> Iterable[Any]:
    return chain(value, value.values()) if isinstance(value, dict) else value
