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
    if _class_named(module, name) is not type(error):
        message = (
            f"step {step!r} failed, and the function went on, but {module}.{name} cannot be raised again in a later "
            f"run: define it at the top level of a module, or let the step return what went wrong ({text})"
        )
        raise StepError(message)
    try:
        return values.encode_step(step, StepFailure(module, name, text, _arguments(error), _attributes(error)))
    except Exception:  # noqa: BLE001 - too large, too deep, or a user's class
        return values.encode_step(step, StepFailure(module, name, text, [text], {}))


def raised_again(step: str, result: bytes, values: WorkerValues) -> BaseException:
    """Return the exception that was kept, to be raised. Raises `StepError` if that cannot be done."""
    kept: StepFailure = values.decode_step(step, _kept, result)
    kind = _class_named(kept.module, kept.name)
    if kind is None:
        message = (
            f"step {step!r} failed with {kept.module}.{kept.name} when it ran, and the function went on. There is no "
            f"such exception now ({kept.text}): deploy the old function again, or discard the job and enqueue it again"
        )
        raise StepError(message)
    try:
        error = kind.__new__(kind, *kept.arguments)
        error.__dict__.update(kept.attributes)
        error.add_note(f"Step {step!r} failed in an earlier run of this job. It was not run again.")
    except Exception as problem:  # noqa: BLE001 - a user's class
        message = f"step {step!r} failed when it ran ({kept.text}), which cannot be raised again: {describe(problem)}"
        raise StepError(message) from None
    return error


def _kept() -> StepFailure:
    """Stand for the function of a step that failed: its annotation says how the failure is read."""
    raise NotImplementedError


def _class_named(module: str, name: str) -> type[BaseException] | None:
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


def _arguments(error: BaseException) -> list[Any]:
    return [value if _is_data(value) else str(value) for value in error.args]


def _attributes(error: BaseException) -> dict[str, Any]:
    return {name: value for name, value in error.__dict__.items() if _is_data(value)}


def _is_data(value: object) -> bool:
    try:
        msgpack.encode(value)
    except Exception:  # noqa: BLE001 - a user's class may have its own encoding
        return False
    return True
