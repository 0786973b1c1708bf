"""Keeps failures of steps that the function has caught as data, and raises them again in later runs.

A function that catches the exception of a step and goes on has made a decision, which a later run must repeat: so the
exception is kept, with its class by name, its arguments and its attributes, as far as they are data, and its text. The
members of a group are kept in the same way. It is raised again without running any code of its class: the built-in
class that it extends makes it. An exception for which that does not work is refused when the failure is kept, not in a
later run. Nothing is imported.
"""

import sys
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.errors import StepError
from shiftwork.runtime.context.current_run import WorkerValues
from shiftwork.runtime.error_text import describe, exact, storable


class StepFailure(Struct, frozen=True, array_like=True):
    """An exception as it is kept."""

    module: str
    name: str
    """The qualified name of the class in its module."""
    text: str
    arguments: list[Any]
    """What the built-in class is called with; without the members of a group."""
    attributes: dict[str, Any]
    members: tuple["StepFailure", ...] = ()
    """The exceptions in a group."""
    lost: tuple[str, ...] = ()
    """The names of the attributes that are not data."""
    words: str | None = None
    """What `str()` returns, if the class itself would return something else in a later run."""


def packed(step: str, error: BaseException, values: WorkerValues, text: str) -> bytes:
    """Return the exception as it is kept. Raises `StepError` if no later run could raise it again."""
    hidden = _hidden(error)
    module, name = _name(error if hidden is None else hidden)
    if hidden is not None:
        message = (
            f"step {step!r} failed, and the function went on, but {module}.{name} cannot be raised again in a later "
            f"run: define it at the top level of a module, or let the step return what went wrong ({text})"
        )
        raise StepError(message)
    problem = ""
    for whole in (True, False):  # its text, if the rest cannot be kept
        try:
            return values.encode_step(step, _failure(step, error, values, text, whole=whole))
        except Exception as why:  # noqa: BLE001 - a user's class, or `StepError`
            problem = problem or describe(why)
    message = (
        f"step {step!r} failed, and the function went on, but {module}.{name} cannot be made again in a later run "
        f"({problem}): decide inside the step and return a value, or raise an exception of your own there ({text})"
    )
    raise StepError(message)


def raised_again(step: str, result: bytes, values: WorkerValues) -> BaseException:
    """Return the exception that was kept, to be raised. Raises `StepError` if that cannot be done."""
    kept: StepFailure = values.decode_step(step, _kept, result)
    try:
        error = _made(step, kept)
    except Exception as problem:  # noqa: BLE001 - a user's class
        message = (
            f"step {step!r} failed with {kept.module}.{kept.name} when it ran, and the function went on. It "
            f"cannot be raised again ({describe(problem)}): deploy the old function again, or discard the job and "
            "enqueue it again"
        )
        raise StepError(message) from None
    note = f"Step {step!r} failed in an earlier run of this job. It was not run again."
    # Not `add_note`, which runs a class's `__getattr__`: urllib's `HTTPError` without its file fails there.
    vars(error)["__notes__"] = [*vars(error).get("__notes__", ()), note]
    return error


# ── keeping ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _hidden(error: BaseException) -> BaseException | None:
    """Return the exception whose class cannot be found by its name: this one, or a member of it."""
    unchecked = [error]
    while unchecked:
        one = unchecked.pop()
        try:
            is_found = _class(*_name(one)) is type(one)
        except Exception:  # noqa: BLE001 - anything may have that name
            is_found = False
        if not is_found:
            return one
        unchecked += _members(one)
    return None


def _failure(step: str, error: BaseException, values: WorkerValues, text: str, *, whole: bool) -> StepFailure:
    """Return what is kept of an exception: as much as is data, or little more than its text."""
    arguments, attributes = _parts(error) if whole else ([text], {})
    data = {name: value for name, value in attributes.items() if _is_data(step, value, values)}
    failure = StepFailure(
        *_name(error),
        text,
        [value if _is_data(step, value, values) else storable(str(value)) for value in arguments],
        data,
        tuple(_failure(step, member, values, describe(member), whole=whole) for member in _members(error)),
        tuple(name for name in vars(error) if name not in data),
        None if whole else text,
    )
    made = _made(step, values.decode_step(step, _kept, values.encode_step(step, failure)))
    words = _words(error)
    return replace(failure, words=words) if whole and _words(made) != words else failure


def _parts(error: BaseException) -> tuple[list[Any], dict[str, Any]]:
    """Return what a built-in class needs to make the exception again, and the attributes to set then."""
    _, arguments, *state = _builtin(type(error)).__reduce__(error)  # unlike `args`, with the file of an `OSError`
    if _members(error):
        arguments = [_of_group(error, "message")]  # its class may take other arguments than a group does
    return list(arguments), dict(*state)


def _is_data(step: str, value: object, values: WorkerValues) -> bool:
    try:
        values.encode_step(step, value)
    except Exception:  # noqa: BLE001 - a user's class may have its own encoding
        return False
    return True


def _words(error: BaseException) -> str | None:
    try:
        return storable(exact(str(error)))
    except Exception:  # noqa: BLE001 - a user's class
        return None


def _name(error: BaseException) -> tuple[str, str]:
    module, name = (type.__dict__[part].__get__(type(error)) for part in ("__module__", "__qualname__"))
    return module, name


def _members(error: BaseException) -> tuple[BaseException, ...]:
    members: tuple[BaseException, ...] = ()
    if issubclass(type(error), BaseExceptionGroup):
        members = _of_group(error, "exceptions")
    return members


def _of_group(error: BaseException, name: str) -> Any:
    return BaseExceptionGroup.__dict__[name].__get__(error)  # a class may have its own attribute with that name


# ── making again ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _made(step: str, failure: StepFailure) -> BaseException:
    found = _class(failure.module, failure.name)
    is_complete = failure.words is None and not failure.lost
    arguments = list(failure.arguments)
    if failure.members:
        arguments.append([_made(step, member) for member in failure.members])
    builtin = _builtin(found)
    error: BaseException = builtin.__new__(found if is_complete else _incomplete(step, found, failure), *arguments)
    builtin.__init__(error, *arguments)
    for name, value in failure.attributes.items():
        object.__setattr__(error, name, value)  # the class may be frozen
    return error


def _class(module: str, name: str) -> Any:
    found: Any = sys.modules[module]
    for part in name.split("."):
        found = vars(found)[part]
    if not issubclass(found, BaseException):
        raise TypeError(found)
    return found


def _builtin(found: Any) -> Any:
    """Return the built-in class that a class of exceptions extends."""
    while found.__module__ != "builtins":
        found = found.__base__
    return found


class _Unannounced:
    """Keeps the `__init_subclass__` of a user's class from running."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Do nothing."""


def _incomplete(step: str, found: Any, failure: StepFailure) -> Any:
    """Return a subclass for an exception that has lost a part: it keeps the text, and names what is lost on access."""

    def attribute(error: BaseException, name: str) -> Any:
        if name in failure.lost:
            message = (
                f"step {step!r} failed in an earlier run, and {name!r} of its {failure.name} was not kept, because it "
                "is not plain data: decide about it inside the step"
            )
            raise AttributeError(message)
        return found.__getattribute__(error, name)

    own: dict[str, Any] = {"__module__": failure.module, "__qualname__": failure.name, "__getattribute__": attribute}
    if failure.words is not None:
        own["__str__"] = lambda _: failure.words
    return type(found.__name__, (_Unannounced, found), own)


def _kept() -> StepFailure:
    """Stand for the function of a step that failed: its annotation says how the failure is read."""
    raise NotImplementedError
