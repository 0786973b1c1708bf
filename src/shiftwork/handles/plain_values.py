"""Values as they are stored: numbers, text, lists and dicts, and what becomes of other types on the way there and back.

msgspec knows dataclasses, dates and the like by itself. Paths and pydantic's models are added here.
"""

from pathlib import PurePath
from typing import Any, Final

import msgspec

from shiftwork.core.values.envelopes import why_unreadable
from shiftwork.core.values.job_limits import DEEPEST
from shiftwork.handles.output import Output

TOO_DEEP: Final = {"not shown": f"it is nested more than {DEEPEST} levels deep"}
"""Stands for a payload or result that is too deep to show: a store may hold one that another version wrote."""


class OutputArgumentError(Exception):
    """An argument is or contains the output of another call. It never leaves the handles."""


def to_plain(value: Any) -> Any:
    """Return a value that msgspec cannot encode as one that it can: its `enc_hook`."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Output):
        message = f"{value!r} is not a value yet"
        raise OutputArgumentError(message)
    dump = getattr(value, "model_dump", None)  # pydantic, without knowing it
    if dump is not None:
        return dump(mode="json")
    message = f"{type(value).__name__} has no encoding"
    raise TypeError(message)


def from_plain(wanted: type[Any], value: Any) -> Any:
    """Return what was encoded as `value`, in its own type: the `dec_hook` of msgspec."""
    if issubclass(wanted, PurePath):
        return wanted(value)
    validate = getattr(wanted, "model_validate", None)
    if validate is not None:
        return validate(value)
    if isinstance(value, wanted):
        return value
    message = f"{wanted!r} cannot be made from the stored value"
    raise TypeError(message)


def type_schema(wanted: type[Any]) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not know; an empty one if it cannot be described."""
    if issubclass(wanted, PurePath):
        return {"type": "string", "format": "path"}
    describe = getattr(wanted, "model_json_schema", None)  # pydantic, without knowing it
    described = dict(describe()) if describe is not None else {}
    # References to its parts would not resolve in our document.
    return {"type": "object", "title": wanted.__name__} if "$defs" in described else described


def plain(payload: bytes) -> Any:
    """Return a payload or result without the function's types. What cannot be read is shown as bytes."""
    try:
        return msgspec.msgpack.decode(payload)
    except RecursionError:
        return TOO_DEEP
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError):
        why = why_unreadable(payload)
        return {"encrypted": why} if why else {"unreadable bytes": payload[:200].hex()}
