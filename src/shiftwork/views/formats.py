"""How single values are written: instants, always in UTC; names of priorities; payloads and results as JSON."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal, TypeVar

import msgspec
from msgspec import Struct, structs, to_builtins

from shiftwork.core.model.jobs import JobPriority
from shiftwork.core.values.job_limits import is_deep
from shiftwork.handles.plain_values import TOO_DEEP

S = TypeVar("S", bound=Struct)
_ISO: Final = "%Y-%m-%dT%H:%M:%S.%fZ"
_LAST: Final = "9999-12-31T23:59:59.999999Z"


def clock_time(at: float) -> str:
    """Return an instant for people: `2026-11-15 08:06:01Z`."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return "a time beyond the calendar"


def iso(at: float | None) -> str | None:
    """Return an instant for programs: `2026-11-15T08:06:01.123456Z`. All are equally long, so text sorts as time."""
    if at is None:
        return None
    try:
        return datetime.fromtimestamp(at, UTC).strftime(_ISO)
    except (OverflowError, ValueError, OSError):  # a run_at beyond the calendar
        return None


def past_iso(at: float) -> str:
    """Return an instant that has been, for programs; one beyond the calendar, which cannot be, as its last."""
    return iso(at) or _LAST


def shaped(kind: type[S], /, *sources: object, **given: Any) -> S:
    """Return a shape: each field as given, or else as the first source with an attribute of that name has it.

    A field that ends in `_at` is an instant: it is written for programs.
    """
    plain, instants = _plan(kind, tuple(map(type, sources)), frozenset(given))
    for name, place in plain:
        given[name] = getattr(sources[place], name)
    for name, place, write in instants:
        given[name] = write(getattr(sources[place], name))
    return kind(**given)


@cache
def _plan(
    kind: type[Struct], sources: tuple[type, ...], given: frozenset[str]
) -> tuple[list[tuple[str, int]], list[tuple[str, int, Callable[[Any], str | None]]]]:
    """Return from which source each field is taken: what stays as it is, and the instants with how they are written."""
    plain: list[tuple[str, int]] = []
    instants: list[tuple[str, int, Callable[[Any], str | None]]] = []
    for field in structs.fields(kind):
        place = next((n for n, source in enumerate(sources) if hasattr(source, field.name)), None)
        if field.name in given or place is None:
            continue
        if field.name.endswith("_at"):
            instants.append((field.name, place, past_iso if field.type is str else iso))
        else:
            plain.append((field.name, place))
    return plain, instants


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
