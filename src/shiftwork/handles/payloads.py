"""Payloads and signals for a worker whose function is in another process.

A process that has the function checks a payload by the function's types (`codec.Signature`). Any other process checks
it here, by the JSON Schema that was published for the worker.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from shiftwork.core.jobs.durable_functions import wrong_name
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.core.values.job_limits import DEEPEST, is_too_deep
from shiftwork.core.values.misfits import misfit
from shiftwork.errors import PayloadEncodingError, PayloadTooLargeError, PayloadTypeError, nearest
from shiftwork.handles.codec import Packed, encode_payload
from shiftwork.handles.concurrency_keys import make_key
from shiftwork.handles.payload_schema import max_bytes_of, read_schema
from shiftwork.handles.plain_values import to_plain
from shiftwork.sentences import sentence


def pack_plain(config: WorkerConfig, arguments: Mapping[str, Any], schema: bytes | None = None) -> Packed:
    """Encode a payload for such a worker, checked by its configuration and its JSON Schema, with its key."""
    if arguments and config.execution_mode is not WorkerExecutionMode.TRIGGERED:
        message = sentence(
            "{worker} is a {mode} worker: it takes no arguments", worker=config.name, mode=config.execution_mode
        )
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
            message = sentence(
                "{worker} takes no argument {what}: {hint}", worker=worker, what=f"{name!r}", hint=nearest(name, known)
            )
            raise PayloadTypeError(message)
    for name in schema.get("required", ()):
        if name not in arguments:
            message = sentence("{worker} needs the argument {what}", worker=worker, what=f"{name!r}")
            raise PayloadTypeError(message)
    for name, value in arguments.items():
        wanted = known.get(name, {})
        kinds = _PLAIN.get(wanted.get("type", "")) if wanted.keys() <= _SAYS_NO_MORE else None
        if kinds is not None and not (isinstance(value, kinds) and (not isinstance(value, bool) or bool in kinds)):
            fault = misfit(f"Expected `{wanted['type']}`, got `{type(value).__name__}`")
            message = sentence("{worker}: argument {what}: {fault}", worker=worker, what=f"{name!r}", fault=fault)
            raise PayloadTypeError(message)


def encode_signal(name: object, value: Any) -> bytes:
    """Return the value of a signal as its job keeps it. Raises a `PayloadError` if one of the two cannot be kept.

    `check_signal_size` says whether it is small enough for its job.
    """
    wrong = wrong_name("a signal", name)
    if wrong is not None:
        raise PayloadTypeError(wrong)
    try:
        encoded = msgspec.msgpack.encode(value, enc_hook=to_plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"the value of signal {name!r} cannot be encoded: {error}; send numbers, text, lists or dicts"
        raise PayloadEncodingError(message) from None
    if is_too_deep(encoded):
        message = sentence(
            "the value of signal {what} is nested more than {n} levels deep: send a flatter value",
            what=f"{name!r}",
            n=DEEPEST,
        )
        raise PayloadEncodingError(message)
    return encoded


def check_signal_size(name: str, encoded: bytes, max_bytes: int) -> None:
    """Raise `PayloadTooLargeError` if the value of a signal is larger than a payload of its worker may be."""
    if len(encoded) > max_bytes:
        message = sentence(
            "the value of signal {what} has {n} bytes; {n2} are allowed: store the data elsewhere and send a "
            "reference to it, or raise max_payload_bytes",
            what=f"{name!r}",
            n=f"{len(encoded):,}",
            n2=f"{max_bytes:,}",
        )
        raise PayloadTooLargeError(message)
