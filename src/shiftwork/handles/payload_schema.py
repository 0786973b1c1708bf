"""The JSON Schema of a function's payload, as it is published: with the defaults, but without those that are secret."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from shiftwork.handles.parameters import awaited
from shiftwork.handles.payloads import MAX_BYTES
from shiftwork.handles.plain_values import plain, to_plain, type_schema
from shiftwork.handles.redaction import SECRET_MARK, Secrets, default_texts, is_secret, without_defaults


def describe(
    shape: type[msgspec.Struct],
    names: Collection[str],
    *,
    hints: Mapping[str, Any],
    defaults: Mapping[str, Any],
    max_bytes: int,
) -> tuple[bytes, set[str]]:
    """Return the schema, and the forms in which defaults of secret arguments may appear in a text."""
    whole = {**_whole(shape, names, hints, defaults), MAX_BYTES: max_bytes}
    return msgspec.json.encode(without_defaults(whole)), _default_texts(whole, defaults)


def has_secret(returned: Any) -> bool:
    """Return whether a function with this return annotation returns a secret, or something that contains one."""
    wanted = awaited(returned)
    if wanted is Any:
        return False
    try:
        described = msgspec.json.encode(msgspec.json.schema(wanted, schema_hook=type_schema))
    except TypeError:  # a type that can be encoded, but has no schema
        return is_secret(wanted)
    return SECRET_MARK in described


def _whole(
    shape: type[msgspec.Struct], names: Collection[str], hints: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema with all defaults."""
    try:
        whole = msgspec.json.schema(shape, schema_hook=type_schema)
    except TypeError:  # a type that can be encoded, but has no schema
        return {"type": "object", **_apart(names, hints)}
    parts = whole.pop("$defs")
    described = parts.pop(whole.pop("$ref").removeprefix("#/$defs/"))
    for name, default in defaults.items():
        with suppress(TypeError, ValueError, OverflowError, RecursionError):
            described["properties"][name]["default"] = msgspec.json.decode(
                msgspec.json.encode(default, enc_hook=to_plain)
            )
    described.pop("title", None)
    return {**described, **({"$defs": parts} if parts else {})}


def _apart(names: Collection[str], hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return which arguments are secret, where there is no schema for all of them together."""
    secret = {name: {"writeOnly": True} for name, hint in hints.items() if is_secret(hint)}
    others: dict[str, Any] = {name: {} for name in names if name not in secret}
    return {"properties": {**others, **secret}} if secret else {}


def _default_texts(whole: Mapping[str, Any], defaults: Mapping[str, Any]) -> set[str]:
    found = default_texts(whole)
    for name, default in defaults.items():
        with suppress(TypeError, ValueError, OverflowError, RecursionError):
            found |= Secrets(whole).texts({name: plain(msgspec.msgpack.encode(default, enc_hook=to_plain))})
    return found
