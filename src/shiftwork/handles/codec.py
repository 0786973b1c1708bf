"""Payloads and results <-> bytes, by a function's own signature. MessagePack through msgspec; never pickle.

A payload is decoded once, by the types that the job will need, before it is stored. So a payload that the function
cannot take never gets into the store.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, get_type_hints
from weakref import WeakKeyDictionary

import msgspec
from msgspec import UNSET

from shiftwork.core.model.jobs import CheckedJobOptions
from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.core.values.envelopes import hidden, revealed, why_unreadable
from shiftwork.core.values.job_limits import DEEPEST, is_too_deep
from shiftwork.core.values.misfits import misfit
from shiftwork.core.words import counted
from shiftwork.errors import (
    PayloadDecodingError,
    PayloadEncodingError,
    PayloadTooLargeError,
    PayloadTypeError,
    ResultEncodingError,
    StepError,
    meant_by,
    nearest,
    same_as,
)
from shiftwork.handles.call_shape import has_secret, result_decoder, shape_of
from shiftwork.handles.concurrency_keys import check_key, make_key
from shiftwork.handles.plain_values import OutputArgumentError, argument_with_a_call, from_plain, plain, to_plain
from shiftwork.handles.redaction import hide, secrets_of, value_texts
from shiftwork.runtime.context.context import Context
from shiftwork.sentences import sentence

JOB_OPTIONS: Final = tuple(name for name in CheckedJobOptions.__struct_fields__ if name != "cause")
_CONTEXT_WORDS: Final = {"ctx", "context", "config", "worker", "job", "worker_config"}
_LONGEST_SHOWN: Final = 40
"""How many characters of a wrong argument an error repeats."""


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
        message = sentence(
            "{worker}: the payload has {n} bytes; {n2} are allowed: store the data elsewhere and pass a "
            "reference to it, or raise max_payload_bytes",
            worker=worker,
            n=f"{len(payload):,}",
            n2=f"{max_bytes:,}",
        )
        raise PayloadTooLargeError(message)
    if len(payload) > DEEPEST and is_too_deep(payload):  # each level has a byte of its own
        raise PayloadEncodingError(_too_deep(worker))
    return payload


def _too_deep(worker: str) -> str:
    return (
        f"{worker}: the payload is nested more than {DEEPEST} levels deep, or contains itself: "
        "pass a flatter value, or store the data elsewhere and pass a reference to it"
    )


class Signature:
    """How a worker's function is called, and how its arguments and its result are encoded."""

    def __init__(self, worker: str, function: Callable[..., Any], mode: WorkerExecutionMode, *, max_bytes: int) -> None:
        self.worker = worker
        self._max_bytes = max_bytes
        self._shape = shape = shape_of(worker, function, mode, max_bytes=max_bytes)
        self._takes, self._names, self._known, self._required = shape.takes, shape.names, shape.known, shape.required
        self._decoder = shape.decoder

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
            message = f"{self.worker}: {min(twice)!r} is given twice"
            raise PayloadTypeError(message)
        return arguments | dict(kwargs)

    def _too_many(self, given: int) -> str:
        if self._takes.assumed is not None:
            return unexpected_payload(self.worker, self._takes.assumed)
        places = self._shape.places
        if not places:
            return f"{self.worker} takes no positional arguments, not {given}"
        takes = f"{counted(len(places), 'positional argument')} ({', '.join(places)})"
        return f"{self.worker} takes {takes}, not {given}"

    def encode(self, arguments: Mapping[str, Any]) -> bytes:
        """Return the payload for these arguments, which must be exactly what the function takes."""
        self._check_names(arguments)
        payload = encode_payload(self.worker, arguments, self._max_bytes)
        try:
            self._decoder.decode(payload)
        except msgspec.MsgspecError as error:
            message = sentence("{worker}: {fault}", worker=self.worker, fault=self._discreet(error))
            raise PayloadTypeError(message) from None
        return payload

    def encode_known(self, arguments: Mapping[str, Any], unknown: Collection[str]) -> bytes:
        """Return the payload for arguments of which some will be known only when the job runs.

        The others are checked now, each by itself.
        """
        self._check_names(arguments)
        for name in arguments.keys() - set(unknown):
            part = encode_payload(self.worker, {name: arguments[name]}, self._max_bytes)
            try:
                msgspec.msgpack.decode(part, type=dict[str, self._shape.hints.get(name, Any)], dec_hook=from_plain)  # type: ignore[misc]
            except msgspec.MsgspecError as error:
                message = sentence(
                    "{worker}: argument {what}: {fault}",
                    worker=self.worker,
                    what=f"{name!r}",
                    fault=misfit(self._discreet(error).partition(" - at ")[0]),
                )
                raise PayloadTypeError(message) from None
        return encode_payload(self.worker, arguments, self._max_bytes)

    def _discreet(self, error: Exception) -> str:
        """Return what is wrong with a payload, without secret values: msgspec names types, but others name values."""
        words = _in_words(error)
        if "Expected `" in words or secrets_of(self.schema()) is None:
            return words
        where = words.partition(": ")[0] if words.startswith("argument ") else "a value"
        return sentence("{what} does not fit; secret values are not shown", what=where)

    def schema(self) -> bytes:
        """Return the JSON Schema of the payload: one object, with the function's defaults except for secret ones."""
        return self._shape.described[0]

    def hide_secrets(self, text: str, payload: bytes, values: Iterable[bytes]) -> str:
        """Return a text that a run produced, without what is secret in its payload, and without these values."""
        schema, default_texts = self._shape.described
        secrets = secrets_of(schema)
        texts = set() if secrets is None else secrets.texts(plain(payload)) | default_texts
        for value in values:
            texts |= value_texts(plain(revealed(value)))
        return hide(text, texts)

    def pack(self, template: str | None, arguments: Mapping[str, Any]) -> Packed:
        """Encode arguments that may still be plain (a dict for a dataclass, as a person types it)."""
        payload = self.encode(arguments)
        return Packed(payload, make_key(self.worker, template, self.decode(payload)) if template else None)

    def _check_names(self, arguments: Mapping[str, Any]) -> None:
        given = arguments.keys()
        if given <= self._known and given >= self._required:
            return
        for name in given - self._known:
            if self._takes.assumed is not None:
                raise PayloadTypeError(unexpected_payload(self.worker, self._takes.assumed))
            raise PayloadTypeError(unknown_argument(self.worker, name, self._names, arguments))
        for name in sorted(self._required - given):
            raise PayloadTypeError(missing_argument(self.worker, name, self._shape.hints))

    def decode(self, payload: bytes) -> dict[str, Any]:
        """Return the arguments in a payload, with their types."""
        if not self._names and payload == b"\x80":
            return {}
        try:
            shape = self._decoder.decode(payload)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            why = why_unreadable(payload) or self._discreet(error)
            message = f"the payload does not fit {self.worker}: {why}"
            raise PayloadDecodingError(message) from None
        except RecursionError:
            if not is_too_deep(payload):
                raise  # a type of the user's recurses by itself
            message = f"the payload of {self.worker} is nested more than {DEEPEST} levels deep"
            raise PayloadDecodingError(message) from None
        values = ((name, getattr(shape, name)) for name in self._names)
        return {name: value for name, value in values if value is not UNSET}

    def bind(self, payload: bytes, context: Context) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments to call the function with."""
        arguments = self.decode(payload)
        if self._takes.context_name is not None:
            arguments[self._takes.context_name] = context
        return ((context,) if self._takes.context_first else ()), arguments

    def check_key(self, template: str) -> None:
        """Reject a concurrency key that does not name a required parameter."""
        check_key(self.worker, template, self._required, self._shape.hints)

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def encode_step(self, name: str, value: Any, function: Callable[..., Any] | None) -> bytes:
        """Encode the result of a step, hidden if its function is annotated to return a secret."""
        result = self._encode_step(name, value)
        return hidden(result) if function is not None and _returns_secret(function) else result

    def _encode_step(self, name: str, value: Any) -> bytes:
        try:
            result = msgspec.msgpack.encode(value, enc_hook=to_plain)
        except (TypeError, ValueError, OverflowError, RecursionError, OutputArgumentError) as error:
            message = (
                f"step {name!r} of {self.worker} returned {type(value).__name__}, which cannot be kept: {error}; "
                "return numbers, text, lists, dicts or dataclasses, or nothing"
            )
            raise StepError(message) from None
        if len(result) > self._max_bytes:
            message = (
                f"step {name!r} of {self.worker} returned {len(result):,} bytes; {self._max_bytes:,} are allowed: "
                "return a reference to it instead"
            )
            raise StepError(message)
        if is_too_deep(result):
            message = f"step {name!r} of {self.worker} returned a value that is nested more than {DEEPEST} levels deep"
            raise StepError(message)
        return result

    def decode_step(self, name: str, function: Callable[..., Any], result: bytes) -> Any:
        """Return the result of a step as its function is annotated to return it."""
        try:
            return result_decoder(_returns(function)).decode(revealed(result))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, TypeError) as error:
            why = why_unreadable(result)
            misfit = f"is not what its function is annotated to return: {error}"
            message = f"the result of step {name!r} of {self.worker} {f'cannot be read: {why}' if why else misfit}"
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
                f"{self.worker} finished, but its result ({type(value).__name__}) cannot be stored: {error}; "
                "return numbers, text, lists, dicts or dataclasses, or nothing"
            )
            raise ResultEncodingError(message) from None
        if len(result) > self._max_bytes:
            message = (
                f"{self.worker} finished, but its result has {len(result):,} bytes; {self._max_bytes:,} are allowed: "
                "return a reference to it instead"
            )
            raise ResultEncodingError(message)
        if is_too_deep(result):
            raise ResultEncodingError(self._too_deep_result())
        return hidden(result) if self._shape.hides_result else result

    def _too_deep_result(self) -> str:
        return (
            f"{self.worker} finished, but its result is nested more than {DEEPEST} levels deep, or contains itself: "
            "return a flatter value, or a reference to it"
        )

    def decode_result(self, result: bytes | None) -> Any:
        """Return a result as the function returned it."""
        if result is None:
            return None
        try:
            return self._shape.result_decoder.decode(revealed(result))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            sealed = why_unreadable(result)
            misfit = f"is not what the function is annotated to return: {_in_words(error)}"
            message = f"the result of {self.worker} {f'cannot be read: {sealed}' if sealed else misfit}"
            raise PayloadDecodingError(message) from None


def _returns(function: Callable[..., Any], *, extras: bool = False) -> Any:
    while extras and hasattr(function, "func"):  # functools.partial
        function = function.func
    if extras and isinstance(function, type):
        return function  # a class returns an object of its own
    try:
        return get_type_hints(function, include_extras=extras).get("return", Any)
    except Exception:  # noqa: BLE001 - whatever the annotations of a user's function raise
        return Any


_RETURNS_SECRET: Final[WeakKeyDictionary[Callable[..., Any], bool]] = WeakKeyDictionary()
"""Whether the functions of steps return secrets: reading an annotation takes longer than keeping a step."""


def _returns_secret(function: Callable[..., Any]) -> bool:
    try:
        known = _RETURNS_SECRET.get(function)
        if known is None:
            known = _RETURNS_SECRET[function] = has_secret(_returns(function, extras=True))
    except TypeError:  # a built-in function, or an object without a hash
        return has_secret(_returns(function, extras=True))
    return known


def _in_words(error: Exception) -> str:
    text = str(error)
    words, _, path = text.partition(" - at `$.")
    return (
        sentence("argument {what}: {fault}", what=f"{path.rstrip('`')!r}", fault=misfit(words))
        if path
        else misfit(text)
    )


def unknown_argument(worker: str, name: str, known: Iterable[str], arguments: Mapping[str, Any]) -> str:
    """Return what is wrong with an argument that the task does not take."""
    names = [*known]
    options = [] if meant_by(name, names) else meant_by(name, JOB_OPTIONS)
    policy = None if meant_by(name, names) else same_as(name, WorkerConfig.__struct_fields__)
    if not options and policy is not None:
        return sentence(
            "{worker} takes no argument {what}, which is an option of the task: @app.task({option}=…)",
            worker=worker,
            what=f"{name!r}",
            option=policy,
        )
    if not options:
        return sentence(
            "{worker} takes no argument {what}: {hint}", worker=worker, what=f"{name!r}", hint=nearest(name, names)
        )
    task = worker if worker.isidentifier() else "task"
    others = ", ".join(f"{other}=…" for other in arguments if other in names)
    remedy = f"{task}.with_options({options[0]}={_shown(arguments[name])}).enqueue({others})"
    return sentence(
        "{worker} takes no argument {what}, which is an option of the job: {remedy}",
        worker=worker,
        what=f"{name!r}",
        remedy=remedy,
    )


def unexpected_payload(worker: str, parameter: str) -> str:
    """Return what is wrong with arguments for a task whose only parameter gets the context."""
    return (
        f"{worker} takes no arguments: its only parameter {parameter!r} has no annotation, so it gets the Context; "
        f"to make it payload, annotate it, for example {parameter}: str"
    )


def missing_argument(worker: str, name: str, hints: Mapping[str, Any]) -> str:
    """Return what is wrong where an argument is missing."""
    remedy = f"; if it is the context, annotate it: {name}: Context"
    return sentence("{worker} needs the argument {what}", worker=worker, what=f"{name!r}") + (
        remedy if name in _CONTEXT_WORDS and name not in hints else ""
    )


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, int | float | str) else "…"
    return text if len(text) <= _LONGEST_SHOWN else "…"
