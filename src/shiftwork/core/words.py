"""Words from people and for people: durations as they write them, numbers as they read them, and text made harmless.

A duration is written as `90`, `1.5`, `5m`, `1h30m`, `500ms`, `1d`, or as a `timedelta`. It is shown by `in_words`, with
the unit that one would say, by `seconds`, with two digits that matter, where it was measured, or by `in_full`, exactly,
where a person has chosen it.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from math import isfinite
from typing import Final, TypeAlias
from unicodedata import category

from shiftwork.errors import ConfigurationError
from shiftwork.sentences import sentence

# ── durations as they are written ─────────────────────────────────────────────────────────────────────────────────────

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


# ── shown ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

_LONG: Final = ((86_400.0, "{n} d"), (3_600.0, "{n} h"), (60.0, "{n} min"))
_FEW_SECONDS: Final = 10.0
_EXACT_BELOW: Final = 10.0
_MINUTE: Final = 60.0
_HOUR: Final = 3600.0


def in_words(seconds: float) -> str:
    """Return a duration as people say it: `0.3 s`, `40 s`, `3 min`; a larger unit once there are at least two of it."""
    for size, unit in _LONG:
        if seconds >= 2 * size:
            return sentence(unit, n=f"{seconds / size:.0f}")
    few = seconds < _FEW_SECONDS
    return sentence("{n} s", n=f"{seconds:.1f}".removesuffix(".0") if few else f"{seconds:.0f}")


def in_full(seconds: float, *, each: bool = False) -> str:
    """Return an exact duration in full: `90 seconds`, `1 hour`; `each` leaves out a lone 1, as in "every hour"."""
    for size, *units in _IN_FULL:
        if seconds >= size and seconds % size == 0:
            return _in_unit(seconds / size, *units, each=each)
    return _in_unit(seconds, sentence("second"), sentence("1 second"), "{n} seconds", each=each)


_IN_FULL: Final = (
    (86_400, sentence("day"), sentence("1 day"), "{n} days"),
    (3600, sentence("hour"), sentence("1 hour"), "{n} hours"),
    (60, sentence("minute"), sentence("1 minute"), "{n} minutes"),
)


def _in_unit(n: float, unit: str, one: str, several: str, *, each: bool) -> str:
    if n == 1:
        return unit if each else one
    return sentence(several, n=f"{n:,.6f}".rstrip("0").rstrip("."))


def status_text(status: str, retries_in: float | None = None) -> str:
    """Return the status of a job for people: "failed" is about an attempt, and says that a retry follows."""
    if status != "failed":
        return status
    if retries_in is None:
        return "failed, to be retried"
    return f"failed, retries in {in_words(retries_in)}" if retries_in >= 1 else "failed, retries now"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """Return the number with its noun, in the plural unless there is exactly one."""
    return sentence(f"1 {noun}") if n == 1 else sentence(f"{{n}} {plural or noun + 's'}", n=f"{n:,}")


def number(n: float) -> str:
    """Return a number with two digits that matter: `0.04`, `4.2`, `12`, `1,950`."""
    if n >= _EXACT_BELOW:
        return f"{n:,.0f}"
    digits = next((digits for digits in (1, 2) if float(f"{n:.{digits}f}") > 0), 3)
    return f"{n:.{digits}f}".rstrip("0").rstrip(".")


def rate(per_second: float) -> str:
    """Return a rate in the unit that suits it: `12 a second`, `3 a minute`, `0.5 an hour`."""
    if per_second >= 1:
        return sentence("{n} a second", n=number(per_second))
    if per_second * _MINUTE >= 1:
        return sentence("{n} a minute", n=number(per_second * _MINUTE))
    return sentence("{n} an hour", n=number(per_second * _HOUR))


def seconds(n: float) -> str:
    """Return a duration in the unit that suits it: `50 ms`, `4.2 s`, `3 min`, `2.5 h`. Minutes begin at two."""
    if n < 1:
        return sentence("{n} ms", n=number(n * 1000))
    if n < 2 * _MINUTE:
        return sentence("{n} s", n=number(n))
    return sentence("{n} min", n=number(n / _MINUTE)) if n < 2 * _HOUR else sentence("{n} h", n=number(n / _HOUR))


# ── text from elsewhere, made harmless for terminals and logs: it can neither move the cursor nor forge a line ────────

CONTROLS: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff"
"""What no id may contain, as a pattern has it: control characters, line separators, and marks that reverse the
direction of a text. Joiners are not among them: some scripts need them."""
_CONTROL: Final = re.compile(f"[{CONTROLS}\\ud800-\\udfff]")  # and halves of characters, which UTF-8 cannot hold


def control_character(text: str) -> str | None:
    """Return the first character of an id that must not be in one; None if there is none."""
    found = _CONTROL.search(text)
    return None if found is None else found[0]


def wrong_id(text: str) -> str | None:
    """Return what is wrong with an id or a key that people have chosen: it is part of lines, addresses and logs."""
    letter = control_character(text)
    return None if letter is None else f"must not contain control characters such as {letter!r}: {text!r}"


def printable(text: str) -> str:
    """Return the text with control characters escaped, and with those that reverse its direction. Lines stay lines."""
    return text if text.isprintable() else _escaped(text, lambda letter: letter.encode("unicode_escape").decode())


def printable_json(text: str) -> str:
    """Return a JSON document with such characters escaped as JSON does it."""
    return text if text.isprintable() else _escaped(text, _as_json)


def _as_json(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def _escaped(text: str, escape: Callable[[str], str]) -> str:
    return "".join(letter if _is_harmless(letter) else escape(letter) for letter in text)


def _is_harmless(letter: str) -> bool:
    return letter.isprintable() or letter in "\n\t" or category(letter) == "Zs"
