"""Values of any type, made safe for JSON."""

from typing import Any

import msgspec
from msgspec import to_builtins


def json_safe(value: Any) -> Any:
    """Return a value as JSON can hold it; other types are shown as Python prints them."""
    try:
        return to_builtins(value, str_keys=True, enc_hook=repr)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(value)
