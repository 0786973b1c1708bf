"""What cronsim says about a cron expression, as sentences.

cronsim explains an expression in English, in a few fixed phrases: "At 09:00 on Monday through Friday". No name of a
user is in them. `explained` finds the phrases and their values again, so that they can be translated.
"""

import re
from functools import lru_cache
from typing import Final

from shiftwork.sentences import sentence, series

PHRASES: Final = (
    "{ticks} every day in {months}",
    "{ticks} every day",
    "{ticks} on the last day of {months}",
    "{ticks} on the last weekday of {months}",
    "{ticks} on the last {day} of the month",
    "{ticks} on the second {day} of the month",
    "{ticks} on the {nth} {day} of the month",
    "{ticks} on the second day of every month",
    "{ticks} on the {nth} day of every month",
    "{ticks} on the second day of {months}",
    "{ticks} on the {nth} day of {months}",
    "{ticks} on {dates} day of month and on {days}",
    "{ticks} on {dates} day of month in {months}",
    "{ticks} on {dates} day of month",
    "{ticks} on {days} in {months}",
    "{ticks} on {month} {n}",
    "{ticks} on {days}",
    "{ticks} in {months}",
    "at the start of every hour",
    "at minute 0 past hours {clocks}",
    "at minute 0 past {hours}",
    "at {minutes} of every hour",
    "at {minutes} past {hours}",
    "{ticks} of every hour",
    "{ticks} past {hours}",
    "at {clocks}",
    "every minute from {n} through {n2}",
    "every second minute from {n} through {n2}",
    "every {nth} minute from {n} through {n2}",
    "every minute from {clock} through {clock2}",
    "every second minute from {clock} through {clock2}",
    "every {nth} minute from {clock} through {clock2}",
    "every hour from {n} through {n2}",
    "every second hour from {n} through {n2}",
    "every {nth} hour from {n} through {n2}",
    "every month from {month} through {month2}",
    "every month",
    "every second month",
    "every {nth} month",
    "every second {unit}",
    "every {nth} {unit}",
    "every {unit}",
    "minutes {clocks}",
    "minute {n}",
    "hours {clocks}",
    "hour {n}",
    "{day} through {day2}",
    "the second",
    "the {nth}",
    "{n}th",
    *("minute", "hour"),
    *("first", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
"""What cronsim writes. The first phrase that fits a text, with everything in its holes, is what it says. The unit and
the ordinal "second" are one word in English only: phrases with the ordinal have it."""

_HOLE: Final = re.compile(r"\{(\w+)\}")
_NUMBER: Final = r"(\d+)"
_CLOCK: Final = r"(\d\d:\d\d)"
_LIST: Final = r"([\d:]+(?:(?:, and | and |, )[\d:]+)*)"
_WORD: Final = r"(\w+)"
_TAKING: Final = {
    "n": _NUMBER,
    "n2": _NUMBER,
    "clock": _CLOCK,
    "clock2": _CLOCK,
    "clocks": _LIST,
    "day": _WORD,
    "day2": _WORD,
    "month": _WORD,
    "month2": _WORD,
    "nth": _WORD,
    "unit": _WORD,
}
_AS_IT_IS: Final = {"n", "n2", "clock", "clock2"}
_JOINTS: Final = (", and ", " and ", ", ")


@lru_cache(maxsize=1_000)
def explained(text: str) -> str:
    """Return what cronsim says as a sentence; the text itself if it has a phrase that is not known."""
    return _phrase(text) or text


def _phrase(text: str) -> str | None:
    for phrase, holes, pattern in _PATTERNS:
        found = pattern.fullmatch(text)
        if found is None:
            continue
        values = {hole: _value(hole, value) for hole, value in zip(holes, found.groups(), strict=True)}
        if None not in values.values():
            return sentence(phrase, **values)
    return _listed(text) if ", " in text or " and " in text else None


def _value(hole: str, text: str) -> str | None:
    if hole in _AS_IT_IS:
        return text
    return _listed(text) if hole == "clocks" else _phrase(text)


def _listed(text: str) -> str | None:
    """Return a list of phrases: "Monday, Wednesday, and Friday"."""
    for joint in _JOINTS:
        first, found, rest = text.partition(joint)
        if not found:
            continue
        one, others = _listed(first), _listed(rest)
        if one is None or others is None:
            return None
        return sentence("{first}, {rest}", first=one, rest=others) if joint == ", " else series(joint, [one, others])
    return text if re.fullmatch(r"[\d:]+", text) else _phrase(text)


def _pattern(phrase: str) -> re.Pattern[str]:
    parts = _HOLE.split(phrase)
    return re.compile("".join(_TAKING.get(part, "(.+?)") if n % 2 else re.escape(part) for n, part in enumerate(parts)))


_PATTERNS: Final = tuple((phrase, _HOLE.findall(phrase), _pattern(phrase)) for phrase in PHRASES)
