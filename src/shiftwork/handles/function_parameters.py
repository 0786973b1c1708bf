"""What a worker's function takes: which parameter is its context, and which are its payload.

A function that cannot be called the way its mode calls it is refused here, when it is registered.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from pathlib import PurePath
from types import NoneType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct

from shiftwork.core.model.workers import WorkerConfig, WorkerExecutionMode
from shiftwork.errors import SignatureError
from shiftwork.runtime.context.context import Context
from shiftwork.sentences import sentence

_KINDS: Final = inspect.Parameter
_UNNAMED: Final = (_KINDS.VAR_POSITIONAL, _KINDS.VAR_KEYWORD)
_CONTEXTS: Final = (Context, WorkerConfig)


class Parameters(Struct, frozen=True, kw_only=True):
    """The parameters of a function, sorted by what they get."""

    payload: dict[str, inspect.Parameter]
    hints: dict[str, Any]
    """The annotations of the payload and of the result ("return"), resolved."""
    context_name: str | None = None
    """The parameter that gets the context by name."""
    context_first: bool = False
    """Whether the first positional argument is the context."""
    assumed: str | None = None
    """The parameter of a TRIGGERED function that gets the context only because it is alone and not annotated."""


def read_parameters(worker: str, function: Callable[..., Any], mode: WorkerExecutionMode) -> Parameters:
    """Return the parameters of a worker's function. Raises `SignatureError` if it cannot be called in this mode."""
    _refuse_what_is_not_a_function(worker, function)
    parameters = _parameters(worker, function)
    hints = _hints(worker, function, mode)
    if mode is WorkerExecutionMode.TRIGGERED:
        return _of_task(worker, parameters, hints)
    return _of_scheduled(worker, parameters, hints, mode)


def has_encoding(kind: Any) -> bool:
    """Return whether values of a type that msgspec does not know can be encoded: paths, and pydantic's models."""
    return kind is object or issubclass(kind, PurePath) or hasattr(kind, "model_validate")


def awaited(returned: Any) -> Any:
    """Return what a caller gets in the end, if a plain function is annotated to return a coroutine."""
    return get_args(returned)[-1] if get_origin(returned) in (Coroutine, Awaitable) else returned


# ── the function ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_what_is_not_a_function(worker: str, function: Any) -> None:
    problem: str | None = None
    if inspect.isclass(function):
        problem = (
            f"{function.__name__} is a class; register a function, or an object that can be called: "
            f"{function.__name__}(…)"
        )
    elif inspect.iscoroutine(function):
        function.close()
        problem = f"{function.__name__}() was called; pass the function itself, without parentheses"
    elif not callable(function):
        problem = f"{function!r} is not a function; pass the function itself, without parentheses"
    elif inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        problem = f"{function!r} is a generator, which is never iterated; remove its yield"
    if problem is not None:
        message = sentence("worker {worker}: {fault}", worker=worker, fault=problem)
        raise SignatureError(message)


def _parameters(worker: str, function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError) as error:
        message = f"worker {worker}: {function!r} cannot be called: {error}"
        raise SignatureError(message) from None
    first = next(iter(parameters.values()), None)
    if first is not None and first.name in {"self", "cls"} and first.annotation is _KINDS.empty:
        message = (
            f"worker {worker}: {first.name!r} has no value, because a worker is called without an object; move the "
            "function out of its class, or register the method of an object: app.register_worker(name, object.method)"
        )
        raise SignatureError(message)
    return parameters


def _hints(worker: str, function: Callable[..., Any], mode: WorkerExecutionMode) -> dict[str, Any]:
    target: Any = function
    while hasattr(target, "func"):  # functools.partial
        target = target.func
    if not inspect.isroutine(target):
        target = type(target).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except NameError as error:
        if mode is not WorkerExecutionMode.TRIGGERED:
            return {}  # its one argument is the Context, whatever the annotation means
        message = (
            f"worker {worker}: an annotation of {target.__qualname__} cannot be resolved: {error}; import the name at "
            "the top of the module, not only under TYPE_CHECKING"
        )
        raise SignatureError(message) from None
    except TypeError:
        return {}


# ── the context ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_task(worker: str, parameters: dict[str, inspect.Parameter], hints: dict[str, Any]) -> Parameters:
    wanted, assumed = _annotated_contexts(worker, parameters, hints), None
    if wanted is None and len(parameters) == 1:
        (alone,) = parameters.values()
        if _may_be_context(alone):
            wanted = assumed = alone.name
    payload = {name: parameter for name, parameter in parameters.items() if name != wanted}
    for name in payload:
        _refuse_unencodable(worker, name, hints.get(name, Any))
    first = wanted is not None and parameters[wanted].kind is _KINDS.POSITIONAL_ONLY
    return Parameters(
        payload=payload,
        hints=hints,
        context_name=None if first else wanted,
        context_first=first,
        assumed=assumed,
    )


