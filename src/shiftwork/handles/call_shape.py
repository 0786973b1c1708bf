"""What a function takes and returns, and how that is decoded. Workers whose functions take the same share one shape.

An app may have very many workers, one for each customer. A shape of its own would be fifteen objects for each of them,
and every full run of the garbage collector visits them all.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import suppress
from functools import cached_property
from pathlib import PurePath
from typing import Any, Final, get_args, get_origin
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET, UnsetType

from shiftwork.core.model import WorkerExecutionMode
from shiftwork.errors import SignatureError
from shiftwork.handles.parameters import Parameters, read_parameters
from shiftwork.handles.plain_values import from_plain, plain, to_plain
from shiftwork.handles.redaction import Secrets, default_texts, is_secret, without_defaults

_KINDS: Final = inspect.Parameter
MAX_BYTES: Final = "x-max-bytes"
"""Where a published schema says how many bytes a payload may have: other processes hold to it, too."""


class CallShape:
    """The parameters of a function that make up its payload, and the decoders of its payload and its result."""

    def __init__(self, worker: str, takes: Parameters, max_bytes: int) -> None:
        parameters, hints = takes.payload, takes.hints
        self.takes = takes
        self.names = tuple(parameters)
        self.known = frozenset(parameters)
        self.places = tuple(name for name, p in parameters.items() if p.kind is not _KINDS.KEYWORD_ONLY)
        """The parameters that may be given by position."""
        self.required = frozenset(name for name, p in parameters.items() if p.default is _KINDS.empty)
        self.hints = {name: hints[name] for name in parameters if name in hints}
        self._defaults = {name: p.default for name, p in parameters.items() if p.default is not _KINDS.empty}
        self._max_bytes = max_bytes
        self._struct = _struct(worker, takes)
        self.decoder = _decoder(worker, self._struct)
        self.result_decoder = result_decoder(hints.get("return", Any))

    @cached_property
    def schema(self) -> bytes:
        """The JSON Schema of the payload: one object, with the function's defaults except for secret ones."""
        return msgspec.json.encode(without_defaults(self._complete()))

    @cached_property
    def default_texts(self) -> set[str]:
        """The forms in which defaults of secret arguments may appear in a text."""
        whole = self._complete()
        found = default_texts(whole)
        for name, default in self._defaults.items():
            with suppress(TypeError, ValueError, OverflowError, RecursionError):
                value = plain(msgspec.msgpack.encode(default, enc_hook=to_plain))
                found |= Secrets(whole).texts({name: value})
        return found

    def _complete(self) -> dict[str, Any]:
        return {**self._whole(), MAX_BYTES: self._max_bytes}

    def _whole(self) -> dict[str, Any]:
        """Return the schema with all defaults."""
        try:
            whole = msgspec.json.schema(self._struct, schema_hook=_type_schema)
        except TypeError:  # a type that can be encoded, but has no schema
            return {"type": "object", **self._described_apart()}
        parts = whole.pop("$defs")
        shape = parts.pop(whole.pop("$ref").removeprefix("#/$defs/"))
        for name, default in self._defaults.items():
            with suppress(TypeError, ValueError, OverflowError, RecursionError):
                shape["properties"][name]["default"] = msgspec.json.decode(
                    msgspec.json.encode(default, enc_hook=to_plain)
                )
        shape.pop("title", None)
        return {**shape, **({"$defs": parts} if parts else {})}

    def _described_apart(self) -> dict[str, Any]:
        """Return which arguments are secret, where there is no schema for all of them together."""
        secret = {name: {"writeOnly": True} for name, hint in self.hints.items() if is_secret(hint)}
        others: dict[str, Any] = {name: {} for name in self.names if name not in secret}
        return {"properties": {**others, **secret}} if secret else {}


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
    return msgspec.defstruct("payload", fields, kw_only=True, forbid_unknown_fields=True)


def _decoder(worker: str, struct: type[msgspec.Struct]) -> msgspec.msgpack.Decoder[Any]:
    try:
        return msgspec.msgpack.Decoder(struct, dec_hook=from_plain)
    except TypeError as error:
        message = f"worker {worker}: its parameters have types that cannot be encoded: {error}"
        raise SignatureError(message) from None


def result_decoder(wanted: Any) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder for results of a function that is annotated to return this."""
    if get_origin(wanted) in (Coroutine, Awaitable):  # a plain function that returns one
        wanted = get_args(wanted)[-1]
    try:
        return msgspec.msgpack.Decoder(wanted, dec_hook=from_plain)
    except TypeError:
        return msgspec.msgpack.Decoder(Any)


def _type_schema(wanted: type[Any]) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not know; an empty one if it cannot be described."""
    if issubclass(wanted, PurePath):
        return {"type": "string", "format": "path"}
    describe = getattr(wanted, "model_json_schema", None)  # pydantic, without knowing it
    described = dict(describe()) if describe is not None else {}
    # References to its parts would not resolve in our document.
    return {"type": "object", "title": wanted.__name__} if "$defs" in described else described
