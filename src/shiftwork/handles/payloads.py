"""Payloads as a store gets them: encoded, within the limits, and checked.

`Signature` checks a payload by the types of the function. A process that does not have the function checks it by the
JSON Schema that was published for it (`pack_plain`).
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from shiftwork.core.model.worker import WorkerConfig, WorkerExecutionMode
from shiftwork.core.values.limits import DEEPEST, MAX_PAYLOAD_BYTES, is_too_deep
from shiftwork.errors import PayloadEncodingError, PayloadTooLargeError, PayloadTypeError, nearest
from shiftwork.handles.concurrency_keys import make_key
from shiftwork.handles.output import argument_with_a_call
from shiftwork.handles.plain_values import to_plain
from shiftwork.handles.schema import read_schema

MAX_BYTES: Final = "x-max-bytes"
"""Where a published schema says how many bytes a payload may have: other processes hold to it, too."""


class Packed(msgspec.Struct, frozen=True):
    """Encoded arguments, and the concurrency key made from them."""

    payload: bytes
    key: str | None


def encode_payload(worker: str, arguments: Mapping[str, Any], max_bytes: int) -> bytes:
    """Return the payload for these arguments. Every payload that a store gets was checked here."""
    try:
        payload = msgspec.msgpack.encode(arguments, enc_hook=to_plain)
    except RecursionError:
        raise PayloadEncodingError(_too_deep(worker)) from None
    except (TypeError, ValueError, OverflowError) as error:
        call = argument_with_a_call(arguments)
        if call is not None:
            message = f"{worker}: argument {call!r} is a call, which has no value; pass its output: {call}=CALL.output"
            raise PayloadTypeError(message) from None
        message = f"{worker}: the payload cannot be encoded: {error}; pass numbers, text, lists, dicts, dataclasses"
        raise PayloadEncodingError(message) from None
    if len(payload) > max_bytes:
        message = (
            f"{worker}: the payload has {len(payload):,} bytes; {max_bytes:,} are allowed: "
            "store the data elsewhere and pass a reference to it, or raise max_payload_bytes"
        )
        raise PayloadTooLargeError(message)
    if is_too_deep(payload):
        raise PayloadEncodingError(_too_deep(worker))
    return payload


def _too_deep(worker: str) -> str:
    return (
        f"{worker}: the payload is nested more than {DEEPEST} levels deep, or contains itself: "
        "pass a flatter value, or store the data elsewhere and pass a reference to it"
    )


def max_bytes_of(schema: bytes | None) -> int:
    """Return how many bytes a payload of a worker may have, by its schema."""
    max_bytes = (read_schema(schema) or {}).get(MAX_BYTES)
    return max_bytes if isinstance(max_bytes, int) else MAX_PAYLOAD_BYTES


def pack_plain(config: WorkerConfig, arguments: Mapping[str, Any], schema: bytes | None = None) -> Packed:
    """Encode a payload for such a worker, checked by its configuration and its JSON Schema, with its key."""
    if arguments and config.execution_mode is not WorkerExecutionMode.TRIGGERED:
        message = f"{config.name} is a {config.execution_mode} worker: it takes no arguments"
        raise PayloadTypeError(message)
    _check_plain(config.name, arguments, read_schema(schema) or {})
    payload = encode_payload(config.name, arguments, max_bytes_of(schema))
    template = config.concurrency_key
    return Packed(payload, None if template is None else make_key(config.name, template, arguments))


_PLAIN: Final[Mapping[str, tuple[type[Any], ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}
_SAYS_NO_MORE: Final = {"type", "default", "title", "description", "writeOnly"}


def _check_plain(worker: str, arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """Reject what the function cannot take: wrong names, and wrong types where the schema names only a type."""
    known: Mapping[str, Any] = schema.get("properties", {})
    if schema.get("additionalProperties") is False:
        for name in arguments.keys() - known.keys():
            message = f"{worker} takes no argument {name!r}: {nearest(name, known)}"
            raise PayloadTypeError(message)
    for name in schema.get("required", ()):
        if name not in arguments:
            message = f"{worker} needs the argument {name!r}"
            raise PayloadTypeError(message)
    for name, value in arguments.items():
        wanted = known.get(name, {})
        kinds = _PLAIN.get(wanted.get("type", "")) if wanted.keys() <= _SAYS_NO_MORE else None
        if kinds is not None and not (isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)):
            message = f"{worker}: argument {name!r}: Expected `{wanted['type']}`, got `{type(value).__name__}`"
            raise PayloadTypeError(message)
