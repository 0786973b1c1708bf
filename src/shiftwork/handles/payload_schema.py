"""The JSON Schema of a worker's payload: as it is stored, and what a typed text means by it."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from shiftwork.core.values.job_limits import MAX_PAYLOAD_BYTES

MAX_BYTES: Final = "x-max-bytes"
"""Where a published schema says how many bytes a payload may have: other processes hold to it, too."""

_KIND_OF: Final = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}


def read_schema(body: bytes | None) -> dict[str, Any] | None:
    """Return the schema; None if there is none, or if it is damaged."""
    if body is None:
        return None
    try:
        schema = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    properties = schema.get("properties", {})
    is_sound = isinstance(properties, dict) and all(isinstance(one, dict) for one in properties.values())
    return schema if is_sound else None


def value_of(text: str, name: str, schema: Mapping[str, Any] | None) -> Any:
    """Return the value of an argument that a person typed: JSON if that fits the schema, otherwise the text itself."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError):
        return text
    wanted = {} if schema is None else schema.get("properties", {}).get(name, {})
    kinds = _kinds(wanted, {} if schema is None else schema.get("$defs", {}))
    kind = _KIND_OF[type(value)]
    fits = kinds is None or kind in kinds or (kind == "integer" and "number" in kinds)
    return text if not fits and kinds is not None and "string" in kinds else value


def _kinds(wanted: Any, parts: Mapping[str, Any], depth: int = 0) -> set[str] | None:
    """Return the kinds of JSON values that a schema allows; None if it does not say."""
    if not isinstance(wanted, Mapping) or depth > _DEEPEST:
        return None
    if "$ref" in wanted:
        return _kinds(parts.get(str(wanted["$ref"]).rpartition("/")[2]), parts, depth + 1)
    if "enum" in wanted:
        return {_KIND_OF.get(type(value), "object") for value in wanted["enum"]}
    if "anyOf" in wanted:
        each = [_kinds(one, parts, depth + 1) for one in wanted["anyOf"]]
        return None if None in each else {kind for kinds in each if kinds is not None for kind in kinds}
    kinds = wanted.get("type")
    return {kinds} if isinstance(kinds, str) else None


_DEEPEST: Final = 10


def max_bytes_of(schema: bytes | None) -> int:
    """Return how many bytes a payload of a worker may have, by its schema."""
    max_bytes = (read_schema(schema) or {}).get(MAX_BYTES)
    return max_bytes if isinstance(max_bytes, int) else MAX_PAYLOAD_BYTES
