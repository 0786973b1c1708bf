"""Instants as people and programs read them: always UTC."""

from datetime import UTC, datetime


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
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    except (OverflowError, ValueError, OSError):  # a run_at beyond the calendar
        return None
