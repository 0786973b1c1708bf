"""The parts of a retry policy that are more than a number, as people write them: exceptions, delays, a function."""

import builtins
import inspect
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, TypeAlias

from shiftwork.core.jobs.retry import error_name
from shiftwork.core.model.workers import Retry
from shiftwork.core.words import Duration, seconds_in
from shiftwork.errors import ConfigurationError, nearest

RetryRule: TypeAlias = Callable[[int, Exception], Duration | None]
"""A policy as a function of the attempt that failed (from 1) and its exception: seconds to wait, or None for never."""

_BUILT_IN: Final = [
    name for name, kind in vars(builtins).items() if isinstance(kind, type) and issubclass(kind, BaseException)
]
_INSTEAD_OF_DELAYS: Final = ("base_seconds", "factor", "max_seconds")


def check_rule(rule: Any) -> None:
    """Raise a `ConfigurationError` if something that can be called cannot be a retry policy."""
    if inspect.isclass(rule):
        raise ConfigurationError(f"must be an object, not the class {rule.__name__}; write {rule.__name__}(…)")
    if inspect.iscoroutinefunction(rule):
        raise ConfigurationError("must be a plain function (attempt, error) → seconds or None, not an async one")
    try:
        inspect.signature(rule).bind(1, Exception())
    except TypeError as error:
        message = f"must be a function (attempt, error) → seconds or None, which {rule!r} is not: {error}"
        raise ConfigurationError(message) from None
    except ValueError:  # a function without a signature, in C
        return


def rule_in(options: Mapping[str, Any]) -> RetryRule | None:
    """Return the function among the options of a worker that decides on its retries, if there is one."""
    rule = options.get("retry")
    return rule if callable(rule) else None


def error_names(value: Any) -> tuple[str, ...]:
    """Return the names of exceptions, which are given as classes or as names."""
    if isinstance(value, type | str):
        shown = value if isinstance(value, str) else value.__name__
        raise ConfigurationError(f"must be a list of exception classes, not one; write ({shown},)")
    if not isinstance(value, list | tuple | set | frozenset):
        raise ConfigurationError(f"must be a list of exception classes, not {value!r}")
    return tuple(dict.fromkeys(map(_error_name, value)))


def retried_names(value: Any) -> tuple[str, ...] | None:
    """Return the names of the exceptions that are tried again; None for all."""
    if value is None:
        return None
    names = error_names(value)
    if not names:
        raise ConfigurationError("must have at least one exception class; to retry nothing, set max_retries=0")
    return names


def delays(value: Any) -> tuple[float, ...] | None:
    """Return the waits before each retry, in seconds."""
    if value is None:
        return None
    if not isinstance(value, list | tuple) or not value:
        raise ConfigurationError(f'must be a list of times, such as [1, 10, "1m"], not {value!r}')
    return tuple(map(_delay, value))


def contradiction(retry: Retry) -> str | None:
    """Return what in a policy, whose parts are valid, contradicts something else in it."""
    both = [name for name in retry.never_on if name in (retry.on or ())]
    if both:
        return f"on and never_on both have {', '.join(both)}; remove it from one"
    plain = Retry()
    if retry.delays is not None:
        unused = [name for name in _INSTEAD_OF_DELAYS if getattr(retry, name) != getattr(plain, name)]
        if unused:
            return f"delays replaces {', '.join(unused)}; remove one or the other"
    return None


def _error_name(value: Any) -> str:
    if isinstance(value, type) and issubclass(value, BaseException):
        return error_name(value)
    if not isinstance(value, str):
        raise ConfigurationError(f"must contain exception classes, not {value!r}")
    if value in _BUILT_IN or "." in value.strip("."):
        return value
    hint = nearest(value, _BUILT_IN) if value.isidentifier() else "write the class itself"
    raise ConfigurationError(f"has {value!r}, which names no exception: {hint}")


def _delay(value: Any) -> float:
    seconds = seconds_in(value)
    if seconds is None or not isfinite(seconds) or seconds < 0:
        raise ConfigurationError(f'has {value!r}, which is not a time of 0 or more, such as 30 or "5m"')
    return seconds
