"""Values in arguments and results, as they are stored: numbers, text, lists and dicts. What becomes of other types on
the way there and back, and of outputs, which stand for the results of other calls.

msgspec knows dataclasses, dates and the like by itself. Paths and pydantic's models are added here.
"""

from collections.abc import Mapping
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from shiftwork.core.values.envelopes import why_unreadable
from shiftwork.core.values.job_limits import DEEPEST
from shiftwork.errors import FlowError

if TYPE_CHECKING:
    from shiftwork.handles.worker import Call


TOO_DEEP: Final = {"not shown": f"it is nested more than {DEEPEST} levels deep"}
"""Stands for a payload or result that is too deep to show: a store may hold one that another version wrote."""


class OutputArgumentError(Exception):
    """An argument is or contains the output of another call. It never leaves the handles."""


Path = tuple[str | int, ...]


class Output:
    """Stands for the result that a call will have. It can be passed on; everything that needs the value itself raises.

    A type checker takes it for the value, and text that was made of it would pass for an argument.
    """

    __slots__ = ("call",)

    def __init__(self, call: "Call[Any]") -> None:
        self.call: Call[Any] = call

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(self._too_early(), name=name, obj=self)

    def __repr__(self) -> str:
        return f"<the output of {self.call.worker.name}>"

    def _too_early(self) -> str:
        return (
            f"the output of {self.call.worker.name} is known only when that job has run: pass it to another call as it "
            "is, or in lists, tuples and dicts, and use the value there"
        )

    def _refuse(self, *_: object) -> NoReturn:
        raise FlowError(self._too_early())

    if not TYPE_CHECKING:  # a type checker never sees an Output, and `object` has some of them with other types
        __bool__ = __str__ = __format__ = __iter__ = __len__ = __getitem__ = __contains__ = _refuse
        __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse
        __truediv__ = __rtruediv__ = __mod__ = __rmod__ = _refuse
        __lt__ = __le__ = __gt__ = __ge__ = __eq__ = __ne__ = __hash__ = __int__ = __float__ = __index__ = _refuse


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


def take_outputs(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple["Call[Any]", Path]]]:
    """Return the arguments with None in place of every output, and the outputs, each with its place.

    Outputs are found in lists, tuples and dicts, at any depth.
    """
    found: list[tuple[Call[Any], Path]] = []
    plain = {name: _without(value, (name,), found) for name, value in arguments.items()}
    return plain, found


def _without(value: Any, path: Path, found: list[tuple["Call[Any]", Path]]) -> Any:
    if isinstance(value, Output):
        _check_keys(value, path)
        found.append((value.call, path))
        return None
    if type(value) in (list, tuple):
        return [_without(item, (*path, place), found) for place, item in enumerate(value)]
    if type(value) is dict:
        return {key: _without(item, (*path, key), found) for key, item in value.items()}
    return value


def _check_keys(output: Output, path: Path) -> None:
    """Raise if the place of an output cannot be stored: a job with unreadable options would be dead."""
    for key in path:
        kind = type(key.value) if isinstance(key, Enum) else type(key)
        if kind not in (str, int):
            message = f"{output!r} is in a dict under the key {key!r}: such a key must be a string or a whole number"
            raise FlowError(message)


def argument_with_a_call(arguments: Mapping[str, Any]) -> str | None:
    """Return the name of an argument that is a call, or a list of calls, where its output was meant."""
    for name, value in arguments.items():
        first = value[0] if type(value) in (list, tuple) and value else value
        if isinstance(getattr(first, "output", None), Output):
            return name
    return None
