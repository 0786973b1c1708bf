"""The JSON Schema of a worker's payload, as it is stored."""

from typing import Any

import msgspec


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
