"""Values as JSON has them: those of any type, and the names of priorities."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import to_builtins

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.values.job_limits import is_deep
from shiftwork.handles.plain_values import TOO_DEEP

PriorityName = Literal["low", "normal", "high", "critical"]
"""A priority, as it is written in JSON."""

PRIORITY_NAMES: Final[Mapping[JobPriority, PriorityName]] = {
    JobPriority.LOW: "low",
    JobPriority.NORMAL: "normal",
    JobPriority.HIGH: "high",
    JobPriority.CRITICAL: "critical",
}


def json_safe(value: Any) -> Any:
    """Return a value as JSON can hold it; other types are shown as Python prints them."""
    try:
        return to_builtins(value, str_keys=True, enc_hook=repr)
    except (TypeError, ValueError, msgspec.MsgspecError):
        return repr(value)


def unshowable(value: Any) -> dict[str, str] | None:
    """Return what is shown instead of a value that is nested too deeply; None if it can be shown."""
    return TOO_DEEP if is_deep(value) or value == TOO_DEEP else None
