"""Explains arguments that `WorkerOrchestrator(…)` does not take: the pattern's places, and other spellings."""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Final, TypeVar, cast

from shiftwork.core.model.option_structs import option_hint
from shiftwork.errors import ConfigurationError, UnknownOptionError

Init = TypeVar("Init", bound=Callable[..., None])

BY_PLACE: Final = ("tick_interval", "max_concurrent", "enable_health_checks")
"""What the pattern takes by place."""


def explained(init: Init) -> Init:
    """Raise a `ConfigurationError` that names the remedy where Python would raise a `TypeError`."""
    known = [name for name in inspect.signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: object, *args: Any, **kwargs: Any) -> None:
        unknown = [name for name in kwargs if name not in known]
        if unknown:
            hint = option_hint(unknown[0], kwargs[unknown[0]], known)
            message = f"WorkerOrchestrator has no option {unknown[0]!r}: {hint}"
            raise UnknownOptionError(message)
        if args and isinstance(args[0], Mapping):
            message = "WorkerOrchestrator takes its options by name, not as a dict: WorkerOrchestrator(**options)"
            raise ConfigurationError(message)
        if len(args) > 1:
            message = f"WorkerOrchestrator takes its options by name: {_by_name(args)}"
            raise ConfigurationError(message)
        init(self, *args, **kwargs)

    return cast("Init", checked)


def _by_name(args: tuple[Any, ...]) -> str:
    """Return the call as it should be written."""
    numbers_first = isinstance(args[0], int | float)
    store, options = ([], args) if numbers_first else ([f'"{args[0]}"' if isinstance(args[0], str) else "…"], args[1:])
    one = None if numbers_first or len(options) > 1 else options[0]
    names = ("namespace",) if isinstance(one, str) else ("max_concurrent",) if isinstance(one, int) else BY_PLACE
    written = [f"{name}={value!r}" for name, value in zip(names, options, strict=False)]
    return f"WorkerOrchestrator({', '.join([*store, *written])})"
