"""Durations as people write them: `90`, `1.5`, `5m`, `1h30m`, `500ms`, `1d`, or a `timedelta`."""

import re
from datetime import timedelta
from itertools import pairwise
from math import isfinite
from typing import Final, TypeAlias

from shiftwork.errors import ConfigurationError

Duration: TypeAlias = float | str | timedelta
"""A number of seconds, a text such as "90s" or "1h30m", or a `timedelta`."""

_UNITS: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3_600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("w", "week", "weeks"), 604_800.0),
}
_LONG: Final = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_FEW_SECONDS: Final = 10.0
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", re.ASCII)


def seconds_in(value: object) -> float | None:
    """Return how many seconds a number, a text or a `timedelta` stands for; None if it is not a duration."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return _seconds_in_text(value.strip().lower()) if isinstance(value, str) else float(value)


def seconds_of(option: str, value: object) -> float:
    """Return how many seconds an option stands for. Raises a `ConfigurationError` that names the option."""
    seconds = seconds_in(value)
    if seconds is None or not isfinite(seconds) or seconds < 0:
        message = f'{option} must be a time of 0 or more, such as 90, "1h30m" or a timedelta, not {value!r}'
        raise ConfigurationError(message)
    return seconds


def summed(option: str, seconds: object, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> float:
    """Return a duration that may be given in parts, as `days=1, hours=12`. Raises a `ConfigurationError` as above."""
    given = seconds_in(seconds)
    if given is None:
        return seconds_of(option, seconds)
    return seconds_of(option, given + 60.0 * minutes + 3_600.0 * hours + 86_400.0 * days)


def timeout_of(value: Duration | None) -> float | None:
    """Return a timeout in seconds; None means no limit. A number passes unchanged: remaining time may be negative."""
    return value if value is None or isinstance(value, int | float) else seconds_of("timeout_seconds", value)


def in_words(seconds: float) -> str:
    """Return a duration as people say it: `0.3 s`, `40 s`, `3 min`; a larger unit once there are at least two of it."""
    for size, unit in _LONG:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.1f}".removesuffix(".0") + " s" if seconds < _FEW_SECONDS else f"{seconds:.0f} s"


def _seconds_in_text(text: str) -> float | None:
    """Return the sum of parts such as 1h and 30m, the largest unit first; None if the text is something else."""
    parts = _PART.findall(text)
    if not parts or "".join(found[0] for found in _PART.finditer(text)) != text:
        return None
    units = [_UNITS.get(unit) for _, unit in parts]
    known = [unit for unit in units if unit is not None]
    in_order = all(larger > smaller for larger, smaller in pairwise(known))
    if len(known) != len(units) or not in_order or (len(parts) > 1 and not parts[-1][1]):
        return None
    return sum(float(number) * unit for (number, _), unit in zip(parts, known, strict=True))
