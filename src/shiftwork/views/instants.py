"""Instants as people and programs read them: always UTC."""

from datetime import UTC, datetime
from typing import Final

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
