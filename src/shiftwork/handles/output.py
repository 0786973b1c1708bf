"""Outputs: what stands for the result of one call in the arguments of another."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shiftwork.handles.call import Call

Path = tuple[str | int, ...]


class Output:
    """Stands for the result that a call will have."""

    __slots__ = ("call",)

    def __init__(self, call: "Call[Any]") -> None:
        self.call = call

    def __repr__(self) -> str:
        return f"<the output of {self.call.worker.name}>"


def take_outputs(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple["Call[Any]", Path]]]:
    """Return the arguments with None in place of every output, and the outputs, each with its place.

    Outputs are found in lists, tuples and dicts, at any depth.
    """
    found: list[tuple[Call[Any], Path]] = []
    plain = {name: _without(value, (name,), found) for name, value in arguments.items()}
    return plain, found


def _without(value: Any, path: Path, found: list[tuple["Call[Any]", Path]]) -> Any:
    if isinstance(value, Output):
        found.append((value.call, path))
        return None
    if type(value) in (list, tuple):
        return [_without(item, (*path, place), found) for place, item in enumerate(value)]
    if type(value) is dict:
        return {key: _without(item, (*path, key), found) for key, item in value.items()}
    return value
