"""Payloads and results <-> bytes, by a function's own signature. MessagePack through msgspec; never pickle.

A payload is decoded once, by the types that the job will need, before it is stored. So a payload that the function
cannot take never gets into the store.
"""

import string
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, get_type_hints

import msgspec
from msgspec import UNSET

from shiftwork.core.model import WorkerConfig, WorkerExecutionMode
from shiftwork.core.payload_limits import DEEPEST, MAX_PAYLOAD_BYTES, is_too_deep
from shiftwork.core.plurals import counted
from shiftwork.core.sealing import why_unreadable
from shiftwork.core.waits import wrong_name
from shiftwork.errors import (
    PayloadDecodingError,
    PayloadEncodingError,
    PayloadTooLargeError,
    PayloadTypeError,
    ResultEncodingError,
    SignatureError,
    StepError,
    nearest,
)
from shiftwork.handles.argument_hints import missing_argument, unexpected_payload, unknown_argument
from shiftwork.handles.call_shape import MAX_BYTES, result_decoder, shape_of
from shiftwork.handles.output import argument_with_a_call
from shiftwork.handles.plain_values import OutputArgumentError, from_plain, plain, to_plain
from shiftwork.handles.redaction import hide, is_secret, secrets_of
from shiftwork.handles.schema import read_schema
from shiftwork.runtime.engine.context import Context


class Packed(msgspec.Struct, frozen=True):
    """Encoded arguments, and the concurrency key made from them."""

    payload: bytes
    key: str | None


