"""What a function takes and returns, and how that is decoded. Workers whose functions take the same share one shape.

An app may have very many workers, one for each customer. A shape of its own would be fifteen objects for each of them,
and every full run of the garbage collector visits them all.
"""

import inspect
from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, Final
from weakref import WeakValueDictionary

import msgspec
from msgspec import UNSET, UnsetType

from shiftwork.core.model.worker import WorkerExecutionMode
from shiftwork.errors import SignatureError
from shiftwork.handles.parameters import Parameters, awaited, read_parameters
from shiftwork.handles.payload_schema import describe, has_secret
from shiftwork.handles.plain_values import from_plain

_KINDS: Final = inspect.Parameter


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
        self._returned = hints.get("return", Any)
        self.result_decoder = result_decoder(self._returned)

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
