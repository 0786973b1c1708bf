"""What msgspec says about a value that does not fit its type, as sentences.

msgspec has a few fixed phrases: "Expected `int`, got `str` - at `$.n`". `misfit` finds the phrase and its values again,
so that they can be translated.
"""

import re
from typing import Final

from shiftwork.sentences import sentence

_LIMIT: Final = re.compile(r"(>=|<=|>|<) (.+)")
_PLACE: Final = " - at `"
MISFIT_PHRASES: Final = (
    "Expected `{type}`, got `{type2}`",
    "Expected `{type}` of length {bound}",
    "Expected `{type}` matching regex {pattern}",
    "Expected `{type}` {limit}",
    "Invalid enum value {what}",
    "Invalid RFC3339 encoded {what}",
    "Invalid UUID",
    "Object missing required field `{field}`",
    "Object contains unknown field `{field}`",
    "JSON is malformed: {error}",
)
"""What msgspec writes. The first phrase that fits is what it says."""

_PATTERNS: Final = tuple(
    (phrase, re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(phrase)), re.DOTALL))
    for phrase in MISFIT_PHRASES
)


def misfit(text: str) -> str:
    """Return what msgspec says as a sentence; the text itself if it is none of the phrases."""
    fault, found, path = text.rpartition(_PLACE)
    if found and path.endswith("`"):
        return sentence("{fault} - at `{path}`", fault=_fault(fault), path=path.removesuffix("`"))
    return _fault(text)


def _fault(text: str) -> str:
    for phrase, pattern in _PATTERNS:
        found = pattern.fullmatch(text)
        if found is not None:
            return sentence(phrase, **{hole: _value(hole, value) for hole, value in found.groupdict().items()})
    return text


def _value(hole: str, text: str) -> str:
    limit = _LIMIT.fullmatch(text) if hole in {"bound", "limit"} else None
    if limit is None:
        return text
    sign, n = limit.groups()
    if sign == ">=":
        return sentence(">= {n}", n=n)
    if sign == "<=":
        return sentence("<= {n}", n=n)
    return sentence("> {n}", n=n) if sign == ">" else sentence("< {n}", n=n)
