"""Secret arguments, which only the function sees: `Annotated[str, shiftwork.Secret]`.

The mark is `writeOnly` in the JSON Schema that a worker publishes, so a process that has never imported the app knows
it too. It also works inside dataclasses, lists and dicts.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Any, Final, Union, get_args, get_origin

import msgspec

from shiftwork.errors import PayloadTypeError
from shiftwork.handles.schema import read_schema

Secret: Final = msgspec.Meta(extra_json_schema={"writeOnly": True})
"""Marks an argument as secret: `password: Annotated[str, Secret]`."""
MASK: Final = "•••"
SHORTEST: Final = 4
"""Shorter secrets are not replaced in texts: they would match text that is not secret."""
_MARK: Final = b'"writeOnly":true'
_MISSING: Final = object()

Node = Mapping[str, Any]
Act = Callable[[Any, Any], Any]


class Secrets:
    """Knows which arguments of a worker are secret."""

    def __init__(self, schema: Node) -> None:
        self._schema = schema

    def redact(self, payload: Any) -> Any:
        """Return the payload as it may be shown. Arguments that the worker does not know are not shown either."""
        if not isinstance(payload, dict):
            return MASK
        known = self._schema.get("properties", {})
        return {name: value if name in known else MASK for name, value in self._at(payload, {}, _mask).items()}

    def restore(self, worker: str, payload: Mapping[str, Any], original: Mapping[str, Any] | None = None) -> Any:
        """Return a payload that a person may have edited, with hidden values taken from the original.

        Raises `PayloadTypeError` if the original has no such value.
        """

        def unmask(value: Any, was: Any) -> Any:
            if value == MASK and was is _MISSING:
                message = f"{worker}: {MASK} stands for a hidden secret; give the secret itself"
                raise PayloadTypeError(message)
            return was if value == MASK else value

        return self._at(dict(payload), original or {}, unmask)

    def hide(self, text: str, payload: Any) -> str:
        """Return a text that the function produced, without the secrets of this payload."""
        if not isinstance(payload, dict):
            return text
        found: set[str] = set()
        self._at(payload, {}, lambda value, _: found.update(_texts(value)))
        for secret in sorted(found, key=len, reverse=True):  # one may be a part of another
            text = text.replace(secret, MASK)
        return text

    def _at(self, payload: Any, other: Any, act: Act) -> Any:
        return _walk(payload, other, self._schema, self._schema.get("$defs", {}), act)


@lru_cache(maxsize=1024)
def secrets_of(schema: bytes | None) -> Secrets | None:
    """Return what is secret according to a worker's schema; None if nothing is.

    If the schema is damaged, every argument is secret: nothing says which of them may be shown.
    """
    if schema is None:
        return None
    known = read_schema(schema)
    if known is None:
        return Secrets({})
    return Secrets(known) if _MARK in schema else None


def is_secret(hint: Any) -> bool:
    """Return whether an annotation is marked, or one member of a union."""
    if Secret in getattr(hint, "__metadata__", ()):
        return True
    return get_origin(hint) in (Union, UnionType) and any(is_secret(part) for part in get_args(hint))


def without_defaults(schema: Any) -> Any:
    """Return a schema in which no secret has a default, because that would reveal it."""
    if isinstance(schema, list):
        return [without_defaults(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    left_out = {"default", "examples"} if _is_secret(schema) else set()
    return {name: without_defaults(part) for name, part in schema.items() if name not in left_out}


def _texts(value: Any) -> Iterator[str]:
    """Yield the forms in which a secret may appear in a text: as it is, or quoted by Python or JSON."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)
    elif isinstance(value, str | int | float) and len(str(value)) >= SHORTEST:
        yield from (str(value), repr(str(value))[1:-1], msgspec.json.encode(str(value)).decode()[1:-1])


def _mask(value: Any, _was: Any) -> Any:
    return None if value is None else MASK


def _is_secret(node: Node) -> bool:
    return node.get("writeOnly") is True or any(_is_secret(one) for one in node.get("anyOf", ()))


def _walk(value: Any, other: Any, node: Node, parts: Node, act: Act) -> Any:
    """Apply a function to every secret in a value, and to the same place in another value."""
    if _is_secret(node):
        return act(value, other)
    for variant in node.get("anyOf", ()):
        value = _walk(value, other, variant, parts, act)
    if "$ref" in node:
        return _walk(value, other, parts.get(node["$ref"].removeprefix("#/$defs/"), {}), parts, act)
    if isinstance(value, dict):
        known, rest = node.get("properties", {}), node.get("additionalProperties")
        rest = rest if isinstance(rest, dict) else {}
        return {
            name: _walk(part, _place(other, name), known.get(name, rest), parts, act) for name, part in value.items()
        }
    if isinstance(value, list):
        first, rest = node.get("prefixItems", ()), node.get("items")
        rest = rest if isinstance(rest, dict) else {}
        return [
            _walk(part, _place(other, place), first[place] if place < len(first) else rest, parts, act)
            for place, part in enumerate(value)
        ]
    return value


def _place(other: Any, name: Any) -> Any:
    try:
        return other[name]
    except (KeyError, IndexError, TypeError):
        return _MISSING
