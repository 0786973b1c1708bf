"""The options of one job, and the checks on what people pass for them."""

from datetime import datetime
from math import isfinite
from typing import Any, Final, TypedDict

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.durations import Duration, seconds_in
from shiftwork.core.model import JobPriority
from shiftwork.core.option_hints import option_hint
from shiftwork.errors import PayloadTypeError, UnknownOptionError

_EXPECTED: Final = {
    "priority": "a JobPriority",
    "delay_seconds": 'a time, such as 90, "1h30m" or a timedelta',
    "run_at": "a datetime with a time zone, or epoch seconds",
    "unique_key": "a non-empty string",
    "job_id": "a non-empty string",
}


class JobOptions(TypedDict, total=False):
    """The options of `with_options`, as people may write them. None is the same as leaving an option out."""

    priority: JobPriority | None
    delay_seconds: Duration | None
    run_at: float | datetime | None
    unique_key: str | None
    job_id: str | None


class Options(Struct, frozen=True, kw_only=True):
    """How one job differs from other jobs of its worker."""

    priority: JobPriority | None = None
    run_at: float | None = None
    delay_seconds: float | None = None
    unique_key: str | None = None
    job_id: str | None = None
    cause: str = "enqueued"


TRIGGERED: Final = Options(priority=JobPriority.CRITICAL, cause="triggered")
"""The options of a run that a person wants now."""


def changed(options: Options, worker: str, given: JobOptions) -> Options:
    """Return the options with those replaced that are given. Raises `PayloadTypeError` for a value that cannot work."""
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if "delay_seconds" in values and "run_at" in values:
        message = f"{worker}: give delay_seconds or run_at, not both"
        raise PayloadTypeError(message)
    for option, value in values.items():
        if option not in _EXPECTED:
            message = f"{worker}: a job has no option {option!r}; {option_hint(option, value, _EXPECTED)}"
            raise UnknownOptionError(message)
        values[option] = kept = _kept(worker, option, value)
        if not _is_valid(option, kept):
            message = f"{worker}: {option} must be {_EXPECTED[option]}, not {value!r}"
            raise PayloadTypeError(message)
    return replace(options, **values)


def _kept(worker: str, option: str, value: Any) -> Any:
    """Return a value as it is kept; None for a delay that is not a duration."""
    if option == "delay_seconds":
        return seconds_in(value)
    return _instant(worker, value) if option == "run_at" and isinstance(value, datetime) else value


def _is_valid(option: str, value: Any) -> bool:
    if option == "priority":
        return value in set(JobPriority)
    if option in {"delay_seconds", "run_at"}:
        return isinstance(value, int | float) and isfinite(value)
    return isinstance(value, str) and value != ""


def _instant(worker: str, at: datetime) -> float:
    if at.tzinfo is None:
        message = f"{worker}: run_at {at} has no time zone; use a datetime with one, or epoch seconds"
        raise PayloadTypeError(message)
    return at.timestamp()
