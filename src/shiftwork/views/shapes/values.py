"""Values of any type, made safe for JSON."""

from typing import Any

import msgspec
from msgspec import to_builtins

from shiftwork.core.payload_limits import is_deep
from shiftwork.handles.codec import TOO_DEEP


def json_safe(value: Any) -> Any:
    """Return a value as JSON can hold it; other types are shown as Python prints them."""
    try:
        return to_builtins(value, str_keys=True, enc_hook=repr)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(value)


def unshowable(value: Any) -> dict[str, str] | None:
    """Return what is shown instead of a value that is nested too deeply; None if it can be shown."""
    return TOO_DEEP if is_deep(value) or value == TOO_DEEP else None
