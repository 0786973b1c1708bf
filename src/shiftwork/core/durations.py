"""Durations as people write them: `90`, `1.5`, `5m`, `2h`, `1d`."""

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3_600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
}
_LENGTH: Final = re.compile(r"(\d{1,12}(?:\.\d*)?|\.\d+)\s*([a-z]*)")


def seconds_in(value: object) -> float | None:
    """Return how many seconds a number, a text or a `timedelta` stands for; None if it is not a duration."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if not isinstance(value, str):
        return float(value)
    found = _LENGTH.fullmatch(value.strip().lower())
    if found is None or found[2] not in _UNITS:
        return None
    return float(found[1]) * _UNITS[found[2]]