class Signature:
    """How a worker's function is called, and how its arguments and its result are encoded."""

    def __init__(self, worker: str, function: Callable[..., Any], mode: WorkerExecutionMode, *, max_bytes: int) -> None:
        self._worker = worker
        self._shape = shape = shape_of(worker, function, mode, max_bytes=max_bytes)
        self._max_bytes = max_bytes
        self._names, self._known, self._required = shape.names, shape.known, shape.required
        self._takes, self._decoder = shape.takes, shape.decoder

    # ── arguments ────────────────────────────────────────────────────────────────────────────────────────────────

    def named(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return all arguments by name, however they were passed."""
        if not args:
            return dict(kwargs)
        if len(args) > len(self._shape.places):
            raise PayloadTypeError(self._too_many(len(args)))
        arguments = dict(zip(self._shape.places, args, strict=False))
        if not kwargs:
            return arguments
        twice = arguments.keys() & kwargs.keys()
        if twice:
            message = f"{self._worker}: {min(twice)!r} is given twice"
            raise PayloadTypeError(message)
        return arguments | dict(kwargs)

    def _too_many(self, given: int) -> str:
        if self._takes.assumed is not None:
            return unexpected_payload(self._worker, self._takes.assumed)
        places = self._shape.places
        if not places:
            return f"{self._worker} takes no positional arguments, not {given}"
        takes = f"{counted(len(places), 'positional argument')} ({', '.join(places)})"
        return f"{self._worker} takes {takes}, not {given}"

    def encode(self, arguments: Mapping[str, Any]) -> bytes:
        """Return the payload for these arguments, which must be exactly what the function takes."""
        self._check_names(arguments)
        payload = _encoded(self._worker, arguments, self._max_bytes)
        try:
            self._decoder.decode(payload)
        except msgspec.MsgspecError as error:
            message = f"{self._worker}: {self._discreet(error)}"
            raise PayloadTypeError(message) from None
        return payload

    def encode_known(self, arguments: Mapping[str, Any], unknown: Collection[str]) -> bytes:
        """Return the payload for arguments of which some will be known only when the job runs.

        The others are checked now, each by itself.
        """
        self._check_names(arguments)
        for name in arguments.keys() - set(unknown):
            part = _encoded(self._worker, {name: arguments[name]}, self._max_bytes)
            try:
                msgspec.msgpack.decode(part, type=dict[str, self._shape.hints.get(name, Any)], dec_hook=from_plain)  # type: ignore[misc]
            except msgspec.MsgspecError as error:
                message = f"{self._worker}: argument {name!r}: {self._discreet(error).partition(' - at ')[0]}"
                raise PayloadTypeError(message) from None
        return _encoded(self._worker, arguments, self._max_bytes)

    def _discreet(self, error: Exception) -> str:
        """Return what is wrong with a payload, without secret values: msgspec names types, but others name values."""
        words = _in_words(error)
        if "Expected `" in words or secrets_of(self.schema()) is None:
            return words
        where = words.partition(": ")[0] if words.startswith("argument ") else "a value"
        return f"{where} does not fit; secret values are not shown"

    def schema(self) -> bytes:
        """Return the JSON Schema of the payload: one object, with the function's defaults except for secret ones."""
        return self._shape.schema

    def hide_secrets(self, text: str, payload: bytes) -> str:
        """Return a text that a run with this payload produced, without what is secret in it."""
        secrets = secrets_of(self.schema())
        return text if secrets is None else hide(text, secrets.texts(plain(payload)) | self._shape.default_texts)

    def pack(self, template: str | None, arguments: Mapping[str, Any]) -> Packed:
        """Encode arguments that may still be plain (a dict for a dataclass, as a person types it)."""
        payload = self.encode(arguments)
        return Packed(payload, self.key(template, self.decode(payload)) if template else None)

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        given = arguments.keys()
        if given <= self._known and given >= self._required:
            return
        for name in given - self._known:
            if self._takes.assumed is not None:
                raise PayloadTypeError(unexpected_payload(self._worker, self._takes.assumed))
            raise PayloadTypeError(unknown_argument(self._worker, name, self._names, arguments))
        for name in sorted(self._required - given):
            raise PayloadTypeError(missing_argument(self._worker, name, self._shape.hints))

    def decode(self, payload: bytes) -> dict[str, Any]:
        """Return the arguments in a payload, with their types."""
        if not self._names and payload == b"\x80":
            return {}
        try:
            shape = self._decoder.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            why = why_unreadable(payload) or self._discreet(error)
            message = f"the payload does not fit {self._worker}: {why}"
            raise PayloadDecodingError(message) from None
        except RecursionError:
            if not is_too_deep(payload):
                raise  # a type of the user's recurses by itself
            message = f"the payload of {self._worker} is nested more than {DEEPEST} levels deep"
            raise PayloadDecodingError(message) from None
        values = ((name, getattr(shape, name)) for name in self._names)
        return {name: value for name, value in values if value is not UNSET}

    def bind(self, payload: bytes, context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments to call the function with."""
        arguments = self.decode(payload)
        if self._takes.context_name is not None:
            arguments[self._takes.context_name] = context
        return ((context,) if self._takes.context_first else ()), arguments

    def key(self, template: str, arguments: Mapping[str, Any]) -> str:
        """Return the concurrency key of a job with these arguments: a parameter's value, or a filled template."""
        try:
            return template.format_map(arguments) if "{" in template else str(arguments[template])
        except (KeyError, AttributeError, IndexError, TypeError, ValueError) as error:
            message = f"{self._worker}: its concurrency key {template!r} cannot be made from this payload: {error!r}"
            raise PayloadTypeError(message) from None

    def early_key(self, template: str, arguments: Mapping[str, Any], unknown: Collection[str]) -> str:
        """Return the concurrency key of a job of which these arguments will be known only when it runs."""
        for name in {_parameter(field) for field in _key_fields(template)}.intersection(unknown):
            message = (
                f"{self._worker}: its concurrency key {template!r} is made when the job is added, and {name!r} is "
                "the output of another call, which is not known by then; pass a value"
            )
            raise PayloadTypeError(message)
        return self.key(template, arguments)

    def check_key(self, template: str) -> None:
        """Reject a concurrency key that does not name a required parameter."""
        try:
            names = _key_fields(template)
        except ValueError as error:
            message = f"worker {self._worker}: concurrency_key {template!r} cannot be read: {error}"
            raise SignatureError(message) from None
        for name in names:
            parameter = _parameter(name)
            if is_secret(self._shape.hints.get(parameter)):
                message = f"worker {self._worker}: concurrency_key {template!r} would show the secret {parameter!r}"
                raise SignatureError(message)
            if parameter not in self._required:
                message = (
                    f"worker {self._worker}: concurrency_key {template!r} needs a required parameter {name!r}: "
                    f"{nearest(name, self._required)}"
                )
                raise SignatureError(message)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def encode_step(self, name: str, value: Any) -> bytes:
        """Encode the result of a step."""
        try:
            result = msgspec.msgpack.encode(value, enc_hook=to_plain)
        except (TypeError, ValueError, OverflowError, RecursionError, OutputArgumentError) as error:
            message = (
                f"step {name!r} of {self._worker} returned {type(value).__name__}, which cannot be kept: {error}; "
                "return numbers, text, lists, dicts or dataclasses, or nothing"
            )
            raise StepError(message) from None
        if len(result) > self._max_bytes:
            message = (
                f"step {name!r} of {self._worker} returned {len(result):,} bytes; {self._max_bytes:,} are allowed: "
                "return a reference to it instead"
            )
            raise StepError(message)
        if is_too_deep(result):
            message = f"step {name!r} of {self._worker} returned a value that is nested more than {DEEPEST} levels deep"
            raise StepError(message)
        return result

    def decode_step(self, name: str, function: Callable[..., Any], result: bytes) -> Any:
        """Return the result of a step as its function is annotated to return it."""
        try:
            return result_decoder(_returns(function)).decode(result)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
            why = why_unreadable(result)
            misfit = f"is not what its function is annotated to return: {error}"
            message = f"the result of step {name!r} of {self._worker} {f'cannot be read: {why}' if why else misfit}"
            raise StepError(message) from None

    # ── results ──────────────────────────────────────────────────────────────────────────────────────────────────

    def encode_result(self, value: Any) -> bytes | None:
        """Encode a result; None is not stored."""
        if value is None:
            return None
        try:
            result = msgspec.msgpack.encode(value, enc_hook=to_plain)
        except RecursionError:
            raise ResultEncodingError(self._too_deep_result()) from None
        except (TypeError, ValueError, OverflowError, OutputArgumentError) as error:
            message = (
                f"{self._worker} finished, but its result ({type(value).__name__}) cannot be stored: {error}; "
                "return numbers, text, lists, dicts or dataclasses, or nothing"
            )
            raise ResultEncodingError(message) from None
        if len(result) > self._max_bytes:
            message = (
                f"{self._worker} finished, but its result has {len(result):,} bytes; {self._max_bytes:,} are allowed: "
                "return a reference to it instead"
            )
            raise ResultEncodingError(message)
        if is_too_deep(result):
            raise ResultEncodingError(self._too_deep_result())
        return result

    def _too_deep_result(self) -> str:
        return (
            f"{self._worker} finished, but its result is nested more than {DEEPEST} levels deep, or contains itself: "
            "return a flatter value, or a reference to it"
        )

    def decode_result(self, result: bytes | None) -> Any:
        """Return a result as the function returned it."""
        if result is None:
            return None
        try:
            return self._shape.result_decoder.decode(result)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            sealed = why_unreadable(result)
            misfit = f"is not what the function is annotated to return: {_in_words(error)}"
            message = f"the result of {self._worker} {f'cannot be read: {sealed}' if sealed else misfit}"
            raise PayloadDecodingError(message) from None


def _key_fields(template: str) -> list[str]:
    """Return the fields in a concurrency key. Raises `ValueError` if it cannot be read."""
    if "{" not in template:
        return [template]
    return [field for _, field, _, _ in string.Formatter().parse(template) if field is not None]


def _parameter(field: str) -> str:
    return field.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]


def encode_signal(name: object, value: Any) -> bytes:
    """Return the value of a signal as its job keeps it. Raises a `PayloadError` if one of the two cannot be kept."""
    wrong = wrong_name("a signal", name)
    if wrong is not None:
        raise PayloadTypeError(wrong)
    try:
        encoded = msgspec.msgpack.encode(value, enc_hook=to_plain)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        message = f"the value of signal {name!r} cannot be encoded: {error}; send numbers, text, lists or dicts"
        raise PayloadEncodingError(message) from None
    if len(encoded) > MAX_PAYLOAD_BYTES:
        message = (
            f"the value of signal {name!r} has {len(encoded):,} bytes; {MAX_PAYLOAD_BYTES:,} are allowed: "
            "store the data elsewhere and send a reference to it"
        )
        raise PayloadTooLargeError(message)
    if is_too_deep(encoded):
        message = f"the value of signal {name!r} is nested more than {DEEPEST} levels deep: send a flatter value"
        raise PayloadEncodingError(message)
    return encoded


def _encoded(worker: str, arguments: Mapping[str, Any], max_bytes: int) -> bytes:
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


def pack_plain(config: WorkerConfig, arguments: Mapping[str, Any], schema: bytes | None = None) -> Packed:
    """Encode a payload for such a worker, checked by its configuration and its JSON Schema, with its key."""
    if arguments and config.execution_mode is not WorkerExecutionMode.TRIGGERED:
        message = f"{config.name} is a {config.execution_mode} worker: it takes no arguments"
        raise PayloadTypeError(message)
    known = read_schema(schema) or {}
    _check_plain(config.name, arguments, known)
    max_bytes = known.get(MAX_BYTES)
    payload = _encoded(config.name, arguments, max_bytes if isinstance(max_bytes, int) else MAX_PAYLOAD_BYTES)
    template = config.concurrency_key
    if template is None:
        return Packed(payload, None)
    try:
        key = template.format_map(arguments) if "{" in template else str(arguments[template])
    except (KeyError, AttributeError, IndexError, TypeError, ValueError) as error:
        message = f"{config.name}: its concurrency key {template!r} cannot be made from this payload: {error!r}"
        raise PayloadTypeError(message) from None
    return Packed(payload, key)


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


def _returns(function: Callable[..., Any]) -> Any:
    try:
        return get_type_hints(function).get("return", Any)
    except Exception:  # noqa: BLE001 - whatever the annotations of a user's function raise
        return Any


def _in_words(error: Exception) -> str:
    text = str(error)
    words, _, path = text.partition(" - at `$.")
    return f"argument {path.rstrip('`')!r}: {words}" if path else text
