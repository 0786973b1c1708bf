"""Failures of steps that the function has caught: kept as data, and raised again in later runs.

A function that catches the exception of a step and goes on has made a decision, which a later run must repeat: so the
exception is kept, with its class by name, its arguments and its attributes, as far as they are data. It is raised again
without running any code of its class but `__new__`. A class that cannot be found by its name is refused when the
failure is kept, not in a later run. Nothing is imported.
"""

import sys
from typing import Any

from msgspec import Struct, msgpack

from shiftwork.errors import StepError
from shiftwork.runtime.engine.context import WorkerValues
from shiftwork.runtime.engine.error_text import describe


class StepFailure(Struct, frozen=True, array_like=True):
    """An exception as it is kept."""

    module: str
    name: str
    """The qualified name of the class in its module."""
    text: str
    arguments: list[Any]
    attributes: dict[str, Any]


def packed(step: str, error: BaseException, values: WorkerValues, text: str) -> bytes:
    """Return the exception as it is kept. Raises `StepError` if no later run could raise it again."""
    module, name = (type.__dict__[part].__get__(type(error)) for part in ("__module__", "__qualname__"))
    for whole in (True, False):
        try:
            arguments, attributes = _parts(error) if whole else ([text], {})  # its text, if the rest cannot be kept
            failure = StepFailure(module, name, text, arguments, attributes)
            if type(_made(failure)) is type(error):
                return values.encode_step(step, failure)
        except Exception:  # noqa: BLE001, S112 - a user's class, or `StepError`
            continue
    message = (
        f"step {step!r} failed, and the function went on, but {module}.{name} cannot be raised again in a later "
        f"run: define it at the top level of a module, or let the step return what went wrong ({text})"
    )
    raise StepError(message)


def raised_again(step: str, result: bytes, values: WorkerValues) -> BaseException:
    """Return the exception that was kept, to be raised. Raises `StepError` if that cannot be done."""
    kept: StepFailure = values.decode_step(step, _kept, result)
    try:
        error = _made(kept)
    except Exception as problem:  # noqa: BLE001 - a user's class
        message = (
            f"step {step!r} failed with {kept.module}.{kept.name} when it ran, and the function went on. It "
            f"cannot be raised again ({describe(problem)}): deploy the old function again, or discard the job and "
            "enqueue it again"
        )
        raise StepError(message) from None
    error.add_note(f"Step {step!r} failed in an earlier run of this job. It was not run again.")
    return error


def _made(failure: StepFailure) -> BaseException:
    found: Any = sys.modules[failure.module]
    for part in failure.name.split("."):
        found = vars(found)[part]
    if not issubclass(found, BaseException):
        raise TypeError(found)
    error: BaseException = found.__new__(found, *failure.arguments)
    error.__dict__.update(failure.attributes)
    return error


def _parts(error: BaseException) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments and the attributes of an exception, as far as they are data."""
    arguments = [value if _is_data(value) else str(value) for value in error.args]
    return arguments, {name: value for name, value in vars(error).items() if _is_data(value)}


def _kept() -> StepFailure:
    """Stand for the function of a step that failed: its annotation says how the failure is read."""
    raise NotImplementedError


def _is_data(value: object) -> bool:
    try:
        msgpack.encode(value)
    except Exception:  # noqa: BLE001 - a user's class may have its own encoding
        return False
    return True
