"""The options of one job, and the checks on what people pass for them."""

from datetime import datetime
from math import isfinite
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from shiftwork.core.model import JobPriority
from shiftwork.errors import PayloadTypeError

_EXPECTED: Final = {
    "priority": "a JobPriority",
    "delay_seconds": "a number of seconds",
    "run_at": "a datetime with a time zone, or epoch seconds",
    "unique_key": "a non-empty string",
    "job_id": "a non-empty string",
}


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


def changed(options: Options, worker: str, given: dict[str, Any]) -> Options:
    """Return the options with those replaced that are given. Raises `PayloadTypeError` for a value that cannot work."""
    if given["delay_seconds"] is not None and given["run_at"] is not None:
        message = f"{worker}: give delay_seconds or run_at, not both"
        raise PayloadTypeError(message)
    values = {name: value for name, value in given.items() if value is not None}
    if isinstance(values.get("run_at"), datetime):
        values["run_at"] = _instant(worker, values["run_at"])
    for option, value in values.items():
        if not _is_valid(option, value):
            message = f"{worker}: {option} must be {_EXPECTED[option]}, not {value!r}"
            raise PayloadTypeError(message)
    return replace(options, **values)


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