def _of_scheduled(
    worker: str, parameters: dict[str, inspect.Parameter], hints: dict[str, Any], mode: WorkerExecutionMode
) -> Parameters:
    wanted = _annotated_contexts(worker, parameters, hints)
    required = [p for p in parameters.values() if p.default is _KINDS.empty and p.kind not in _UNNAMED]
    if len(required) > 1 or (wanted is not None and any(p.name != wanted for p in required)):
        message = (
            f"worker {worker}: a {mode} function takes nothing or one argument, its Context; this one needs "
            f"{', '.join(p.name for p in required)}. A worker with arguments of its own is TRIGGERED: use @app.task"
        )
        raise SignatureError(message)
    if wanted is None and required:
        wanted = required[0].name
        _refuse_other_than_context(worker, required[0], hints, mode)
    if wanted is None:
        wanted = next((p.name for p in parameters.values() if _may_be_context(p)), None)
    gathers = any(p.kind is _KINDS.VAR_POSITIONAL for p in parameters.values())
    first = (wanted is None and gathers) or (wanted is not None and _is_first(parameters, wanted))
    return Parameters(payload={}, hints=hints, context_name=None if first else wanted, context_first=first)


def _is_first(parameters: Mapping[str, inspect.Parameter], name: str) -> bool:
    return next(iter(parameters)) == name and parameters[name].kind is not _KINDS.KEYWORD_ONLY


def _annotated_contexts(
    worker: str, parameters: Mapping[str, inspect.Parameter], hints: Mapping[str, Any]
) -> str | None:
    wanted = [name for name in parameters if _is_context(hints.get(name))]
    if len(wanted) > 1:
        message = f"worker {worker}: there is one Context; it cannot be both {wanted[0]!r} and {wanted[1]!r}"
        raise SignatureError(message)
    return wanted[0] if wanted else None


def _is_context(hint: Any) -> bool:
    members = [one for one in get_args(hint) if one is not NoneType] or [hint]
    return all(any(one is known for known in _CONTEXTS) for one in members)


def _may_be_context(parameter: inspect.Parameter) -> bool:
    """Return whether a parameter that says nothing about its type gets the context."""
    if parameter.annotation is not _KINDS.empty or parameter.kind in _UNNAMED:
        return False
    absent = parameter.default is None and parameter.kind is not _KINDS.KEYWORD_ONLY
    return absent or parameter.default is _KINDS.empty


def _refuse_other_than_context(
    worker: str, parameter: inspect.Parameter, hints: Mapping[str, Any], mode: WorkerExecutionMode
) -> None:
    """Refuse a parameter whose annotation says that it is something else: the function would get a Context there."""
    hint = hints.get(parameter.name, Any)
    if hint is Any or hint is object or isinstance(hint, TypeVar) or getattr(hint, "_is_protocol", False):
        return
    if any(one is Any or _is_context(one) for one in get_args(hint)):
        return
    shown = inspect.formatannotation(hint)
    message = (
        f"worker {worker}: a {mode} function gets its Context, but {parameter.name!r} is annotated {shown}. If it is "
        f"payload, use @app.task; if it is the context, annotate it: {parameter.name}: Context"
    )
    raise SignatureError(message)


# ── the payload ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _refuse_unencodable(worker: str, name: str, hint: Any) -> None:
    try:
        info = msgspec.inspect.type_info(hint)
    except TypeError:  # a type that msgspec cannot describe: making the decoder says why
        return
    for kind in _custom_types(info):
        if not has_encoding(kind):
            message = (
                f"worker {worker}: parameter {name!r} needs a {kind.__name__}, which cannot be stored with a job; "
                f"pass what identifies it, such as an id or a path, and make the {kind.__name__} inside the function"
            )
            raise SignatureError(message)


def _custom_types(info: msgspec.inspect.Type) -> Iterator[type]:
    """Yield the types in a description that msgspec does not encode by itself."""
    seen: set[int] = set()
    ahead: list[Any] = [info]
    while ahead:
        one = ahead.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, tuple):
            ahead += one
        elif isinstance(one, msgspec.inspect.CustomType) and isinstance(one.cls, type):
            yield one.cls
        elif isinstance(one, msgspec.inspect.Type | msgspec.inspect.Field):
            ahead += [getattr(one, field) for field in one.__struct_fields__]
