"""What a function takes and returns: how that is decoded, and the JSON Schema that describes it.

Workers whose functions take the same share one shape. An app may have very many workers, one for each customer. A shape
of its own would be fifteen objects for each of them, and every full run of the garbage collector visits them all.
"""

import inspect
from collections.abc import Callable, Collection, Hashable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET, UnsetType

from shiftwork.core.model.workers import WorkerExecutionMode
from shiftwork.errors import SignatureError
from shiftwork.handles.function_parameters import Parameters, awaited, read_parameters
from shiftwork.handles.payload_schema import MAX_BYTES
from shiftwork.handles.plain_values import from_plain, plain, to_plain, type_schema
from shiftwork.handles.redaction import SECRET_MARK, Secrets, default_texts, is_secret, without_defaults

_KINDS: Final = inspect.Parameter


class CallShape:
    """The parameters of a function that make up its payload, and the decoders of its payload and its result."""

    def __init__(self, worker: str, takes: Parameters, max_bytes: int) -> None:
        parameters, hints = takes.payload, takes.hints
        self.takes = takes
        self.names: tuple[str, ...] = tuple(parameters)
        self.known: frozenset[str] = frozenset(parameters)
        self.places: tuple[str, ...] = tuple(
            name for name, p in parameters.items() if p.kind is not _KINDS.KEYWORD_ONLY
        )
        """The parameters that may be given by position."""
        self.required: frozenset[str] = frozenset(name for name, p in parameters.items() if p.default is _KINDS.empty)
        self.hints: dict[str, Any] = {name: hints[name] for name in parameters if name in hints}
        self._defaults = {name: p.default for name, p in parameters.items() if p.default is not _KINDS.empty}
        self._max_bytes = max_bytes
        self._struct = _struct(worker, takes)
        self.decoder: msgspec.msgpack.Decoder[Any] = _decoder(worker, self._struct)
        self._returned = hints.get("return", Any)
        self.result_decoder: msgspec.msgpack.Decoder[Any] = result_decoder(self._returned)

    @cached_property
    def described(self) -> tuple[bytes, set[str]]:
        """The JSON Schema of the payload, and the forms in which secret defaults may appear in a text."""
        return describe(self._struct, self.names, hints=self.hints, defaults=self._defaults, max_bytes=self._max_bytes)

    @cached_property
    def hides_result(self) -> bool:
        """Whether the function is annotated to return a secret."""
        return has_secret(self._returned)


_SHARED: "Final[WeakValueDictionary[Hashable, CallShape]]" = WeakValueDictionary()


def shape_of(worker: str, function: Callable[..., Any], mode: WorkerExecutionMode, *, max_bytes: int) -> CallShape:
    """Return the shape of a worker's function. Raises `SignatureError` if the function cannot be called."""
    takes = read_parameters(worker, function, mode)
    alike = max_bytes, _likeness(takes)
    try:
        shape = _SHARED.get(alike)
    except TypeError:  # an annotation that cannot be compared
        return CallShape(worker, takes, max_bytes)
    if shape is None:
        shape = _SHARED[alike] = CallShape(worker, takes, max_bytes)
    return shape


def _likeness(takes: Parameters) -> Hashable:
    """Return what is equal for functions that take and return the same. A shape keeps its defaults, so ids hold."""
    payload = tuple((name, p.kind, id(p.default), takes.hints.get(name, Any)) for name, p in takes.payload.items())
    return payload, takes.hints.get("return", Any), takes.context_name, takes.context_first, takes.assumed


def _struct(worker: str, takes: Parameters) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for name, parameter in takes.payload.items():
        if parameter.kind not in {_KINDS.POSITIONAL_OR_KEYWORD, _KINDS.KEYWORD_ONLY}:
            message = f"worker {worker}: a payload has named parameters only; {parameter} is not one"
            raise SignatureError(message)
        wanted = takes.hints.get(name, Any)
        optional = parameter.default is not _KINDS.empty
        fields.append(
            (name, wanted | UnsetType, UNSET)
            if optional and wanted is not Any
            else (name, wanted, UNSET)
            if optional
            else (name, wanted)
        )
    return msgspec.defstruct("payload of a job", fields, kw_only=True, forbid_unknown_fields=True)


def _decoder(worker: str, struct: type[msgspec.Struct]) -> msgspec.msgpack.Decoder[Any]:
    try:
        return msgspec.msgpack.Decoder(struct, dec_hook=from_plain)
    except TypeError as error:
        message = f"worker {worker}: its parameters have types that cannot be encoded: {error}"
        raise SignatureError(message) from None


def result_decoder(wanted: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder for results of a function that is annotated to return this."""
    try:
        return msgspec.msgpack.Decoder(awaited(wanted), dec_hook=from_plain)
    except TypeError:
        return msgspec.msgpack.Decoder(Any)


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
