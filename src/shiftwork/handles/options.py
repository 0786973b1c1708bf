"""The options of one job, and the checks on what people pass for them."""

from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any, Final, TypedDict

from msgspec.structs import replace

from shiftwork.core.model.jobs import CheckedJobOptions, JobPriority
from shiftwork.core.model.option_structs import option_hint
from shiftwork.core.options.value_checks import long_enough, tags_in
from shiftwork.core.schedules.fire_times import is_fire_id
from shiftwork.core.words import Duration, seconds_in, wrong_id
from shiftwork.errors import ConfigurationError, PayloadTypeError, UnknownOptionError


class JobOptions(TypedDict, total=False):
    """The options of `with_options`, as people may write them. None is the same as leaving an option out."""

    priority: JobPriority | None
    delay_seconds: Duration | None
    run_at: float | datetime | None
    unique_key: str | None
    job_id: str | None
    max_retries: int | None
    timeout_seconds: Duration | None
    expires_seconds: Duration | None
    tags: list[str] | tuple[str, ...] | set[str] | frozenset[str] | None


NO_OPTIONS: Final = CheckedJobOptions()
"""The options of a job that has none of its own."""
TRIGGERED: Final = CheckedJobOptions(priority=JobPriority.CRITICAL, cause="triggered")
"""The options of a run that a person wants now."""


def changed(options: CheckedJobOptions, worker: str, given: JobOptions) -> CheckedJobOptions:
    """Return the options with those replaced that are given. Raises `PayloadTypeError` for a value that cannot work."""
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "delay_seconds" in values and "run_at" in values:
        message = f"{worker}: give delay_seconds or run_at, not both"
        raise PayloadTypeError(message)
    for option, value in values.items():
        if option not in _CHECKS:
            message = f"{worker}: a job has no option {option!r}; {option_hint(option, value, _CHECKS)}"
            raise UnknownOptionError(message)
        try:
            values[option] = _CHECKS[option](value)
        except ConfigurationError as error:
            message = f"{worker}: {option} {error}"
            raise PayloadTypeError(message) from None
    if "delay_seconds" in values or "run_at" in values:  # the last of run_at and delay_seconds wins
        values = {"delay_seconds": None, "run_at": None} | values
    return replace(options, **values)


def _priority(value: Any) -> JobPriority:
    if value not in list(JobPriority):
        raise ConfigurationError(f"must be a JobPriority, not {value!r}")
    return JobPriority(value)


def _delay(value: Any) -> float:
    seconds = seconds_in(value)
    if seconds is None or not isfinite(seconds):
        raise ConfigurationError(f'must be a time, such as 90, "1h30m" or a timedelta, not {value!r}')
    return seconds


def _positive(value: Any) -> float:
    seconds = seconds_in(value)
    if seconds is None or not isfinite(seconds) or seconds <= 0:
        raise ConfigurationError(f'must be a time above 0, such as 90, "1h30m" or a timedelta, not {value!r}')
    return seconds


def _timeout(value: Any) -> float:
    return long_enough(_positive(value))


def _instant(value: Any) -> float:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ConfigurationError(f"{value} has no time zone; use a datetime with one, or epoch seconds")
        return value.timestamp()
    if not isinstance(value, int | float) or not isfinite(value):
        raise ConfigurationError(f"must be a datetime with a time zone, or epoch seconds, not {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"must be a non-empty string, not {value!r}")
    wrong = wrong_id(value)
    if wrong is not None:
        raise ConfigurationError(wrong)
    return value


def _job_id(value: Any) -> str:
    id = _text(value)
    if is_fire_id(id):
        raise ConfigurationError(
            f"must not have the form NAME@TIME, which is reserved for the runs of schedules: {id!r}; the schedule "
            "would skip that run. Choose another id"
        )
    return id


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigurationError(f"must be a whole number of 0 or more, not {value!r}")
    return value


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "priority": _priority,
    "delay_seconds": _delay,
    "run_at": _instant,
    "unique_key": _text,
    "job_id": _job_id,
    "max_retries": _number,
    "timeout_seconds": _timeout,
    "expires_seconds": _positive,
    "tags": tags_in,
}
"""Converts each of `JobOptions` from what people write to what is kept. Raises `ConfigurationError`."""
